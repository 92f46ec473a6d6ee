"""Keys: the one place that says what an object may be called and where each kind of object lives.

A key is a relative path of `/`-separated parts that every backend can hold: a file system limits a
part to 255 bytes and refuses what S3 allows, so the narrowest rules hold everywhere and an object
can move from one backend to another. Builders below are the only source of keys in the product.
"""

from __future__ import annotations

import re
import unicodedata
from urllib.parse import unquote

from verderer.core.errors import Invalid

MAX_KEY_BYTES = 900
"""S3 allows 1,024; the rest is left for the prefix inside the bucket."""
MAX_PART_BYTES = 240
"""A file name holds 255 bytes; a write in progress appends `#` and a number to it."""
TMP_PREFIX = "tmp/"
LOG_PREFIX = "logs/"
ARTIFACT_PREFIX = "artifacts/"
CONTENT_PREFIX = "content/"
TRACKED_PREFIX = "tracked/"

# How the local backend names a write in progress: never a finished object.
PARTIAL_NAME = re.compile(r"#\d+\Z", re.ASCII)
_SHA256 = re.compile(r"[0-9a-f]{64}\Z")
# Characters of a person's file name that a key never holds as they are.
_QUOTED = frozenset("%#\\")


def check_key(key: str) -> str:
    """Return `key` unchanged when every backend can hold it.

    Raises:
        Invalid: empty, too long, not UTF-8, or with a part that is empty, `.`, `..`, too long,
            holds a control character or backslash, or looks like a write in progress (`x#1`).
    """
    if reason := _why_not(key):
        raise Invalid(
            f"object key {_shown(key)} {reason}",
            code="invalid_key",
            hint="use letters, digits, dots, dashes and underscores, parts separated by one '/'",
        )
    return key


def check_prefix(prefix: str) -> str:
    """Return `prefix` unchanged: `""` for everything, else whole parts ending in `/`.

    Raises:
        Invalid: as `check_key`, or no `/` at the end.
    """
    if prefix == "":
        return prefix
    if not prefix.endswith("/"):
        raise Invalid(
            f"object prefix {_shown(prefix)} does not end with '/'",
            code="invalid_key",
            hint="a prefix is a whole folder, such as 'tmp/'",
        )
    check_key(prefix[:-1])
    return prefix


def log_key(project_id: str, run_id: str, step_id: str, attempt: int, stream: str, seq: int) -> str:
    """Where chunk `seq` (from 0) of one replica's output lives; `stream` names the replica."""
    folder = _joined(project_id, run_id, step_id, str(attempt), stream)
    return check_key(f"{LOG_PREFIX}{folder}/{seq:08d}.vlog")


def artifact_key(
    project_id: str, run_id: str, step_id: str, attempt: int, name: str, path: str = ""
) -> str:
    """Where one file of a step's output lives.

    `path` is the file's path inside the artifact as its author wrote it; empty when the artifact
    is a single file. Characters that a key cannot hold are percent-encoded, so two different
    paths never share a key.
    """
    folder = _joined(project_id, run_id, step_id, str(attempt), name)
    parts = [_quoted(part) for part in path.split("/")] if path else ["data"]
    # A folder of its own keeps a single file from standing where another artifact's folder is.
    kind = "tree" if path else "file"
    return check_key(f"{ARTIFACT_PREFIX}{folder}/{kind}/{'/'.join(parts)}")


def artifact_prefix(project_id: str, run_id: str, step_id: str, attempt: int, name: str) -> str:
    """The folder that holds every file of one artifact."""
    folder = _joined(project_id, run_id, step_id, str(attempt), name)
    return check_prefix(f"{ARTIFACT_PREFIX}{folder}/")


def tracked_prefix(project_id: int, experiment: int, owner: str, folder: str = "") -> str:
    """The folder of what a tracked run or logged model (`owner`) stored, or one inside it."""
    root = f"{TRACKED_PREFIX}{project_id}/{experiment}/{owner}/"
    inside = "".join(f"{_quoted(part)}/" for part in folder.split("/") if part)
    return check_prefix(root + inside)


def tracked_key(project_id: int, experiment: int, owner: str, path: str) -> str:
    """Where one of its files lives; `path` is what its author called it."""
    return check_key(tracked_prefix(project_id, experiment, owner, path)[:-1])


def plain_name(part: str) -> str:
    """The name that a part of a key stands for: the reverse of how the builders quote it."""
    return unquote(part, errors="surrogatepass")


def tmp_key(token: str, name: str = "data") -> str:
    """A key that the collector removes after its time; `token` makes it unique."""
    return check_key(TMP_PREFIX + _joined(token, name))


def content_key(sha256: str) -> str:
    """Where bytes live that are named by what they are; `sha256` is 64 lower-case hex digits."""
    if not _SHA256.match(sha256):
        raise Invalid(f"{_shown(sha256)} is not a SHA-256 in lower-case hex", code="invalid_key")
    return f"{CONTENT_PREFIX}{sha256[:2]}/{sha256}"


def _joined(*parts: str) -> str:
    return "/".join(_quoted(part, slash=True) for part in parts)


def _quoted(part: str, *, slash: bool = False) -> str:
    """Percent-encode what a part may not hold; `.` and `..` stay, to be refused by the check."""
    return "".join(_quoted_char(char, slash) for char in part)


def _quoted_char(char: str, slash: bool) -> str:
    unsafe = char in _QUOTED or unicodedata.category(char) in ("Cc", "Cs")
    if not unsafe and not (slash and char == "/"):
        return char
    return "".join(f"%{byte:02X}" for byte in char.encode("utf-8", "surrogatepass"))


def _why_not(key: str) -> str:
    try:
        size = len(key.encode())
    except UnicodeEncodeError:
        return "is not valid Unicode text"
    if not key:
        return "is empty"
    if size > MAX_KEY_BYTES:
        return f"is {size} bytes long; the limit is {MAX_KEY_BYTES}"
    if any(char == "\\" or unicodedata.category(char) == "Cc" for char in key):
        return "holds a backslash or a control character"
    for part in key.split("/"):
        if reason := _why_not_part(part):
            return reason
    return ""


def _why_not_part(part: str) -> str:
    if part == "":
        return "starts or ends with '/' or has an empty part"
    if part in (".", ".."):
        return f"has the part '{part}'"
    if len(part.encode()) > MAX_PART_BYTES:
        return f"has a part longer than {MAX_PART_BYTES} bytes"
    if PARTIAL_NAME.search(part):
        return "has a part ending in '#' and digits, which marks an unfinished write"
    return ""


def _shown(key: str) -> str:
    """For messages: bounded, and with nothing that a terminal would act upon."""
    return ascii(key[:100]) + ("..." if len(key) > 100 else "")
