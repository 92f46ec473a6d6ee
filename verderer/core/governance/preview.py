"""What a change of a resource group would do to what runs and waits, before it is made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from verderer.core.governance.model import Account


class WaitingLot(NamedTuple):
    """Steps that wait in a group and ask for the same."""

    steps: int
    total: Mapping[str, int]
    """Of one step on all its nodes; milli-units or bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaChange:
    """What becomes of one resource's quota. None: no quota."""

    resource: str
    before: int | None
    after: int | None
    reserved: int

    @property
    def sinks(self) -> bool:
        """More is reserved than the new quota: it follows down as work ends, and stops none."""
        return self.after is not None and self.reserved > self.after


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """The effects, worst first for whoever reads them."""

    never: int
    """Waiting steps that ask for more than a whole new quota."""
    freed: int
    """Waiting steps that could not start for such a quota and may now."""
    quotas: tuple[QuotaChange, ...]
    """Those that change."""
    leaving: Mapping[str, int]
    """Clusters that leave the group, with the attempts that go on there until they end."""
    joining: tuple[str, ...]


def preview(
    *,
    accounts: Mapping[str, Account],
    quota: Mapping[str, int],
    waiting: Sequence[WaitingLot],
    leaving: Mapping[str, int],
    joining: Sequence[str],
) -> Preview:
    """Compare what is with what would be; `accounts` are the group's own of now."""
    before = {name: a.quota for name, a in accounts.items() if a.quota is not None}
    changes = tuple(
        QuotaChange(
            resource=name,
            before=before.get(name),
            after=quota.get(name),
            reserved=accounts[name].reserved if name in accounts else 0,
        )
        for name in sorted(before.keys() | quota.keys())
        if before.get(name) != quota.get(name)
    )
    never = sum(lot.steps for lot in waiting if _beyond(lot, quota))
    freed = sum(lot.steps for lot in waiting if _beyond(lot, before) and not _beyond(lot, quota))
    return Preview(
        never=never, freed=freed, quotas=changes, leaving=dict(leaving), joining=tuple(joining)
    )


def _beyond(lot: WaitingLot, quota: Mapping[str, int]) -> bool:
    return any(amount > quota[name] for name, amount in lot.total.items() if name in quota)
