"""The bounds of placement, kept resident: rules are read when their version changed, the ledger
of those groups in which something waits every time."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Mapping
from collections.abc import Set as AbstractSet

from verderer.core.governance.model import Account, Bounds, Ground, Holding, Order
from verderer.core.governance.routing import Grant
from verderer.store.database import Row, Tx
from verderer.store.tables.governed import grants, groups, ledger


class ResidentBounds:
    """One process's view of who may use what."""

    def __init__(self) -> None:
        self.version = 0
        """Of the rules that were read last; 0: none were."""
        self.now = 0.0
        """The database's Unix time at that moment."""
        self._groups: list[Row] = []
        self._grants: Mapping[int, tuple[Grant, ...]] = {}
        self._granted: Mapping[int, frozenset[int]] = {}
        self._until = 0.0

    async def look(self, tx: Tx, waiting: Collection[tuple[int, int]]) -> Bounds:
        """The rules of now, with the accounts of those groups in which something waits.

        `waiting` holds pairs of a project and a group.
        """
        wanted = {group for _, group in waiting}
        await self.learn(tx, {project for project, _ in waiting})
        accounts: defaultdict[int, dict[str, Account]] = defaultdict(dict)
        holdings: defaultdict[int, defaultdict[int, dict[str, Holding]]] = defaultdict(
            lambda: defaultdict(dict)
        )
        for row in await ledger.of_groups(tx, sorted(wanted)):
            group, project, resource = row["resource_group_id"], row["project_id"], row["resource"]
            if project == ledger.WHOLE:
                accounts[group][resource] = Account(row["quota"], row["reserved"])
            else:
                holdings[group][project][resource] = Holding(row["reserved"], row["recent"])
        return Bounds(
            grounds={
                row["id"]: _ground(row, accounts[row["id"]], holdings[row["id"]])
                for row in self._groups
                if row["id"] in wanted
            },
            granted=self._granted,
        )

    async def learn(self, tx: Tx, projects: AbstractSet[int]) -> None:
        """Read the rules anew if they changed, or if one of `projects` is new."""
        version, now = await groups.version(tx)
        self.now = now
        if version != self.version or not projects <= self._grants.keys():
            self._groups = await groups.all_groups(tx)
            self._grants = await grants.all_grants(tx)
            self.version = version
            self._until = now
        if now >= self._until:  # a grant is over
            ends = (g.until for given in self._grants.values() for g in given if g.until)
            self._until = min((end for end in ends if end > now), default=math.inf)
            self._granted = {
                project: frozenset(g.group for g in given if g.holds(now))
                for project, given in self._grants.items()
            }

    def grants_of(self, project: int) -> tuple[Grant, ...]:
        """What the project may use, expired grants included, as last learnt."""
        return self._grants.get(project, ())


def _ground(
    row: Row,
    accounts: Mapping[str, Account],
    holdings: Mapping[int, Mapping[str, Holding]],
) -> Ground:
    return Ground(
        id=row["id"],
        name=row["name"],
        clusters=None if row["every_cluster"] else frozenset(row["clusters"]),
        order=Order(row["queue_order"]),
        accounts=accounts,
        holdings=holdings,
    )
