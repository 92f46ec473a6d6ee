"""Audit: one row for every change of state, written in the transaction that made it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from verderer.core.model.actor import Actor
from verderer.store.database import Tx, columns

_ADD = """
    INSERT INTO audit
        (actor, origin, action, project_id, run_id, step_idx, attempt, object, result, detail)
    SELECT $1, $2, action, project_id, run_id, step_idx, attempt, object, result, detail
      FROM unnest($3::text[], $4::int[], $5::bigint[], $6::int[], $7::smallint[], $8::text[],
                  $9::text[], $10::jsonb[])
        AS u (action, project_id, run_id, step_idx, attempt, object, result, detail)
"""
_COLUMNS = (
    "actor",
    "origin",
    "action",
    "project_id",
    "run_id",
    "step_idx",
    "attempt",
    "object",
    "result",
    "detail",
)
_MANY = 20
"""From so many rows on COPY takes less of both processors."""


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """What was done to what."""

    action: str
    """`noun.verb`, past tense: `run.submitted`, `attempt.running`, `user.deactivated`."""
    project: int | None = None
    run: int | None = None
    step: int | None = None
    attempt: int | None = None
    object: str = ""
    result: str = "ok"
    detail: Mapping[str, Any] | None = None
    """Never a secret: this is exported."""


async def add(tx: Tx, actor: Actor, entries: Sequence[Entry]) -> None:
    """Write the entries; they exist only if the caller's transaction commits."""
    if not entries:
        return
    rows = [
        (e.action, e.project, e.run, e.step, e.attempt, e.object, e.result, e.detail)
        for e in entries
    ]
    if len(rows) < _MANY:
        await tx.execute(_ADD, str(actor), actor.origin, *columns(rows, 8))
        return
    who = (str(actor), actor.origin)
    await tx.copy_records_to_table(
        "audit", records=[(*who, *row) for row in rows], columns=_COLUMNS
    )
