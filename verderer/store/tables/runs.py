"""Runs, their counters, and the steps and edges that they are made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from verderer.core.errors import NotFound
from verderer.core.governance.model import EVERYTHING
from verderer.core.model.run import RunState
from verderer.store.database import Row, Tx, columns

_ADD_RUNS = """
    INSERT INTO runs (id, project_id, name, labels, document, parameters, state, steps, open,
                      actor, user_id, idempotency_key, cloned_from, resource_group_id, priority,
                      ended_at)
    SELECT id, project_id, name, labels, document, parameters,
           CASE WHEN open = 0 THEN 'succeeded' ELSE 'queued' END::run_state, steps, open,
           actor, nullif(user_id, 0), idempotency_key, nullif(cloned_from, 0),
           resource_group_id, priority, CASE WHEN open = 0 THEN now() END
      FROM unnest($1::bigint[], $2::int[], $3::text[], $4::jsonb[], $5::bytea[], $6::jsonb[],
                  $7::int[], $8::int[], $9::text[], $10::int[], $11::text[], $12::bigint[],
                  $13::int[], $14::smallint[])
        AS u (id, project_id, name, labels, document, parameters, steps, open, actor, user_id,
              idempotency_key, cloned_from, resource_group_id, priority)
        ON CONFLICT DO NOTHING
 RETURNING id
"""
_BY_KEY = """
    SELECT r.project_id, r.idempotency_key, r.id, r.name, r.document, r.parameters, r.steps
      FROM unnest($1::int[], $2::text[]) AS u (project_id, key)
      JOIN runs AS r ON r.project_id = u.project_id AND r.idempotency_key = u.key
"""
_STEP_IDS = "SELECT nextval('step_ids') FROM generate_series(1, $1)"
_STEP_COLUMNS = (
    "id",
    "run_id",
    "idx",
    "name",
    "template",
    "matrix",
    "shape_id",
    "state",
    "waits",
    "note",
    "ready_at",
    "ended_at",
)
# A backend has one transaction at a time, so no two that run together wait for one shard, unless
# their numbers are so many apart.
_COUNT = """
    INSERT INTO run_counters AS c (project_id, state, shard, n)
    SELECT project_id, state, pg_backend_pid() % 64, n
      FROM unnest($1::int[], $2::run_state[], $3::bigint[]) AS u (project_id, state, n)
     ORDER BY project_id, state
        ON CONFLICT (project_id, state, shard) DO UPDATE SET n = c.n + excluded.n
"""
_LOCK = """
    SELECT id, project_id, name, state::text, document, parameters, steps, open, failed,
           resource_group_id, priority
      FROM runs WHERE id = ANY($1) ORDER BY id FOR NO KEY UPDATE
"""
# CASE keeps the planner from guessing, as in `steps.py`.
_BEGIN = """
    WITH held AS MATERIALIZED (
        SELECT id FROM runs
         WHERE id = ANY($1) AND CASE WHEN state = 'queued' THEN true END
         ORDER BY id FOR NO KEY UPDATE)
    UPDATE runs AS r SET state = 'running', started_at = coalesce(r.started_at, now())
      FROM held
     WHERE r.id = held.id
 RETURNING r.id, r.project_id
"""
_SETTLE = """
    UPDATE runs AS r
       SET open = r.open - u.closed, failed = r.failed + u.failed,
           state = u.state, ended_at = CASE WHEN r.open = u.closed THEN now() END
      FROM unnest($1::bigint[], $2::int[], $3::int[], $4::run_state[])
        AS u (id, closed, failed, state)
     WHERE r.id = u.id
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRun:
    """A run that is about to be committed."""

    id: int
    project: int
    name: str
    labels: Mapping[str, str]
    document: bytes
    parameters: Mapping[str, str]
    steps: int
    open: int
    """Steps that are not over from the start: all but those whose `when` is false."""
    actor: str
    user: int = 0
    idempotency_key: str | None = None
    cloned_from: int = 0
    group: int = EVERYTHING
    """The resource group's id."""
    priority: int = 0


async def add_runs(tx: Tx, new: Sequence[NewRun]) -> set[int]:
    """Insert; return the ids that were new. The others' id or idempotency key is taken."""
    rows = [
        (
            r.id,
            r.project,
            r.name,
            r.labels,
            r.document,
            r.parameters,
            r.steps,
            r.open,
            r.actor,
            r.user,
            r.idempotency_key,
            r.cloned_from,
            r.group,
            r.priority,
        )
        for r in new
    ]
    return {row["id"] for row in await tx.fetch(_ADD_RUNS, *columns(rows, 14))}


async def by_idempotency_key(tx: Tx, keys: Sequence[tuple[int, str]]) -> dict[Any, Row]:
    """Runs found by (project id, idempotency key)."""
    rows = await tx.fetch(_BY_KEY, *columns(keys, 2))
    return {(row["project_id"], row["idempotency_key"]): row for row in rows}


async def take_step_ids(tx: Tx, blocks: int) -> list[int]:
    """The first ids of `blocks` blocks of 1,000 that nobody else will use."""
    return [row["nextval"] for row in await tx.fetch(_STEP_IDS, blocks)]


async def add_steps(tx: Tx, rows: Sequence[tuple[object, ...]]) -> None:
    """Insert steps, each a tuple in the order of `_STEP_COLUMNS`."""
    await tx.copy_records_to_table("steps", records=rows, columns=_STEP_COLUMNS)


async def add_needs(tx: Tx, edges: Sequence[tuple[int, int]]) -> None:
    """Insert edges by step id: (before, after)."""
    if edges:
        await tx.copy_records_to_table("needs", records=edges, columns=("step_id", "successor_id"))


async def count(tx: Tx, changes: Mapping[tuple[int, RunState], int]) -> None:
    """Add to what pages count, by (project id, state)."""
    rows = [(project, state.value, n) for (project, state), n in changes.items() if n]
    if rows:
        await tx.execute(_COUNT, *columns(rows, 3))


class LockedRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run that this transaction holds."""

    id: int
    project: int
    name: str
    state: RunState
    document: bytes
    parameters: Mapping[str, str]
    steps: int
    open: int
    failed: int
    group: int
    """The resource group's id."""
    priority: int


async def lock(tx: Tx, ids: Sequence[int]) -> dict[int, LockedRun]:
    """Hold runs until the end of the transaction, in the order that everybody takes them."""
    return {
        row["id"]: LockedRun(
            id=row["id"],
            project=row["project_id"],
            name=row["name"],
            state=RunState(row["state"]),
            document=row["document"],
            parameters=row["parameters"],
            steps=row["steps"],
            open=row["open"],
            failed=row["failed"],
            group=row["resource_group_id"],
            priority=row["priority"],
        )
        for row in await tx.fetch(_LOCK, ids)
    }


async def lock_one(tx: Tx, run: int) -> LockedRun:
    """Hold one run.

    Raises:
        NotFound: there is none.
    """
    if found := (await lock(tx, [run])).get(run):
        return found
    raise NotFound("no such run")


async def begin(tx: Tx, ids: Sequence[int]) -> Counter[tuple[int, RunState]]:
    """Queued runs among `ids` become running; return what changes in the counters."""
    changes: Counter[tuple[int, RunState]] = Counter()
    for row in await tx.fetch(_BEGIN, ids):
        changes[row["project_id"], RunState.QUEUED] -= 1
        changes[row["project_id"], RunState.RUNNING] += 1
    return changes


@dataclass(slots=True, kw_only=True)
class Settled:
    """How many of a run's steps ended, and the state that it is in afterwards."""

    run: int
    closed: int
    failed: int
    state: RunState


async def settle(tx: Tx, settled: Sequence[Settled]) -> None:
    """Write what the ends of steps mean for their runs, which the caller holds."""
    rows = [(s.run, s.closed, s.failed, s.state.value) for s in settled]
    await tx.execute(_SETTLE, *columns(rows, 4))


_MOVE = """
    UPDATE runs SET state = $3::run_state WHERE id = $1 AND state = $2::run_state
"""


async def move(tx: Tx, run: int, before: RunState, after: RunState) -> bool:
    """Move a run between two states in which it is open; False when it was not in `before`."""
    status: str = await tx.execute(_MOVE, run, before.value, after.value)
    return status.endswith(" 1")


_REOPEN = """
    UPDATE runs SET state = 'queued', open = $2, failed = 0, ended_at = NULL, started_at = NULL
     WHERE id = $1 AND open = 0
"""


async def reopen(tx: Tx, run: int, *, opened: int) -> bool:
    """A run that is over waits again with `opened` steps; False when it was not over."""
    status: str = await tx.execute(_REOPEN, run, opened)
    return status.endswith(" 1")
