"""Turns YAML into a tree of texts, sequences and mappings that remember where they stood.

YAML's parser gives events; the tree is built here from them with a stack of our own, so that
depth, aliases and size are under our limits before anything is made of them, and no tag can ever
construct anything. Scalars stay text: what a text means depends on the field that expects it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

from verderer.core.errors import Invalid
from verderer.core.pipeline.limits import MAX_CHARACTERS, MAX_DEPTH, MAX_VALUES
from verderer.core.pipeline.reading.problems import (
    NOWHERE,
    Place,
    Problems,
    did_you_mean,
    nearest,
    refuse,
    shown,
)
from verderer.core.pipeline.reading.text import place_at

_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_STANDARD_TAG: Final = "tag:yaml.org,2002:"
_TEXT_TAGS: Final = ("!", _STANDARD_TAG + "str")
_PLAIN_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


@dataclass(slots=True)
class Scalar:
    """One text. `plain` says that it stood without quotes, so it may mean a number or nothing."""

    place: Place
    text: str
    plain: bool
    size: int = 1
    weight: int = 0
    height: int = 0

    @property
    def is_null(self) -> bool:
        """Whether nothing is written here, as YAML 1.2 spells nothing."""
        return self.plain and self.text in ("", "~", "null", "Null", "NULL")


@dataclass(slots=True)
class Sequence:
    """Items in order. `size`, `weight` and `height` count values, characters and levels below."""

    place: Place
    items: list[Node] = field(default_factory=list)
    size: int = 1
    weight: int = 0
    height: int = 0


@dataclass(slots=True)
class Mapping:
    """Pairs by their key's text, with the key itself for its place; merged ones come last."""

    place: Place
    pairs: dict[str, tuple[Scalar, Node]] = field(default_factory=dict)
    size: int = 1
    weight: int = 0
    height: int = 0


Node = Scalar | Sequence | Mapping


def child_path(path: str, key: str | int) -> str:
    """The path of an item or of a key's value below `path`."""
    if isinstance(key, str) and _PLAIN_NAME.fullmatch(key):
        return f"{path}.{key}" if path else key
    return f"{path}[{key}]"


def compose(text: str, problems: Problems) -> Node:
    """Build the tree of the one document in `text`.

    Duplicate keys, tags and wrong merges are noted in `problems` and skipped.

    Raises:
        Invalid: not YAML, several documents, none, or larger than the limits.
    """
    try:
        loader = _LOADER(text)
        try:
            return _Composer(problems).run(_events(loader))
        finally:
            loader.dispose()
    except yaml.YAMLError as e:
        raise _not_yaml(e, text) from None
    except (ValueError, OverflowError):
        # The parser written in Python fails so on an escape beyond Unicode.
        raise refuse("an escape in double quotes is not a character") from None


def _events(loader: Any) -> Iterator[Any]:
    while loader.check_event():
        yield loader.get_event()


@dataclass(slots=True)
class _Open:
    """A collection that has not ended yet."""

    node: Sequence | Mapping
    anchor: str | None
    key: Scalar | None = None
    merges: list[tuple[Scalar, Node]] = field(default_factory=list)


class _Composer:
    """Builds the tree with an explicit stack, counting as it goes."""

    def __init__(self, problems: Problems) -> None:
        self._problems = problems
        self._stack: list[_Open] = []
        self._anchors: dict[str, Node | None] = {}
        self._root: Node | None = None
        self._size = 0
        self._weight = 0

    def run(self, events: Iterator[Any]) -> Node:
        for event in events:
            match event:
                case yaml.ScalarEvent():
                    self._scalar(event)
                case yaml.SequenceStartEvent():
                    self._open(event, Sequence(_place(event)))
                case yaml.MappingStartEvent():
                    self._open(event, Mapping(_place(event)))
                case yaml.CollectionEndEvent():
                    self._close()
                case yaml.AliasEvent():
                    self._alias(event)
                case yaml.DocumentStartEvent() if self._root is not None:
                    raise refuse(
                        "a second document begins here",
                        place=_place(event),
                        hint="send one pipeline at a time; remove `---` and what follows",
                    )
        if self._root is None:
            raise refuse("it is empty", hint="a pipeline has `metadata` and `steps`")
        return self._root

    def _scalar(self, event: Any) -> None:
        plain = not event.style and event.tag is None
        if event.tag is not None and event.tag not in _TEXT_TAGS:
            self._refuse_tag(event)
        node = Scalar(_place(event), event.value, plain, weight=len(event.value))
        self._count(node)
        if event.anchor is not None:
            self._anchors[event.anchor] = node
        self._attach(node)

    def _open(self, event: Any, node: Sequence | Mapping) -> None:
        if event.tag is not None and event.tag != "!":
            self._refuse_tag(event)
        if len(self._stack) >= MAX_DEPTH:
            raise self._too_deep(node.place)
        self._count(node)
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        self._stack.append(_Open(node, event.anchor))

    def _close(self) -> None:
        done = self._stack.pop()
        if isinstance(done.node, Mapping):
            for key, value in done.merges:
                self._merge(done.node, key, value)
        if done.anchor is not None and self._anchors[done.anchor] is None:
            self._anchors[done.anchor] = done.node
        self._attach(done.node)

    def _alias(self, event: Any) -> None:
        name, place = event.anchor, _place(event)
        if name not in self._anchors:
            hint = did_you_mean(nearest(name, self._anchors))
            raise refuse(f"`*{name}` names an anchor that is not defined", place=place, hint=hint)
        node = self._anchors[name]
        if node is None:
            raise refuse(f"`*{name}` stands inside what it names", place=place)
        if len(self._stack) + node.height > MAX_DEPTH:
            raise self._too_deep(place)
        self._count(node, place)
        self._attach(node)

    def _count(self, node: Node, place: Place | None = None) -> None:
        self._size += node.size
        self._weight += node.weight
        if self._size > MAX_VALUES:
            too_much = f"{MAX_VALUES:,} values"
        elif self._weight > MAX_CHARACTERS:
            too_much = f"{MAX_CHARACTERS:,} characters"
        else:
            return
        raise refuse(
            f"it has more than {too_much}, counting what aliases repeat",
            place=place or node.place,
            hint="shorten it, and do not let aliases repeat aliases",
        )

    def _attach(self, node: Node) -> None:
        if not self._stack:
            self._root = node
            return
        top = self._stack[-1]
        parent = top.node
        parent.size += node.size
        parent.weight += node.weight
        parent.height = max(parent.height, node.height + 1)
        if isinstance(parent, Sequence):
            parent.items.append(node)
        elif top.key is None:
            top.key = self._as_key(node)
        else:
            self._add_pair(top, parent, top.key, node)
            top.key = None

    def _as_key(self, node: Node) -> Scalar:
        if isinstance(node, Scalar):
            return node
        raise refuse(
            "a key must be a text, and this is a list or a mapping",
            place=node.place,
            field=self._path(),
            hint="a value that begins with `{` or `[` needs quotes",
        )

    def _add_pair(self, top: _Open, parent: Mapping, key: Scalar, node: Node) -> None:
        if key.plain and key.text == "<<":
            top.merges.append((key, node))
        elif (first := parent.pairs.get(key.text)) is not None:
            self._problems.add(
                f"{shown(key.text)} is given twice; it was first given on line "
                f"{first[0].place.line}",
                field=self._path(),
                place=key.place,
                hint="keep one of the two",
            )
        else:
            parent.pairs[key.text] = (key, node)

    def _merge(self, into: Mapping, key: Scalar, value: Node) -> None:
        for source in value.items if isinstance(value, Sequence) else [value]:
            if not isinstance(source, Mapping):
                self._problems.add(
                    "`<<` merges mappings, and this is not one",
                    field=self._path(),
                    place=key.place,
                    hint="write `<<: *name`, where `&name` marks a mapping",
                )
                continue
            for name, pair in source.pairs.items():
                into.pairs.setdefault(name, pair)

    def _path(self) -> str:
        path = ""
        for frame in self._stack:
            if isinstance(frame.node, Sequence):
                path = child_path(path, len(frame.node.items))
            elif frame.key is not None:
                path = child_path(path, frame.key.text)
        return path

    def _refuse_tag(self, event: Any) -> None:
        tag = event.tag
        if tag.startswith(_STANDARD_TAG):
            tag = "!!" + tag.removeprefix(_STANDARD_TAG)
        self._problems.add(
            f"the tag {shown(tag)} is not allowed",
            field=self._path(),
            place=_place(event),
            hint="remove it: every field knows what it expects",
        )

    def _too_deep(self, place: Place) -> Invalid:
        return refuse(f"it is nested more than {MAX_DEPTH} levels deep", place=place)


def _place(event: Any) -> Place:
    start = event.start_mark
    return Place(start.line + 1, start.column + 1, start.index, event.end_mark.index)


_HINTS: Final = (
    ("cannot start any token", "indent with spaces, and quote texts that begin with @, ` or %"),
    ("mapping values are not allowed", "quote a text that contains `: `"),
    ("could not find expected ':'", "a key needs a colon and a space after it"),
    ("<document start>", "a key needs a colon and a space after it, and a text needs quotes"),
    ("did not find expected", "check the indentation, brackets and quotes just above"),
    ("exceeded maximum nesting depth", f"{MAX_DEPTH} levels are the limit"),
    ("found unexpected end of stream", "a quote or a bracket is not closed"),
)


def _not_yaml(error: yaml.YAMLError, text: str) -> Invalid:
    if not isinstance(error, yaml.MarkedYAMLError):
        index = getattr(error, "position", None)
        place = place_at(text, index) if isinstance(index, int) else NOWHERE
        return refuse("it is not YAML", place=place)
    mark = error.problem_mark or error.context_mark
    place = (
        NOWHERE if mark is None else Place(mark.line + 1, mark.column + 1, mark.index, mark.index)
    )
    problem = error.problem or "it is not YAML"
    context = f" {error.context}" if error.context else ""
    hint = next((hint for part, hint in _HINTS if part in problem), "")
    return refuse(f"not YAML{context}: {problem}", place=place, hint=hint)
