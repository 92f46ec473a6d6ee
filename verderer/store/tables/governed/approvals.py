"""Approvals: what was asked for, by whom, and who decided."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

import asyncpg
import msgspec

from verderer.core.errors import Conflict
from verderer.store.database import Row, Tx

_ADD = """
    INSERT INTO approvals (kind, project_group_id, resource_group_id, detail, reason, until,
                           requested_by)
    VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING id
"""
_LOCK = """
    SELECT a.id, a.kind, a.project_group_id, a.resource_group_id, a.detail, a.until,
           a.state::text AS state, a.requested_by, p.name AS project_group,
           g.name AS resource_group
      FROM approvals AS a
      JOIN project_groups AS p ON p.id = a.project_group_id
      JOIN resource_groups AS g ON g.id = a.resource_group_id
     WHERE a.id = $1 FOR NO KEY UPDATE OF a
"""
_DECIDE = """
    UPDATE approvals SET state = $2::approval_state, decided_by = $3, decided_at = now(), note = $4
     WHERE id = $1 AND state = 'requested'
"""
_EXPIRE = """
    UPDATE approvals AS a
       SET state = 'expired', decided_by = 'system:janitor', decided_at = now()
      FROM project_groups AS p, resource_groups AS g
     WHERE a.state = 'requested' AND a.requested_at < now() - $1::interval
       AND p.id = a.project_group_id AND g.id = a.resource_group_id
 RETURNING a.id, a.kind, p.name AS project_group, g.name AS resource_group
"""


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A request that this transaction holds."""

    id: int
    kind: str
    project_group_id: int
    project_group: str
    resource_group_id: int
    resource_group: str
    detail: Mapping[str, int]
    until: datetime | None
    state: str
    requested_by: str


class NewRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Something asked for."""

    kind: str
    """`access` or `quota`."""
    project_group: int
    resource_group: int
    detail: Mapping[str, int]
    """Quota: resource and amount; access: empty."""
    reason: str
    until: datetime | None
    by: str


async def add(tx: Tx, new: NewRequest) -> int:
    """Write a request; its id.

    Raises:
        Conflict: the same was asked for and is not decided.
    """
    values = (new.kind, new.project_group, new.resource_group, new.detail, new.reason)
    try:
        found: int = await tx.fetchval(_ADD, *values, new.until, new.by)
    except asyncpg.UniqueViolationError as e:
        raise Conflict("the same was asked for already and waits for a decision") from e
    return found


async def lock(tx: Tx, number: int) -> Asked | None:
    """Hold a request."""
    row = await tx.fetchrow(_LOCK, number)
    return None if row is None else Asked(**dict(row))


async def decide(tx: Tx, number: int, *, state: str, by: str, note: str) -> bool:
    """Write a decision; False: it was decided before."""
    return await tx.execute(_DECIDE, number, state, by, note) == "UPDATE 1"


async def expire(tx: Tx, after: timedelta) -> list[Row]:
    """Close what nobody decided for so long, and say what that was."""
    return list(await tx.fetch(_EXPIRE, after))
