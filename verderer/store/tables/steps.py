"""Steps: how they wait, start and end, and what waits for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

import msgspec

from verderer.core.model.step import StepState
from verderer.store.database import Row, Tx, columns

# A state that a statement insists on stands inside CASE, where the planner makes no guess about it.
# Statistics of a moment ago often say that hardly a step is in that state, and then it would look
# at all steps first, once for every row that is to be written.
_END = """
    UPDATE steps AS s
       SET state = u.state, note = u.note, ended_at = now(), waits = 0,
           failures = s.failures + u.failed, started_at = coalesce(s.started_at, u.started_at)
      FROM unnest($1::bigint[], $2::step_state[], $3::text[], $4::smallint[], $5::timestamptz[])
        AS u (id, state, note, failed, started_at)
     WHERE s.id = u.id AND CASE WHEN s.state IN ('active', 'ready', 'blocked') THEN true END
"""
_STARTED = """
    UPDATE steps AS s SET started_at = u.started_at
      FROM unnest($1::bigint[], $2::timestamptz[]) AS u (id, started_at)
     WHERE s.id = u.id AND CASE WHEN s.started_at IS NULL THEN true END
"""
_AGAIN = """
    UPDATE steps AS s
       SET state = 'ready', failures = s.failures + u.failed, ready_at = now() + u.wait
      FROM unnest($1::bigint[], $2::interval[], $3::smallint[]) AS u (id, wait, failed)
     WHERE s.id = u.id AND CASE WHEN s.state = 'active' THEN true END
 RETURNING s.id, s.run_id, s.shape_id, u.wait
"""
_RELEASE = """
    UPDATE steps SET state = 'ready', waits = 0, ready_at = now()
     WHERE id = ANY($1) AND state = 'blocked'
 RETURNING id, run_id, shape_id
"""
_SUCCESSORS = """
    SELECT s.id, s.run_id, s.idx, s.name, s.template, s.matrix, s.waits, count(*) AS met
      FROM needs AS n JOIN steps AS s ON s.id = n.successor_id
     WHERE n.step_id = ANY($1) AND CASE WHEN s.state = 'blocked' THEN true END
     GROUP BY s.id ORDER BY s.id
"""
_MEET = """
    UPDATE steps AS s SET waits = s.waits - u.met
      FROM unnest($1::bigint[], $2::int[]) AS u (id, met)
     WHERE s.id = u.id AND CASE WHEN s.state = 'blocked' THEN true END
"""
_NEEDS_OF = """
    SELECT n.successor_id, s.template, s.state::text
      FROM needs AS n JOIN steps AS s ON s.id = n.step_id
     WHERE n.successor_id = ANY($1)
"""
_CANCEL_WAITING = """
    UPDATE steps SET state = 'cancelled', ended_at = now()
     WHERE run_id = $1 AND state IN ('blocked', 'ready')
 RETURNING idx
"""
_RESET = """
    UPDATE steps AS s
       SET state = u.state, waits = u.waits, failures = 0, note = '', ended_at = NULL,
           started_at = NULL, ready_at = CASE WHEN u.waits = 0 THEN now() END
      FROM unnest($1::bigint[], $2::step_state[], $3::int[]) AS u (id, state, waits)
     WHERE s.id = u.id AND s.state IN ('succeeded', 'failed', 'cancelled', 'skipped')
 RETURNING s.id, s.run_id, s.shape_id, s.idx, s.state::text
"""
_OF_RUN = """
    SELECT id, idx, name, template, state::text FROM steps WHERE run_id = $1 ORDER BY idx
"""
_EDGES_OF_RUN = """
    SELECT n.step_id, n.successor_id
      FROM steps AS s JOIN needs AS n ON n.step_id = s.id
     WHERE s.run_id = $1
"""


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """A step that is over, and how."""

    id: int
    state: StepState
    note: str = ""
    failed: int = 0
    """1 when its last attempt failed."""
    started_at: datetime | None = None
    """When its last attempt began to run; kept unless an earlier one is known."""


class Successor(msgspec.Struct, frozen=True, kw_only=True):
    """A blocked step, and how many of the steps it waits for have just ended."""

    id: int
    run: int
    idx: int
    template: int
    matrix: Mapping[str, str]
    waits: int
    met: int


async def end(tx: Tx, ended: Sequence[Ended]) -> None:
    """Write the ends of steps."""
    rows = [(e.id, e.state.value, e.note[:2000], e.failed, e.started_at) for e in ended]
    await tx.execute(_END, *columns(rows, 5))


async def started(tx: Tx, moments: Sequence[tuple[int, datetime]]) -> None:
    """Attempts of these steps began to run; the first moment of a step is the one that counts."""
    if moments:
        await tx.execute(_STARTED, *columns(moments, 2))


class Another(msgspec.Struct, frozen=True, kw_only=True):
    """A step whose attempt is over waits for the next one."""

    id: int
    wait_s: int
    failed: int = 1
    """1 when the attempt that is over counts as a failure, else 0."""


async def again(tx: Tx, others: Sequence[Another]) -> list[Row]:
    """Steps become ready again, each after its wait; return id, run_id, shape_id and wait."""
    rows = [
        (a.id, timedelta(seconds=a.wait_s), a.failed) for a in sorted(others, key=lambda a: a.id)
    ]
    return list(await tx.fetch(_AGAIN, *columns(rows, 3)))


async def successors(tx: Tx, ended: Sequence[int]) -> list[Successor]:
    """Blocked steps that wait for any of `ended`; the caller holds their runs."""
    return [
        Successor(
            id=row["id"],
            run=row["run_id"],
            idx=row["idx"],
            template=row["template"],
            matrix=row["matrix"] or {},
            waits=row["waits"],
            met=row["met"],
        )
        for row in await tx.fetch(_SUCCESSORS, ended)
    ]


async def meet(tx: Tx, still_blocked: Sequence[Successor]) -> None:
    """Steps that wait for fewer others than before, and still for some."""
    rows = [(s.id, s.met) for s in still_blocked]
    await tx.execute(_MEET, *columns(rows, 2))


async def release(tx: Tx, ids: Sequence[int]) -> list[Row]:
    """Blocked steps become ready; return id, run_id and shape_id of each."""
    return list(await tx.fetch(_RELEASE, ids))


async def needs_of(tx: Tx, ids: Sequence[int]) -> dict[int, list[tuple[int, StepState]]]:
    """What each step needs: template and state."""
    found: dict[int, list[tuple[int, StepState]]] = {step: [] for step in ids}
    for row in await tx.fetch(_NEEDS_OF, ids):
        found[row["successor_id"]].append((row["template"], StepState(row["state"])))
    return found


async def cancel_waiting(tx: Tx, run: int) -> list[int]:
    """End every step of a run that has no attempt; return their indices."""
    return [row["idx"] for row in await tx.fetch(_CANCEL_WAITING, run)]


async def reset(tx: Tx, waits: Mapping[int, int]) -> list[Row]:
    """Open steps again, each with the number of steps that it waits for."""
    rows = [(i, "blocked" if n else "ready", n) for i, n in sorted(waits.items())]
    return list(await tx.fetch(_RESET, *columns(rows, 3)))


async def of_run(tx: Tx, run: int) -> list[Row]:
    """All steps of a run: id, idx, name, template, state."""
    return list(await tx.fetch(_OF_RUN, run))


async def edges_of_run(tx: Tx, run: int) -> list[tuple[int, int]]:
    """(before, after) by step id."""
    return [(row["step_id"], row["successor_id"]) for row in await tx.fetch(_EDGES_OF_RUN, run)]
