"""What a single text of the document can stand for, each with its reader and its JSON Schema.

A reader never raises: it notes what is wrong and returns None. A text of the right type that
breaks a rule is noted and returned all the same, so that one mistake does not make others.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Generic, TypeVar

from verderer.core.pipeline.limits import MAX_SECONDS, MAX_TEXT
from verderer.core.pipeline.reading.document import Mapping, Node, Scalar, Sequence
from verderer.core.pipeline.reading.problems import Problems, did_you_mean, listed, shown

T = TypeVar("T")
Json = dict[str, Any]

_INT: Final = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_TRUE: Final = ("true", "True", "TRUE")
_FALSE: Final = ("false", "False", "FALSE")
_DURATION: Final = "(?=[0-9])([0-9]{1,9}d)?([0-9]{1,9}h)?([0-9]{1,9}m)?([0-9]{1,9}s)?"
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_MAX_DIGITS: Final = 18


class Kind(ABC, Generic[T]):
    """What a field may hold."""

    @abstractmethod
    def read(self, node: Node, path: str, problems: Problems) -> T | None:
        """The value of `node`, or None when there is none, which is then noted."""

    @abstractmethod
    def schema(self) -> Json:
        """The same rule as JSON Schema, as far as one can say it there."""


def is_int(text: str) -> bool:
    """Whether YAML 1.2 reads a plain text as an integer."""
    return _INT.fullmatch(text) is not None


def is_float(text: str) -> bool:
    """Whether YAML 1.2 reads a plain text as a finite number, integers included."""
    return _FLOAT.fullmatch(text) is not None


def is_bool(text: str) -> bool:
    """Whether YAML 1.2 reads a plain text as true or false."""
    return text in _TRUE or text in _FALSE


def describe(node: Node) -> str:
    """What stands at `node`, for "found …"."""
    match node:
        case Sequence():
            return "a list"
        case Mapping():
            return "a mapping"
        case Scalar() if node.is_null:
            return "nothing"
        case _:
            return shown(node.text if node.plain else f'"{node.text}"')


def scalar(node: Node, path: str, expected: str, problems: Problems) -> Scalar | None:
    """The scalar at `node`, which must say something; notes and gives None otherwise."""
    if isinstance(node, Scalar) and not node.is_null:
        return node
    hint = ""
    if isinstance(node, Scalar):
        hint = 'leave the field out, or write "" for an empty text'
    problems.add(
        f"expected {expected}, found {describe(node)}", field=path, place=node.place, hint=hint
    )
    return None


@dataclass(frozen=True)
class Text(Kind[str]):
    """Any text, as written: `on`, `012` and dates are not turned into anything else."""

    expected: str = "a text"
    pattern: str = ""
    """Matches the whole text, and means the same in Python and in ECMAScript."""
    min_length: int = 0
    max_length: int = MAX_TEXT
    choices: tuple[str, ...] = ()
    hint: str = ""
    mend: Callable[[str], str] | None = None
    """Makes the nearest valid spelling, or the empty text."""

    def read(self, node: Node, path: str, problems: Problems) -> str | None:
        found = scalar(node, path, self.expected, problems)
        if found is None:
            return None
        text = found.text
        if wrong := self._wrong(text, problems):
            message, hint = wrong
            problems.add(message, field=path, place=found.place, hint=hint)
        return text

    def _wrong(self, text: str, problems: Problems) -> tuple[str, str] | None:
        if self.choices:
            if text in self.choices:
                return None
            near = did_you_mean(problems.nearest(text, self.choices))
            return f"expected {listed(self.choices)}, found {shown(text)}", near
        if unfit := _unfit(text):
            return unfit, "remove it"
        if len(text) < self.min_length:
            return f"expected {self.expected}, found an empty text", self.hint
        if len(text) > self.max_length:
            found = f"found {len(text):,} characters, and {self.max_length:,} is the limit"
            return f"expected {self.expected}, {found}", "shorten it"
        if _bytes(text) > MAX_TEXT:
            found = f"found {_bytes(text):,} bytes, and {MAX_TEXT:,} is the limit"
            return f"expected {self.expected}, {found}", "put long texts into the image or a file"
        if self.pattern and not re.fullmatch(self.pattern, text):
            mended = self.mend(text) if self.mend else ""
            hint = did_you_mean(mended) or about_references(text) or self.hint
            return f"expected {self.expected}, found {shown(text)}", hint
        return None

    def schema(self) -> Json:
        if self.choices:
            return {"enum": list(self.choices)}
        found: Json = {"type": ["string", "number", "boolean"], "maxLength": self.max_length}
        if self.min_length:
            found["minLength"] = self.min_length
        if self.pattern:
            found["pattern"] = f"^(?:{self.pattern})$"
        return found


@dataclass(frozen=True)
class Integer(Kind[int]):
    """A whole number within bounds, both included."""

    minimum: int
    maximum: int

    @property
    def expected(self) -> str:
        return f"a whole number from {self.minimum:,} to {self.maximum:,}"

    def read(self, node: Node, path: str, problems: Problems) -> int | None:
        found = scalar(node, path, self.expected, problems)
        if found is None:
            return None
        number = read_int(found.text)
        hint = ""
        if number is not None and not found.plain:
            hint = "remove the quotes"
        elif number is not None and self.minimum <= number <= self.maximum:
            return number
        problems.add(
            f"expected {self.expected}, found {describe(found)}",
            field=path,
            place=found.place,
            hint=hint or about_references(found.text),
        )
        return None

    def schema(self) -> Json:
        return {"type": "integer", "minimum": self.minimum, "maximum": self.maximum}


@dataclass(frozen=True)
class Duration(Kind[int]):
    """A time in seconds: a whole number of them, or `30s`, `10m`, `2h`, `1d`, `1h30m`."""

    minimum: int = 1
    maximum: int = MAX_SECONDS

    _expected: ClassVar[str] = "a time such as 30s, 10m, 2h or 1d (a number alone is seconds)"

    def read(self, node: Node, path: str, problems: Problems) -> int | None:
        found = scalar(node, path, self._expected, problems)
        if found is None:
            return None
        seconds = read_duration(found.text)
        if seconds is not None and self.minimum <= seconds <= self.maximum:
            return seconds
        message = f"expected {self._expected}, found {shown(found.text)}"
        hint = about_references(found.text) or _duration_hint(found.text)
        if seconds is not None:
            message = f"expected a time from {self.minimum} s to {self.maximum // 86_400} days"
            message += f", found {shown(found.text)}"
            hint = "leave it out for no limit" if seconds == 0 else ""
        problems.add(message, field=path, place=found.place, hint=hint)
        return None

    def schema(self) -> Json:
        return {
            "anyOf": [
                {"type": "integer", "minimum": self.minimum, "maximum": self.maximum},
                {"type": "string", "pattern": f"^(?:{_DURATION}|[0-9]{{1,9}})$"},
            ]
        }


@dataclass(frozen=True)
class Value(Kind[Scalar]):
    """A text of which it matters whether it stood in quotes; with `nullable`, or nothing."""

    nullable: bool = False

    def read(self, node: Node, path: str, problems: Problems) -> Scalar | None:
        if self.nullable and isinstance(node, Scalar) and node.is_null:
            return node
        found = scalar(node, path, "a text or a number", problems)
        if found is not None and (unfit := _unfit(found.text)):
            problems.add(unfit, field=path, place=found.place, hint="remove it")
        return found

    def schema(self) -> Json:
        null = ["null"] if self.nullable else []
        return {"type": ["string", "number", "boolean", *null], "maxLength": MAX_TEXT}


def read_int(text: str) -> int | None:
    """The integer that YAML 1.2 reads; None for anything else, or for absurdly many digits."""
    if not is_int(text) or len(text) > _MAX_DIGITS:
        return None
    if text[:2] in ("0o", "0x"):
        return int(text, 0)
    return int(text)


def read_duration(text: str) -> int | None:
    """Seconds of `90`, `30s`, `10m`, `2h`, `1d` or a combination of units from large to small."""
    if text.isdecimal() and text.isascii():
        return int(text) if len(text) <= _MAX_DIGITS else None
    found = re.fullmatch(_DURATION, text)
    if found is None:
        return None
    sizes = (86_400, 3_600, 60, 1)
    return sum(
        int(part[:-1]) * size
        for part, size in zip(found.groups(), sizes, strict=True)
        if part is not None
    )


def _unfit(text: str) -> str:
    """Why no program could be given `text`, whatever the field; empty when one could."""
    if "\0" in text:
        return "a text cannot contain the character NUL"
    if not text.isascii() and _SURROGATE.search(text):
        return "a text cannot contain half a character"
    return ""


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def _duration_hint(text: str) -> str:
    found = re.fullmatch(r"([0-9]{1,9})\s*([smhd])[a-z]*", text.strip().lower())
    return did_you_mean(found[1] + found[2]) if found else ""


def about_references(text: str) -> str:
    """The hint for a reference in a field that fills none in; empty when there is none."""
    if "${{" not in text:
        return ""
    return "`${{ … }}` is filled in only in image, command, args and env"
