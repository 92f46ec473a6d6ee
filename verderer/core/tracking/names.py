"""Names and identifiers: what they may be, and what is made up when a client gives none."""

from __future__ import annotations

import posixpath
import re
from functools import lru_cache

from verderer.core.errors import Invalid, NotFound
from verderer.core.tracking.limits import (
    INT64_MAX,
    MAX_EXPERIMENT_NAME,
    MAX_EXPERIMENT_TAG_VALUE,
    MAX_KEY,
    MAX_MODEL_NAME,
    MAX_PARAM_VALUE,
    MAX_TAG_VALUE,
)

RUN_NAME_TAG = "mlflow.runName"
PROJECT_TAG = "verderer.project"
RUN_TAG = "verderer.run"
STEP_TAG = "verderer.step"
RESERVED_TAGS = frozenset({RUN_TAG, STEP_TAG})
"""Written by the platform alone: they say which step a run belongs to."""

DEFAULT_EXPERIMENT_ID = "0"
DEFAULT_EXPERIMENT = "Default"

_KEY = re.compile(r"[/\w.\- :]+\Z")
_RUN_UID = re.compile(r"[0-9a-f]{32}\Z")
_MODEL_ID = re.compile(r"m-([0-9a-f]{32})\Z")
_EXPERIMENT_ID = re.compile(r"[0-9]{1,19}\Z")
_LOWEST_ID = 10**14
_IDS = 9 * 10**14
_HALF = re.compile("[\ud800-\udfff]")

_ADJECTIVES = (
    "agile", "amber", "bold", "brave", "bright", "calm", "clear", "clever", "crisp", "deep",
    "eager", "early", "fair", "fleet", "fresh", "gentle", "grand", "green", "happy", "keen",
    "kind", "light", "lively", "lucky", "mossy", "noble", "proud", "quick", "quiet", "rapid",
    "royal", "rustic", "sharp", "silent", "silver", "sleek", "smart", "solid", "steady", "still",
    "stout", "sunny", "swift", "tall", "tidy", "vivid", "warm", "wild", "wise", "young",
)  # fmt: skip
_NOUNS = (
    "alder", "ash", "aspen", "badger", "beech", "birch", "boar", "bracken", "buck", "buzzard",
    "cedar", "chestnut", "crane", "deer", "dove", "elder", "elk", "elm", "falcon", "fern",
    "finch", "fox", "grove", "hare", "hart", "hawk", "hazel", "hedge", "heron", "holly",
    "ivy", "jay", "juniper", "kite", "lark", "larch", "linden", "lynx", "maple", "marten",
    "moss", "oak", "otter", "owl", "pine", "poplar", "raven", "roe", "rowan", "spruce",
    "stag", "stoat", "swan", "thicket", "thrush", "willow", "wolf", "wren", "yew",
)  # fmt: skip


def check_key(key: str | None, what: str) -> str:
    """Return the key of a metric, parameter or tag when it may be one.

    `what` names it in the message: `metrics[3].key`.

    Raises:
        Invalid: missing, too long, with other characters than letters, digits, `_-. :/`, or one
            that means another path when it is taken for a file's name.
    """
    if not key:
        raise Invalid(f"Missing value for required parameter '{what}'.")
    if reason := _why_no_key(key):
        raise Invalid(f"Invalid value {key[:MAX_KEY]!a} for parameter '{what}' supplied: {reason}")
    return key


@lru_cache(maxsize=10_000)
def _why_no_key(key: str) -> str:
    """Empty when it may be one. Remembered, since the same few come with every batch."""
    if len(key) > MAX_KEY:
        return f"it exceeds the maximum length of {MAX_KEY} characters"
    if not _KEY.match(key):
        return (
            "Names may only contain alphanumerics, underscores (_), dashes (-), periods (.), "
            "spaces ( ), colon(:) and slashes (/)."
        )
    plain = posixpath.normpath(key)
    if plain != key or plain == "." or plain.startswith(("..", "/")):
        return (
            "Names may be treated as files in certain cases, and must not resolve to other names "
            f"when treated as such. This name would resolve to {plain!a}"
        )
    return ""


def check_text(value: str | None, what: str, limit: int) -> str:
    """Return the text, empty for None.

    Raises:
        Invalid: it is longer than `limit` characters, or holds what no database keeps: NUL, or
            half of a surrogate pair.
    """
    text = value or ""
    if len(text) > limit:
        raise Invalid(f"'{what}' exceeds the maximum length of {limit} characters")
    if "\0" in text or _HALF.search(text):
        raise Invalid(f"'{what}' must be valid Unicode text without the character NUL")
    return text


def param_value(value: str | None, what: str) -> str:
    """Return a parameter's value, cut to its limit."""
    return check_text((value or "")[:MAX_PARAM_VALUE], what, MAX_PARAM_VALUE)


def tag_value(value: str | None, what: str) -> str:
    """Return a run's tag's value, cut to its limit."""
    return check_text((value or "")[:MAX_TAG_VALUE], what, MAX_TAG_VALUE)


def experiment_tag_value(value: str | None) -> str:
    """Return an experiment's tag's value, or raise `Invalid` when it is too long."""
    return check_text(value, "value", MAX_EXPERIMENT_TAG_VALUE)


def check_tag_key(key: str | None, what: str) -> str:
    """As `check_key`; tags that the platform writes are refused too."""
    checked = check_key(key, what)
    if checked in RESERVED_TAGS:
        raise Invalid(
            f"The tag '{checked}' says which step made a run and cannot be changed",
            hint="Use another key.",
        )
    return checked


def check_experiment_name(name: str | None, what: str = "name") -> str:
    """Return an experiment's name.

    Raises:
        Invalid: it is empty, too long, or holds a control character.
    """
    if not name or not name.strip():
        raise Invalid(f"Invalid experiment name: {name or ''!a}")
    if any(ord(c) < 32 or ord(c) == 127 for c in name):
        raise Invalid(f"'{what}' must not contain control characters")
    return check_text(name, what, MAX_EXPERIMENT_NAME)


def check_model_name(name: str) -> str:
    """Return a logged model's name.

    Raises:
        Invalid: it is too long or holds one of the characters that model addresses give meaning.
    """
    if any(c in "/:.%\"'" for c in name) or not name.strip():
        raise Invalid(
            f"Invalid model name ({name!a}) provided. Model name must be a non-empty string "
            "and cannot contain the following characters: ('/', ':', '.', '%', '\"', \"'\")"
        )
    return check_text(name, "name", MAX_MODEL_NAME)


def made_up_name(chance: int) -> str:
    """A name such as `swift-rowan-417` out of random bits."""
    chance, number = divmod(chance, 1_000)
    chance, noun = divmod(chance, len(_NOUNS))
    return f"{_ADJECTIVES[chance % len(_ADJECTIVES)]}-{_NOUNS[noun]}-{number}"


def make_experiment_id(chance: int) -> int:
    """An id of 15 digits out of random bits: it tells nobody how many others there are."""
    return _LOWEST_ID + chance % _IDS


def parse_experiment_id(text: str | None) -> int:
    """Read an experiment's id.

    Raises:
        Invalid: it is not a number.
    """
    if not text or not _EXPERIMENT_ID.match(text) or int(text) > INT64_MAX:
        raise Invalid(
            f"Invalid experiment ID {text or ''!a}. Experiment ID must be a valid integer."
        )
    return int(text)


def parse_run_uid(text: str | None) -> str:
    """Read a tracked run's id: 32 hexadecimal digits.

    Raises:
        Invalid: nothing was given.
        NotFound: no run can have this id.
    """
    if not text:
        raise Invalid("Missing value for required parameter 'run_id'.")
    if not _RUN_UID.match(text):
        raise no_run(text)
    return text


def parse_model_id(text: str | None) -> str:
    """Read a logged model's id and return its 32 hexadecimal digits.

    Raises:
        Invalid: nothing was given.
        NotFound: no model can have this id.
    """
    if not text:
        raise Invalid("Missing value for required parameter 'model_id'.")
    match = _MODEL_ID.match(text)
    if match is None:
        raise no_model(text)
    return match[1]


def no_run(uid: str) -> NotFound:
    """The one answer for runs that are not there and for runs of other people's projects."""
    return NotFound(f"Run with id={uid[:64]!a} not found")


def no_model(model_id: str) -> NotFound:
    """The same for logged models."""
    return NotFound(f"Logged model with ID {model_id[:64]!a} not found.")


def no_experiment(what: str) -> NotFound:
    """The same for experiments; `what` is an id or a name."""
    return NotFound(f"Could not find experiment with {what}")
