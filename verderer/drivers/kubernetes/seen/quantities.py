"""Kubernetes' quantities as our integers, and back.

What people write is read strictly by `core.model.resources`; what a cluster says is read
generously here: a node with an odd amount is still a node.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Final

from verderer.core.model.resources import (
    MAX_AMOUNT,
    Resources,
    counts_bytes,
    format_quantity,
    parse_quantity,
)

_SUFFIXES: Final = {
    **{unit: Decimal(1024) ** (i + 1) for i, unit in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi"))},
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    **{unit: Decimal(1000) ** (i + 1) for i, unit in enumerate("kMGTP")},
}
_IGNORED: Final = frozenset({"pods"})


def amount(text: str, *, resource: str, up: bool = False) -> int:
    """Base units of `resource`, rounded down (`up`: up); 0 for what cannot be read."""
    try:
        return parse_quantity(text, resource=resource)
    except ValueError:
        pass
    try:
        exact = _decimal(text) * (1 if counts_bytes(resource) else 1000)
        whole = math.ceil(exact) if up else math.floor(exact)
    except (InvalidOperation, ValueError, OverflowError):
        return 0
    return min(max(0, whole), MAX_AMOUNT)


def _decimal(text: str) -> Decimal:
    for size in (2, 1):
        factor = _SUFFIXES.get(text[-size:])
        if factor is not None:
            return Decimal(text[:-size]) * factor
    return Decimal(text)


def offered(amounts: Mapping[str, str]) -> Resources:
    """What a node's `allocatable` or `capacity` gives; places for pods are not counted."""
    return Resources.of(
        {
            name: amount(text, resource=name)
            for name, text in amounts.items()
            if name not in _IGNORED and not name.startswith("attachable-volumes-")
        }
    )


def asked(containers: Iterable[Mapping[str, str]]) -> dict[str, int]:
    """The sum of several containers' requests."""
    total: dict[str, int] = {}
    for requests in containers:
        for name, text in requests.items():
            total[name] = total.get(name, 0) + amount(text, resource=name, up=True)
    return total


def most(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    """The larger of two amounts, resource by resource."""
    return {name: max(one.get(name, 0), other.get(name, 0)) for name in {*one, *other}}


def written(amounts: Resources) -> dict[str, str]:
    """For a manifest."""
    return {name: format_quantity(value, resource=name) for name, value in amounts.items()}
