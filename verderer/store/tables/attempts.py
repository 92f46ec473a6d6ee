"""Attempts: what a cluster should be running, and what its agent proved about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

import msgspec

from verderer.core.model.attempt import AttemptKey, AttemptState, End
from verderer.store.database import Row, Tx, columns

# Steps are found before attempts, whatever statistics say: in a young database the planner likes to
# join the numbers of attempts first, and nearly all of them are 1.
_LOCK = """
    WITH named AS MATERIALIZED (
        SELECT s.id, s.run_id, s.idx, s.template, s.matrix, s.shape_id, s.failures,
               u.number, r.project_id
          FROM unnest($2::bigint[], $3::int[], $4::int[]) AS u (run_id, idx, number)
          JOIN steps AS s ON s.run_id = u.run_id AND s.idx = u.idx
          JOIN runs AS r ON r.id = s.run_id)
    SELECT n.id, n.run_id, n.idx, n.template, n.matrix, n.shape_id, n.failures,
           n.number, a.state::text, n.project_id, a.resource_group_id
      FROM named AS n JOIN attempts AS a ON a.step_id = n.id AND a.number = n.number
     WHERE a.cluster_id = $1
     ORDER BY n.id
       FOR NO KEY UPDATE OF a
"""
# CASE keeps the planner from guessing, as in `steps.py`.
_MOVE = """
    UPDATE attempts AS a
       SET state = u.state, node = coalesce(nullif(u.node, ''), a.node),
           started_at = coalesce(a.started_at, u.started_at)
      FROM unnest($1::bigint[], $2::smallint[], $3::attempt_state[], $4::text[], $5::timestamptz[])
        AS u (step_id, number, state, node, started_at)
     WHERE a.step_id = u.step_id AND a.number = u.number
       AND CASE WHEN a.ended_at IS NULL THEN true END
"""
_END = """
    UPDATE attempts AS a
       SET state = u.state, node = coalesce(nullif(u.node, ''), a.node),
           started_at = coalesce(a.started_at, u.started_at),
           ended_at = greatest(coalesce(u.ended_at, now()), a.started_at, u.started_at),
           cause = u.cause, exit_code = u.exit_code, signal = u.signal, message = u.message
      FROM unnest($1::bigint[], $2::smallint[], $3::attempt_state[], $4::text[],
                  $5::timestamptz[], $6::timestamptz[], $7::end_cause[], $8::int[],
                  $9::smallint[], $10::text[])
        AS u (step_id, number, state, node, started_at, ended_at, cause, exit_code, signal, message)
     WHERE a.step_id = u.step_id AND a.number = u.number
       AND CASE WHEN a.ended_at IS NULL THEN true END
"""
_CLUSTERS_OF_RUN = """
    SELECT DISTINCT a.cluster_id
      FROM steps AS s JOIN attempts AS a ON a.step_id = s.id
     WHERE s.run_id = $1 AND s.state = 'active'
       AND a.ended_at IS NULL
     ORDER BY 1
"""
_STOP = """
    UPDATE attempts AS a SET state = 'stopping', revision = c.revision
      FROM steps AS s, clusters AS c
     WHERE s.run_id = $1 AND s.state = 'active' AND a.step_id = s.id AND c.id = a.cluster_id
       AND a.state IN ('assigned', 'starting', 'running')
 RETURNING s.idx, a.number, a.cluster_id
"""
# Whole revisions, so that whoever has some of a revision has all of it.
_DESIRED = """
    WITH c AS (SELECT revision FROM clusters WHERE id = $1),
    wanted AS (
        SELECT step_id, number, state, revision FROM attempts
         WHERE cluster_id = $1 AND revision > $2
           AND ended_at IS NULL
         ORDER BY revision FETCH FIRST $3 ROWS WITH TIES)
    SELECT c.revision AS now, a.revision, a.number, a.state::text, s.run_id, s.idx, s.name,
           s.template, s.matrix, r.name AS run_name, r.document, r.parameters, r.project_id,
           p.name AS project
      FROM c LEFT JOIN wanted AS a ON true
      LEFT JOIN steps AS s ON s.id = a.step_id
      LEFT JOIN runs AS r ON r.id = s.run_id
      LEFT JOIN projects AS p ON p.id = r.project_id
     ORDER BY a.revision, s.id
"""
_LIVE_ON = """
    WITH named AS MATERIALIZED (
        SELECT s.id, r.project_id, s.run_id, s.idx, u.number
          FROM unnest($2::int[], $3::bigint[], $4::int[], $5::int[])
            AS u (project_id, run_id, idx, number)
          JOIN runs AS r ON r.id = u.run_id AND r.project_id = u.project_id
          JOIN steps AS s ON s.run_id = u.run_id AND s.idx = u.idx)
    SELECT n.project_id, n.run_id, n.idx, n.number
      FROM named AS n JOIN attempts AS a ON a.step_id = n.id AND a.number = n.number
     WHERE a.cluster_id = $1
       AND (a.ended_at IS NULL OR a.ended_at > now() - interval '1 day')
"""
_RUNS_LIVE_ON = """
    SELECT DISTINCT r.project_id, r.id
      FROM runs AS r JOIN steps AS s ON s.run_id = r.id
      JOIN attempts AS a ON a.step_id = s.id
     WHERE r.id = ANY($2) AND s.state = 'active' AND a.cluster_id = $1
       AND a.ended_at IS NULL
"""


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt that this transaction holds, with what is needed to decide about its step."""

    key: AttemptKey
    step: int
    project: int
    template: int
    matrix: Mapping[str, str]
    shape: int
    group: int | None
    """The resource group that it is charged to; None: it is from before there were any."""
    failures: int
    state: AttemptState


async def lock(tx: Tx, cluster: int, keys: Sequence[AttemptKey]) -> dict[AttemptKey, Held]:
    """Hold those of `keys` that were given to this cluster."""
    triples = [(k.run, k.step, k.number) for k in keys]
    held = {}
    for row in await tx.fetch(_LOCK, cluster, *columns(triples, 3)):
        key = AttemptKey(row["run_id"], row["idx"], row["number"])
        held[key] = Held(
            key=key,
            step=row["id"],
            project=row["project_id"],
            template=row["template"],
            matrix=row["matrix"] or {},
            shape=row["shape_id"],
            group=row["resource_group_id"],
            failures=row["failures"],
            state=AttemptState(row["state"]),
        )
    return held


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """What to write about an attempt."""

    step: int
    number: int
    state: AttemptState
    node: str = ""
    started_at: datetime | None = None
    ended_at: datetime | None = None
    end: End | None = None


async def move(tx: Tx, changes: Sequence[Change]) -> None:
    """Write states in which an attempt lives on."""
    rows = [(c.step, c.number, c.state.value, c.node, c.started_at) for c in changes]
    await tx.execute(_MOVE, *columns(rows, 5))


async def end(tx: Tx, changes: Sequence[Change]) -> None:
    """Write the ends of attempts."""
    rows = []
    for c in changes:
        assert c.end is not None  # noqa: S101 - the caller sorts them
        e = c.end
        facts = (e.cause.value, e.exit_code, e.signal, e.message[:2000])
        rows.append((c.step, c.number, c.state.value, c.node, c.started_at, c.ended_at, *facts))
    await tx.execute(_END, *columns(rows, 10))


async def clusters_of_run(tx: Tx, run: int) -> list[int]:
    """Clusters on which something of a run is alive."""
    return [row["cluster_id"] for row in await tx.fetch(_CLUSTERS_OF_RUN, run)]


async def stop_run(tx: Tx, run: int) -> list[Row]:
    """Ask every live attempt of a run to end, under its cluster's current revision."""
    return list(await tx.fetch(_STOP, run))


async def desired(tx: Tx, cluster: int, since: int, *, most: int) -> tuple[int, list[Row]]:
    """The cluster's live attempts that changed after revision `since`, and up to which they go.

    About `most` of them, the oldest revisions first and each revision whole.
    """
    rows = await tx.fetch(_DESIRED, cluster, since, most)
    found = [row for row in rows if row["number"] is not None]
    return found[-1]["revision"] if len(found) >= most else rows[0]["now"], found


async def given_to(
    tx: Tx, cluster: int, keys: Sequence[tuple[int, AttemptKey]]
) -> set[tuple[int, AttemptKey]]:
    """Those of (project, attempt) that this cluster runs, or that ended within a day."""
    rows = [(project, k.run, k.step, k.number) for project, k in keys]
    return {
        (row["project_id"], AttemptKey(row["run_id"], row["idx"], row["number"]))
        for row in await tx.fetch(_LIVE_ON, cluster, *columns(rows, 4))
    }


async def runs_live_on(tx: Tx, cluster: int, runs: Sequence[int]) -> set[tuple[int, int]]:
    """(project, run) of those of `runs` of which something is alive on the cluster."""
    rows = await tx.fetch(_RUNS_LIVE_ON, cluster, runs)
    return {(row["project_id"], row["id"]) for row in rows}
