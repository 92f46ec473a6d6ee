"""What a person writes about a resource group, checked."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from verderer.core.errors import Invalid, Problem
from verderer.core.governance.model import Order
from verderer.core.labels import check_title
from verderer.core.model.resources import format_quantity, parse_quantity

MAX_LABELS: Final = 16
MAX_QUOTAS: Final = 64
_MOST_SHOWN: Final = len("quota.") + 63
_NAME = re.compile(r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}\w)?")
"""Of a label or a resource."""
_VALUE = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """A resource group as a person wants it."""

    title: str = ""
    clusters: tuple[str, ...] | None = None
    """Their cluster_ids; None: every cluster, those that join later too."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """What a run's labels must say to be let in."""
    order: Order = Order.FAIR
    quota: Mapping[str, int] = field(default_factory=dict)
    """By resource, milli-units or bytes; what is not named is unlimited."""


def read_definition(
    *,
    title: str,
    clusters: Sequence[str] | None,
    labels: Mapping[str, str],
    order: str,
    quota: Mapping[str, str],
) -> Definition:
    """Check what was written; quantities as Kubernetes writes them.

    Raises:
        Invalid: with a problem for each field that is wrong.
    """
    named = {name: text for name, text in quota.items() if _NAME.fullmatch(name)}
    amounts, wrong = _amounts(named)
    problems = [*_labels(labels), *_sizes(labels, quota), *wrong]
    problems += [
        Problem(field=f"quota.{name}", message="is not the name of a resource")
        for name in quota
        if name not in named
    ]
    if order not in tuple(Order):
        wanted = " or ".join(Order)
        problems.append(Problem(field="order", message=f"is {order!r}", hint=f"Write {wanted}."))
    if problems:
        raise Invalid("the resource group is not as it should be", problems=problems)
    return Definition(
        title=check_title(title, field="title"),
        clusters=None if clusters is None else tuple(dict.fromkeys(clusters)),
        labels=dict(labels),
        order=Order(order),
        quota=amounts,
    )


def read_quota(quota: Mapping[str, str]) -> dict[str, int]:
    """Amounts as Kubernetes writes them, in base units.

    Raises:
        Invalid: with a problem for each that cannot be read.
    """
    amounts, problems = _amounts(quota)
    if problems:
        shown = [replace(one, field=one.field[:_MOST_SHOWN]) for one in problems]
        raise Invalid("a quota is not as it should be", problems=shown)
    return amounts


def write_quota(quota: Mapping[str, int]) -> dict[str, str]:
    """Quotas as `read_definition` reads them."""
    return {name: format_quantity(n, resource=name) for name, n in sorted(quota.items())}


def _amounts(quota: Mapping[str, str]) -> tuple[dict[str, int], list[Problem]]:
    found, problems = {}, []
    for name, text in quota.items():
        try:
            found[name] = parse_quantity(text, resource=name)
        except ValueError as e:
            problems.append(Problem(field=f"quota.{name}", message=str(e)))
    return found, problems


def _labels(labels: Mapping[str, str]) -> list[Problem]:
    found = []
    for key, value in labels.items():
        if not (len(key) <= 317 and _NAME.fullmatch(key)):
            found.append(Problem(field=f"labels.{key[:63]}", message="is not a label's name"))
        elif not _VALUE.fullmatch(value):
            message = "a label's value is 1 to 63 letters, digits, `-`, `_` and `.`"
            found.append(Problem(field=f"labels.{key}", message=message))
    return found


def _sizes(labels: Mapping[str, str], quota: Mapping[str, str]) -> list[Problem]:
    found = []
    if len(labels) > MAX_LABELS:
        found.append(Problem(field="labels", message=f"holds more than {MAX_LABELS} labels"))
    if len(quota) > MAX_QUOTAS:
        found.append(Problem(field="quota", message=f"names more than {MAX_QUOTAS} resources"))
    return found
