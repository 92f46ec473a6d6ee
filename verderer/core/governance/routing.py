"""Which resource group a run belongs to: decided once, at submission, and never by the run alone.

The project's grants say which groups there are to choose from. A label, a name in the document or
in the request only ever chooses among these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from verderer.core.errors import NotAllowed
from verderer.core.governance.model import GrantKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """One resource group that a project may use."""

    group: int
    name: str
    kind: GrantKind
    labels: Mapping[str, str] = field(default_factory=dict)
    """What a run's labels must say to be let in."""
    until: float | None = None
    """Unix time from which on it is over; None: it stays."""

    def holds(self, now: float) -> bool:
        return self.until is None or now < self.until

    def takes(self, labels: Mapping[str, str]) -> bool:
        return all(labels.get(key) == value for key, value in self.labels.items())


def route(grants: Sequence[Grant], *, labels: Mapping[str, str], asked: str, now: float) -> Grant:
    """The grant that a run with these labels goes under; `asked` names a group or is empty.

    Without a name it is the default group; where that does not take the labels, the first optional
    one that has a rule about labels which they follow.

    Raises:
        NotAllowed: `no_resource_group`: the project may use none; `not_granted`: not the one that
            was asked for; `label_policy`: none that it may use takes runs with these labels.
    """
    held = sorted(
        (g for g in grants if g.holds(now)), key=lambda g: (g.kind is not GrantKind.DEFAULT, g.name)
    )
    if asked:
        return _the_one(held, labels, asked)
    for grant in held:
        if grant.takes(labels) and (grant.kind is GrantKind.DEFAULT or grant.labels):
            return grant
    raise _refusal(held, labels)


def _the_one(held: Sequence[Grant], labels: Mapping[str, str], asked: str) -> Grant:
    found = next((g for g in held if g.name == asked), None)
    if found is None:
        has = ", ".join(g.name for g in held) or "none"
        raise NotAllowed(
            f"the project may not use resource group {asked}",
            hint=f"It may use: {has}. An admin of its group can request access to another.",
            code="not_granted",
        )
    if not found.takes(labels):
        raise _breach([found], labels)
    return found


def _refusal(held: Sequence[Grant], labels: Mapping[str, str]) -> NotAllowed:
    if not held:
        return NotAllowed(
            "the project's group may use no resource group",
            hint="A platform admin can give it one under Governance, Resource groups.",
            code="no_resource_group",
        )
    ruled = [g for g in held if not g.takes(labels)]
    if ruled:
        return _breach(ruled, labels)
    names = ", ".join(g.name for g in held)
    return NotAllowed(
        "the project has no default resource group",
        hint=f"Name one in metadata.resourceGroup: {names}.",
        code="no_resource_group",
    )


def _breach(ruled: Sequence[Grant], labels: Mapping[str, str]) -> NotAllowed:
    """Say of each group what it wants and what it got."""
    told, wanted = [], []
    for grant in ruled:
        for key, value in sorted(grant.labels.items()):
            if labels.get(key) != value:
                has = f"{key}: {labels[key]}" if key in labels else f"no label {key}"
                told.append(f"resource group {grant.name} takes runs with {key}: {value} only")
                wanted.append(f"metadata.labels.{key}: {value}")
                told[-1] += f"; this one has {has}"
    return NotAllowed(
        "; ".join(told), hint=f"Set {' or '.join(dict.fromkeys(wanted))}.", code="label_policy"
    )
