"""The ledger: what is reserved of a resource group, in all and by project."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from verderer.core.errors import Conflict
from verderer.core.governance.shares import HALF_LIFE_S
from verderer.store.database import Row, Tx, columns

WHOLE: Final = 0
"""Stands where a project's id would: the row of the whole group."""

# The mean of what was reserved, see `core.governance.shares.decayed_mean`.
_KEPT = f"power(0.5, greatest(0, extract(epoch FROM now() - l.as_of))::float8 / {HALF_LIFE_S})"
_RECENT = f"l.recent * {_KEPT} + l.reserved * (1 - {_KEPT})"

# Rules are held until the transaction ends; with them what is left of each group.
_OPEN = """
    WITH rules AS MATERIALIZED (SELECT version FROM governance FOR SHARE)
    SELECT r.version, l.resource_group_id, l.resource, l.quota - l.reserved AS free
      FROM rules AS r
      LEFT JOIN ledger AS l ON l.resource_group_id = ANY($1) AND l.project_id = 0
                           AND l.quota IS NOT NULL
"""
# Everybody takes rows in one order. A row whose quota has no room for it is left as it is.
_TAKE = f"""
    INSERT INTO ledger AS l (resource_group_id, project_id, resource, reserved)
    SELECT * FROM unnest($1::int[], $2::int[], $3::text[], $4::bigint[])
     ORDER BY 1, 2, 3
        ON CONFLICT (resource_group_id, project_id, resource) DO UPDATE
       SET recent = {_RECENT}, as_of = greatest(l.as_of, now()),
           reserved = l.reserved + excluded.reserved
     WHERE l.quota IS NULL OR l.reserved + excluded.reserved <= l.quota
"""  # noqa: S608 - of constants
_GIVE = f"""
    WITH held AS MATERIALIZED (
        SELECT l.resource_group_id, l.project_id, l.resource, u.amount
          FROM unnest($1::int[], $2::int[], $3::text[], $4::bigint[])
            AS u (resource_group_id, project_id, resource, amount)
          JOIN ledger AS l USING (resource_group_id, project_id, resource)
         ORDER BY 1, 2, 3 FOR NO KEY UPDATE OF l)
    UPDATE ledger AS l
       SET recent = {_RECENT}, as_of = greatest(l.as_of, now()),
           reserved = l.reserved - h.amount,
           quota = CASE WHEN l.target IS NULL THEN l.quota
                        ELSE greatest(l.target, l.reserved - h.amount) END,
           target = CASE WHEN l.reserved - h.amount > l.target THEN l.target END
      FROM held AS h
     WHERE (l.resource_group_id, l.project_id, l.resource)
         = (h.resource_group_id, h.project_id, h.resource)
"""  # noqa: S608 - of constants
_SET = """
    INSERT INTO ledger AS l (resource_group_id, project_id, resource, quota)
    SELECT $1, 0, * FROM unnest($2::text[], $3::bigint[]) ORDER BY 2
        ON CONFLICT (resource_group_id, project_id, resource) DO UPDATE
       SET quota = greatest(excluded.quota, l.reserved),
           target = CASE WHEN excluded.quota < l.reserved THEN excluded.quota END
"""
_RAISE = """
    UPDATE ledger AS l SET quota = u.quota, target = NULL
      FROM unnest($2::text[], $3::bigint[]) AS u (resource, quota)
     WHERE l.resource_group_id = $1 AND l.project_id = 0 AND l.resource = u.resource
       AND coalesce(l.target, l.quota) < u.quota AND l.reserved <= u.quota
"""
_UNSET = """
    UPDATE ledger SET quota = NULL, target = NULL
     WHERE resource_group_id = $1 AND project_id = 0 AND quota IS NOT NULL
       AND NOT resource = ANY($2)
"""
_OF_GROUPS = f"""
    SELECT resource_group_id, project_id, resource, quota, target, reserved,
           ({_RECENT})::bigint AS recent
      FROM ledger AS l WHERE resource_group_id = ANY($1)
"""  # noqa: S608 - of constants


class Holder(NamedTuple):
    """A project in a group."""

    group: int
    project: int


Amounts = Mapping[tuple[Holder, str], int]
"""By who holds it and resource."""


@dataclass(frozen=True, slots=True)
class Opened:
    """What a plan is checked against, as long as the transaction lasts."""

    version: int
    """Of the rules: what was planned under another is not to be written."""
    free: Mapping[tuple[int, str], int]
    """By group and resource; what is not here has no quota."""


async def open_groups(tx: Tx, groups: Sequence[int]) -> Opened:
    """Hold the rules, and say what is left of the quotas of `groups`."""
    rows = await tx.fetch(_OPEN, groups)
    free = {
        (row["resource_group_id"], row["resource"]): row["free"]
        for row in rows
        if row["resource"] is not None
    }
    return Opened(rows[0]["version"], free)


async def take(tx: Tx, amounts: Amounts) -> None:
    """Reserve, each for a project and in its group: at the very end of a transaction.

    Raises:
        Conflict: `no_room`: a quota has no room for it; give up the transaction.
    """
    rows = _rows(amounts)
    if not rows:
        return
    status: str = await tx.execute(_TAKE, *columns(rows, 4))
    if int(status.rpartition(" ")[2]) < len(rows):
        raise Conflict("a quota has less room than a moment ago", code="no_room")


async def give(tx: Tx, amounts: Amounts) -> None:
    """Give back what was reserved: at the very end of a transaction."""
    if rows := _rows(amounts):
        await tx.execute(_GIVE, *columns(rows, 4))


async def set_quotas(tx: Tx, group: int, quotas: Mapping[str, int]) -> None:
    """Replace a group's quotas. Where more is reserved, the quota sinks as it is given back."""
    names = sorted(quotas)
    await tx.execute(_UNSET, group, names)
    await tx.execute(_SET, group, names, [quotas[name] for name in names])


async def raise_quotas(tx: Tx, group: int, quotas: Mapping[str, int]) -> None:
    """Raise those of a group's quotas that are below what is named; the others stay."""
    names = sorted(quotas)
    await tx.execute(_RAISE, group, names, [quotas[name] for name in names])


async def of_groups(tx: Tx, groups: Sequence[int]) -> list[Row]:
    """Every account of these groups, the whole group's in the rows of project 0."""
    return list(await tx.fetch(_OF_GROUPS, groups))


def _rows(amounts: Amounts) -> list[tuple[int, int, str, int]]:
    totals: Counter[tuple[int, int, str]] = Counter()
    for ((group, project), resource), amount in amounts.items():
        totals[group, WHOLE, resource] += amount
        totals[group, project, resource] += amount
    return [(*key, n) for key, n in sorted(totals.items()) if n]
