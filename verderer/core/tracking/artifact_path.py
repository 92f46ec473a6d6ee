"""Paths of artifacts: what a client may ask for, decided before any store sees it.

An address is `{experiment}/{run}/artifacts/{path}` or
`{experiment}/models/{model}/artifacts/{path}`. It is decoded exactly once; whatever would mean
something else when decoded again, or to a file system or a URL parser, is refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import unquote, unquote_to_bytes

from verderer.core.errors import Invalid
from verderer.core.tracking.names import parse_experiment_id, parse_model_id, parse_run_uid

SCHEME = "mlflow-artifacts:/"
MAX_PATH = 600
"""Bytes of a path below a run."""
MAX_PART = 200
"""Bytes of one part of it: with the quoting of keys still a file's name."""

_CONTROL = re.compile("[\x00-\x1f\x7f\x80-\x9f\ud800-\udfff\\\\]")
_URL_LIKE = re.compile(r"[?#]")
_DECODINGS = 5


@dataclass(frozen=True, slots=True)
class Address:
    """An artifact, or a folder of them."""

    experiment: int
    owner: str
    """32 hexadecimal digits of the run or of the model."""
    of_model: bool
    path: str
    """Below the owner's root, parts separated by `/`; empty for the root itself."""


def decode_once(raw: bytes) -> str:
    """Decode the percent-encoding of a request's path, once.

    Raises:
        Invalid: what comes out is not UTF-8.
    """
    try:
        return unquote_to_bytes(raw).decode()
    except UnicodeDecodeError as e:
        raise Invalid("Invalid path: it is not UTF-8") from e


def check_path(path: str) -> str:
    """Return a decoded path below a root when it is harmless; empty means the root.

    Raises:
        Invalid: it is absolute, climbs (`..`), has empty parts, backslashes, control characters,
            `?`, `#`, a drive or scheme, is too long, or turns into such a path when decoded again.
    """
    if not path:
        return path
    seen = path
    for _ in range(_DECODINGS):
        if reason := _why_not(seen):
            raise Invalid(f"Invalid path {path[:100]!a}: it {reason}")
        again = unquote(seen, errors="surrogateescape")
        if again == seen:
            return path
        seen = again
    raise Invalid(f"Invalid path {path[:100]!a}: it is encoded over and over")


def _why_not(path: str) -> str:
    if _CONTROL.search(path):
        return "holds a backslash, a control character or broken text"
    if _URL_LIKE.search(path):
        return "holds '?' or '#'"
    if len(path.encode()) > MAX_PATH:
        return f"is longer than {MAX_PATH} bytes"
    for part in path.split("/"):
        if part in ("", ".", ".."):
            return "is absolute, or has an empty part, '.' or '..'"
        if part.endswith(":"):
            return "has a drive or a scheme"
        if len(part.encode()) > MAX_PART:
            return f"has a part longer than {MAX_PART} bytes"
    return ""


def parse_address(path: str) -> Address:
    """Read the decoded address of an artifact; one `/` at either end is forgiven.

    Raises:
        Invalid: it is no such address, or its path is not harmless.
        NotFound: no run or model can have this id.
    """
    cleaned = path.removeprefix("/").removesuffix("/")
    check_path(cleaned)
    head, _, rest = cleaned.partition("/")
    owner, _, tail = rest.partition("/")
    of_model = owner == "models"
    if of_model:
        owner, _, tail = tail.partition("/")
    root, _, below = tail.partition("/")
    if not head or not owner or root != "artifacts":
        raise Invalid(
            f"Invalid path {path[:100]!a}: artifacts live below a run or a logged model",
            hint="Take the address from the run's artifact_uri.",
        )
    experiment = parse_experiment_id(head)
    uid = parse_model_id(owner) if of_model else parse_run_uid(owner)
    return Address(experiment, uid, of_model, below)


def run_root(experiment: int, uid: str) -> str:
    """The artifact_uri of a run."""
    return f"{SCHEME}{experiment}/{uid}/artifacts"


def model_root(experiment: int, uid: str) -> str:
    """The artifact_uri of a logged model."""
    return f"{SCHEME}{experiment}/models/m-{uid}/artifacts"


def experiment_root(experiment: int) -> str:
    """The artifact_location of an experiment."""
    return f"{SCHEME}{experiment}"
