"""Amounts of cpu, memory and accelerators: integers in one unit each, never floats.

Memory, storage and huge pages are counted in bytes. Everything else is counted in thousandths
("milli-units"): one core is 1000, one GPU is 1000. Sums of integers cannot drift, so a ledger
that adds and subtracts them stays exact for ever.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Self

CPU: Final = "cpu"
MEMORY: Final = "memory"

MAX_AMOUNT: Final = 2**53
"""The largest amount in base units: beyond it JSON readers elsewhere lose exactness."""

_BYTE_RESOURCES: Final = frozenset({"memory", "ephemeral-storage", "storage"})
_BINARY: Final = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60}
_DECIMAL: Final = {
    "n": -9,
    "u": -6,
    "m": -3,
    "": 0,
    "k": 3,
    "M": 6,
    "G": 9,
    "T": 12,
    "P": 15,
    "E": 18,
}
_QUANTITY: Final = re.compile(
    r"(?P<sign>[+-]?)(?:(?P<whole>[0-9]+)(?:\.(?P<part>[0-9]*))?|\.(?P<bare>[0-9]+))"
    r"(?P<suffix>[KMGTPE]i|[numkMGTPE]?|[eE][+-]?[0-9]{1,3})"
)
_MAX_TEXT: Final = 40
_MAX_EXPONENT: Final = 30


def counts_bytes(resource: str) -> bool:
    """Whether amounts of `resource` are bytes; all others are thousandths."""
    return resource in _BYTE_RESOURCES or resource.startswith("hugepages-")


def is_divisible(resource: str) -> bool:
    """Whether less than a whole unit can be asked for: true of cpu alone."""
    return resource == CPU


def may_overcommit(resource: str) -> bool:
    """Whether a limit may exceed its request: not for devices and huge pages, never shared."""
    return resource in _BYTE_RESOURCES or resource == CPU


@dataclass(frozen=True, slots=True)
class Resources:
    """How much of each resource: sorted pairs of name and amount, without zeros.

    Make one with `of`; two with the same amounts are equal and hash alike. Units are bytes or
    thousandths, see `counts_bytes`.
    """

    pairs: tuple[tuple[str, int], ...] = ()

    @classmethod
    def of(cls, amounts: Mapping[str, int]) -> Self:
        """Build from amounts in base units, dropping zeros.

        Raises:
            ValueError: an amount is negative.
        """
        for name, amount in amounts.items():
            if amount < 0:
                raise ValueError(f"{name} cannot be negative, and is {amount}")
        return cls(tuple(sorted((name, amount) for name, amount in amounts.items() if amount)))

    def get(self, name: str) -> int:
        """The amount of `name` in base units; 0 when it is not here."""
        for known, amount in self.pairs:
            if known == name:
                return amount
        return 0

    def items(self) -> tuple[tuple[str, int], ...]:
        """Pairs of name and amount, by name."""
        return self.pairs

    def as_dict(self) -> dict[str, int]:
        """A new dictionary of the amounts in base units."""
        return dict(self.pairs)

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self.pairs)

    def __bool__(self) -> bool:
        return bool(self.pairs)

    def __add__(self, other: Resources) -> Resources:
        if not other.pairs:
            return self
        total = dict(self.pairs)
        for name, amount in other.pairs:
            total[name] = total.get(name, 0) + amount
        return Resources(tuple(sorted(total.items())))

    def __sub__(self, other: Resources) -> Resources:
        """What is left. Raises ValueError when something would fall below zero."""
        if not other.pairs:
            return self
        rest = dict(self.pairs)
        for name, amount in other.pairs:
            rest[name] = rest.get(name, 0) - amount
        return Resources.of(rest)

    def scaled(self, times: int) -> Resources:
        """The same for `times` nodes. Raises ValueError when `times` is negative."""
        return Resources.of({name: amount * times for name, amount in self.pairs})

    def fits_in(self, other: Resources) -> bool:
        """Whether `other` has at least this much of everything named here."""
        room = dict(other.pairs)
        return all(amount <= room.get(name, 0) for name, amount in self.pairs)

    def shortfall(self, other: Resources) -> Resources:
        """What `other` lacks to hold this; empty exactly when this `fits_in` it."""
        room = dict(other.pairs)
        lack = ((name, amount - room.get(name, 0)) for name, amount in self.pairs)
        return Resources(tuple((name, amount) for name, amount in lack if amount > 0))

    def __str__(self) -> str:
        return (
            ", ".join(f"{n} {format_quantity(v, resource=n)}" for n, v in self.pairs) or "nothing"
        )


NOTHING: Final = Resources()


def parse_quantity(text: str, *, resource: str) -> int:
    """Read a Kubernetes quantity (`500m`, `1.5`, `2Gi`, `1e3`) as base units of `resource`.

    Zero is read as 0: whether it makes sense is the caller's to say.

    Raises:
        ValueError: not a quantity, negative, beyond `MAX_AMOUNT`, or finer than the unit: less
            than a thousandth of a core, part of a byte, part of a device. The text is a sentence
            for a person.
    """
    found = _QUANTITY.fullmatch(text) if len(text) <= _MAX_TEXT else None
    if found is None:
        raise ValueError(
            f"{_shown(text)} is not a quantity; write a number with an optional unit, "
            f"such as {_example(resource)}"
        )
    digits = found["whole"] or ""
    part = found["part"] or found["bare"] or ""
    number, exponent, factor = int(digits + part), -len(part), 1
    if found["sign"] == "-" and number:
        raise ValueError(f"{resource} cannot be negative, and is {text}")
    suffix = found["suffix"]
    if suffix in _BINARY:
        factor = _BINARY[suffix]
    elif suffix in _DECIMAL:
        exponent += _DECIMAL[suffix]
    else:
        exponent += int(suffix[1:])
    return _in_base_units(text, resource, number * factor, exponent)


def _in_base_units(text: str, resource: str, number: int, exponent: int) -> int:
    """Scale `number * 10**exponent` to base units, refusing what does not fit them exactly."""
    if number == 0:
        return 0
    if not counts_bytes(resource):
        exponent += 3
    if exponent > _MAX_EXPONENT:
        raise ValueError(f"{text} of {resource} is more than can be counted")
    scale: int = 10 ** abs(exponent)
    amount, rest = (number * scale, 0) if exponent >= 0 else divmod(number, scale)
    if amount > MAX_AMOUNT:
        raise ValueError(f"{text} of {resource} is more than can be counted")
    if too_fine := _too_fine(text, resource, amount, rest):
        raise ValueError(too_fine)
    return amount


def _too_fine(text: str, resource: str, amount: int, rest: int) -> str:
    """Why an amount is finer than the unit of `resource`; empty when it is not."""
    if counts_bytes(resource):
        return f"{text} of {resource} is not a whole number of bytes" if rest else ""
    if is_divisible(resource):
        return f"{text} of {resource} is finer than 1m, a thousandth of a core" if rest else ""
    if rest or amount % 1000:
        return f"{resource} is handed out whole, and {text} is not a whole number"
    return ""


def format_quantity(value: int, *, resource: str) -> str:
    """Write base units for a person, exactly: `parse_quantity` gives `value` back.

    Bytes take the largest unit that divides them (`512Mi`, `1G`, `1234567`), cores are whole or
    in thousandths (`2`, `1500m`). A part of a device, which only a sum or a difference can be, is
    written in thousandths and not read back.
    """
    if counts_bytes(resource):
        return _format_bytes(value)
    whole, rest = divmod(value, 1000)
    return f"{value}m" if rest else str(whole)


def _format_bytes(value: int) -> str:
    if value == 0:
        return "0"
    for suffix, size in reversed(_BINARY.items()):
        if value % size == 0:
            return f"{value // size}{suffix}"
    for suffix, power in reversed(_DECIMAL.items()):
        if power > 0 and value % 10**power == 0:
            return f"{value // 10**power}{suffix}"
    return str(value)


def _example(resource: str) -> str:
    if counts_bytes(resource):
        return "512Mi or 2Gi"
    return "500m or 2" if is_divisible(resource) else "1 or 8"


def _shown(text: str) -> str:
    return repr(text if len(text) <= _MAX_TEXT else text[: _MAX_TEXT - 3] + "...")
