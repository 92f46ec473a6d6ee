"""Lists, mappings and records of kinds: how the document's shape is read and described."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from verderer.core.pipeline.reading.document import Mapping, Node, Scalar, Sequence, child_path
from verderer.core.pipeline.reading.kinds import Json, Kind, Text, describe
from verderer.core.pipeline.reading.problems import Problems, did_you_mean, listed, shown

T = TypeVar("T")

Raw = dict[str, Any]
"""The fields of a record that could be read; missing and wrong ones are not in it."""


@dataclass(frozen=True)
class ListOf(Kind[list[T | None]], Generic[T]):
    """Items of one kind, in order."""

    item: Kind[T]
    expected: str
    minimum: int = 0
    maximum: int = 10_000
    unique: bool = False

    def read(self, node: Node, path: str, problems: Problems) -> list[T | None] | None:
        """The items; a wrong one leaves None in its place, so that indexes stay true."""
        if not isinstance(node, Sequence):
            problems.add(
                f"expected {self.expected}, found {describe(node)}",
                field=path,
                place=node.place,
                hint=_as_list(node),
            )
            return None
        if not self.minimum <= len(node.items) <= self.maximum:
            problems.add(
                f"expected {self.expected} with {self.minimum:,} to {self.maximum:,} items, "
                f"found {len(node.items):,}",
                field=path,
                place=node.place,
            )
        return self._items(node, path, problems)

    def _items(self, node: Sequence, path: str, problems: Problems) -> list[T | None]:
        items: list[T | None] = []
        seen: dict[str, int] = {}
        for index, child in enumerate(node.items):
            below = f"{path}[{index}]"
            problems.mark(below, child.place)
            items.append(self.item.read(child, below, problems))
            if self.unique and isinstance(child, Scalar):
                if child.text in seen:
                    problems.add(
                        f"{shown(child.text)} is in the list twice",
                        field=below,
                        hint="remove one of them",
                    )
                seen[child.text] = index
        return items

    def schema(self) -> Json:
        found: Json = {"type": "array", "items": self.item.schema(), "maxItems": self.maximum}
        if self.minimum:
            found["minItems"] = self.minimum
        if self.unique and isinstance(self.item, Text) and self.item.pattern:
            # Not for values of any spelling: 1 and 1.0 are two texts and one JSON number.
            found["uniqueItems"] = True
        return found


@dataclass(frozen=True)
class MapOf(Kind[dict[str, T]], Generic[T]):
    """Values of one kind by names of one kind. Pairs that cannot be read are left out."""

    key: Text
    value: Kind[T]
    expected: str
    minimum: int = 0
    maximum: int = 1_000

    def read(self, node: Node, path: str, problems: Problems) -> dict[str, T] | None:
        if not isinstance(node, Mapping):
            problems.add(
                f"expected {self.expected}, found {describe(node)}", field=path, place=node.place
            )
            return None
        if not self.minimum <= len(node.pairs) <= self.maximum:
            problems.add(
                f"expected {self.expected} with {self.minimum:,} to {self.maximum:,} entries, "
                f"found {len(node.pairs):,}",
                field=path,
                place=node.place,
            )
        values: dict[str, T] = {}
        for name, (key, child) in node.pairs.items():
            below = child_path(path, name)
            problems.mark(below, child.place)
            self.key.read(Scalar(key.place, name, plain=False), below, problems)
            value = self.value.read(child, below, problems)
            if value is not None:
                values[name] = value
        return values

    def schema(self) -> Json:
        key = {k: v for k, v in self.key.schema().items() if k != "type"}
        found: Json = {
            "type": "object",
            "propertyNames": key,
            "additionalProperties": self.value.schema(),
            "maxProperties": self.maximum,
        }
        if self.minimum:
            found["minProperties"] = self.minimum
        return found


@dataclass(frozen=True)
class Field:
    """One field of a record."""

    name: str
    kind: Kind[Any]
    description: str
    required: bool = False
    default: Any = None
    """What leaving it out means, for the schema; the values of `spec` set it."""
    also: tuple[str, ...] = ()
    """What people write who know the field from elsewhere; only for hints."""


@dataclass(frozen=True)
class Record(Kind[Raw]):
    """A mapping with known fields."""

    name: str
    fields: tuple[Field, ...]
    example: str = ""

    def read(self, node: Node, path: str, problems: Problems) -> Raw | None:
        if not isinstance(node, Mapping):
            problems.add(
                f"expected {self.name}, found {describe(node)}",
                field=path,
                place=node.place,
                hint=self.example and f"such as {self.example}",
            )
            return None
        known = {field.name: field for field in self.fields}
        values: Raw = {}
        for name, (key, child) in node.pairs.items():
            below = child_path(path, name)
            field = known.get(name)
            if field is None:
                self._unknown(key, below, problems)
                continue
            problems.mark(below, child.place)
            value = field.kind.read(child, below, problems)
            if value is not None:
                values[name] = value
        for field in self.fields:
            if field.required and field.name not in node.pairs:
                problems.add(
                    f"{self.name} needs `{field.name}`",
                    field=child_path(path, field.name),
                    place=node.place,
                    hint=field.description,
                )
        return values

    def _unknown(self, key: Scalar, path: str, problems: Problems) -> None:
        name = key.text
        names = [field.name for field in self.fields]
        folded = re.sub(r"[-_ ]", "", name.lower())
        meant = next((f.name for f in self.fields if folded in f.also), "")
        meant = meant or problems.nearest(name, names)
        problems.add(
            f"{self.name} has no field {shown(name)}",
            field=path,
            place=key.place,
            hint=did_you_mean(meant) or f"its fields are {listed(names)}",
        )

    def schema(self) -> Json:
        properties: Json = {}
        for field in self.fields:
            # Keywords beside `$ref`, `anyOf` and the rest are allowed since draft 2019-09.
            properties[field.name] = {"description": field.description, **field.kind.schema()}
            if field.default is not None:
                properties[field.name]["default"] = field.default
        found: Json = {"type": "object", "properties": properties, "additionalProperties": False}
        if required := [field.name for field in self.fields if field.required]:
            found["required"] = required
        return found


@dataclass(frozen=True)
class Either(Kind[Any]):
    """A short form, which is one text, or a long form, which is a mapping."""

    short: Kind[Any]
    long: Record
    expected: str
    """Both forms in words, for when it is neither."""

    def read(self, node: Node, path: str, problems: Problems) -> Any:
        if isinstance(node, Mapping):
            return self.long.read(node, path, problems)
        if isinstance(node, Scalar):
            return self.short.read(node, path, problems)
        problems.add(
            f"expected {self.expected}, found {describe(node)}", field=path, place=node.place
        )
        return None

    def schema(self) -> Json:
        return {"anyOf": [self.short.schema(), self.long.schema()]}


def _as_list(node: Node) -> str:
    if isinstance(node, Scalar) and not node.is_null and len(node.text) < 60:
        return f"write it as a list: [{node.text}]"
    return ""
