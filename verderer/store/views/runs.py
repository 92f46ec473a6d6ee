"""Runs as pages and the API list them: newest first, by key, never by offset.

Every listing starts from an index that gives ids in order; what no index answers (labels, text,
actor, cluster) is looked for in as many of them as a twentieth of a second allows. So an answer
takes the same time however many runs there are, and a page says from where to look further.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from verderer.core.model.actor import Scope
from verderer.core.model.ids import MAX_ID, parse_run_id
from verderer.core.model.run import RunState
from verderer.store.database import Row, Tx
from verderer.store.views.visible import visible_projects

_BUDGET_S = 0.05
_WINDOW = 4_000  # ids looked at in one round when something no index answers is asked
_CLUSTER_WINDOW = 50  # finding a run's clusters costs a look at each of its steps
_MOST_IDS = 20_000  # of all projects and states together, in one round

# `>` and ASC instead of `<` and DESC when the oldest are wanted first.
_NEWEST = """
    SELECT id FROM runs WHERE id < $1 ORDER BY id DESC LIMIT $2
"""
_BY_PROJECT = """
    SELECT r.id
      FROM unnest($3::int[]) AS p,
           LATERAL (SELECT id FROM runs
                     WHERE project_id = p AND id < $1 ORDER BY id DESC LIMIT $2) AS r
     ORDER BY r.id DESC LIMIT $2
"""
_BY_STATE = """
    SELECT r.id
      FROM unnest($3::int[]) AS p, unnest($4::text[]) AS s,
           LATERAL (SELECT id FROM runs
                     WHERE project_id = p AND state = s::run_state AND id < $1
                     ORDER BY id DESC LIMIT $2) AS r
     ORDER BY r.id DESC LIMIT $2
"""
_BY_NAME = """
    SELECT r.id
      FROM unnest($3::int[]) AS p,
           LATERAL (SELECT id FROM runs
                     WHERE project_id = p AND name = $4 AND id < $1
                     ORDER BY id DESC LIMIT $2) AS r
     ORDER BY r.id DESC LIMIT $2
"""

_MATCHING = """
    SELECT r.id, r.project_id, p.name AS project, r.name, r.labels, r.state::text AS state,
           r.steps, r.open, r.failed, r.actor, r.cloned_from, r.created_at, r.started_at,
           r.ended_at, g.name AS resource_group
      FROM runs AS r JOIN projects AS p ON p.id = r.project_id
      JOIN resource_groups AS g ON g.id = r.resource_group_id
     WHERE r.id = ANY($1::bigint[])
       AND ($2::text[] IS NULL OR r.state::text = ANY($2))
       AND ($3::text IS NULL OR r.name = $3)
       AND ($4::text IS NULL OR $4 IN (r.actor, split_part(r.actor, ':', 2),
                                       split_part(split_part(r.actor, ':', 2), '@', 1)))
       AND r.labels @> $5
       AND ($6::text IS NULL OR position(lower($6) IN lower(r.name)) > 0)
       AND ($7::text IS NULL OR EXISTS (
            SELECT FROM steps AS s
              JOIN attempts AS a ON a.step_id = s.id
              JOIN clusters AS c ON c.id = a.cluster_id
             WHERE s.run_id = r.id AND c.cluster_id = $7))
     ORDER BY r.id DESC LIMIT $8
"""

_GET = """
    SELECT r.id, r.project_id, p.name AS project, r.name, r.labels, r.state::text AS state,
           r.steps, r.open, r.failed, r.actor, r.cloned_from, r.created_at, r.started_at,
           r.ended_at, r.parameters, r.idempotency_key, d.body AS document,
           g.name AS resource_group
      FROM runs AS r
      JOIN projects AS p ON p.id = r.project_id
      JOIN resource_groups AS g ON g.id = r.resource_group_id
      JOIN documents AS d ON d.sha256 = r.document
     WHERE r.id = $1 AND ($2 OR r.project_id = ANY($3::int[]))
"""

_COUNTS = """
    SELECT state::text AS state, sum(n)::bigint AS n
      FROM run_counters
     WHERE project_id = ANY($1::int[])
     GROUP BY state
"""

_EVENTS = """
    SELECT a.seq, a.at, a.actor, a.action, a.step_idx, a.attempt, a.object, a.result, a.origin,
           a.detail
      FROM audit AS a
      JOIN runs AS r ON r.id = a.run_id
     WHERE a.run_id = $1 AND a.seq < $4 AND ($2 OR r.project_id = ANY($3::int[]))
     ORDER BY a.seq DESC LIMIT $5
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFilter:
    """Which runs are wanted; what is left out excludes nothing."""

    project: str | None = None
    states: frozenset[RunState] = frozenset()
    name: str | None = None
    """The whole name."""
    actor: str | None = None
    """`user:ana@example.org`, `ana@example.org` or just `ana`."""
    cluster: str | None = None
    """The `cluster_id` of a cluster that an attempt of the run was handed to."""
    labels: tuple[tuple[str, str], ...] = ()
    text: str | None = None
    """Part of the name in any case, or a whole run id."""
    oldest_first: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """One line of a list of runs."""

    id: int
    project_id: int
    project: str
    name: str
    labels: Mapping[str, str]
    state: RunState
    steps: int
    open: int
    """Steps that are not over."""
    failed: int
    actor: str
    cloned_from: int | None
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    resource_group: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDetail(RunRow):
    """A run with what it was made from."""

    parameters: Mapping[str, str]
    idempotency_key: str | None
    document: str
    """The YAML as it was submitted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPage:
    """Some runs, and the key to go on from."""

    rows: tuple[RunRow, ...]
    before: int | None
    """Give it to `list_runs` for what follows; None: nothing does. A page that was filtered by
    something without an index may be short, or empty, and still be followed by more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One line of the audit about a run."""

    seq: int
    at: datetime
    actor: str
    action: str
    step_idx: int | None
    attempt: int | None
    object: str
    result: str
    origin: str
    detail: Mapping[str, Any] | None


async def list_runs(
    tx: Tx, scope: Scope, wanted: RunFilter, *, before: int | None = None, limit: int = 50
) -> RunPage:
    """A page of the runs in `scope` that match, newest first (or oldest, when the filter says).

    `before` is the key that an earlier page ended with. `limit` is at most 500.
    """
    limit = min(max(limit, 1), 500)
    if wanted.text and (page := await _by_id(tx, scope, wanted)):
        return page
    projects = await visible_projects(tx, scope, wanted.project)
    if not projects:
        return RunPage(rows=(), before=None)
    source, arguments, exact = _source(scope, wanted, projects)
    pairs = 1 if not arguments else len(projects) * max(1, len(wanted.states))
    window = limit + 1 if exact else _window(wanted, limit, pairs)
    rows: list[RunRow] = []
    key: int | None = before if before is not None else _start(wanted)
    until = time.monotonic() + _BUDGET_S
    while key is not None and len(rows) < limit:
        ids = [r["id"] for r in await tx.fetch(source, key, window, *arguments)]
        found = await _matching(tx, wanted, ids, limit + 1 - len(rows))
        rows += found
        key = ids[-1] if len(ids) == window else None
        if len(rows) > limit:
            rows, key = rows[:limit], rows[limit - 1].id
        if exact or time.monotonic() > until:
            break
    return RunPage(rows=tuple(rows), before=key)


async def get_run(tx: Tx, scope: Scope, run: int) -> RunDetail | None:
    """The run, or None when it does not exist or is outside `scope`."""
    row = await tx.fetchrow(_GET, run, scope.everything, list(scope.projects))
    if row is None:
        return None
    extra = ("parameters", "idempotency_key", "document")
    return RunDetail(**_fields(row), **{k: row[k] for k in extra})


async def run_counts(tx: Tx, scope: Scope, project: str | None = None) -> dict[RunState, int]:
    """How many runs are in each state, from the counters that writers keep."""
    projects = await visible_projects(tx, scope, project)
    counted = {row["state"]: row["n"] for row in await tx.fetch(_COUNTS, projects)}
    return {state: max(0, counted.get(state, 0)) for state in RunState}


async def list_events(
    tx: Tx, scope: Scope, run: int, *, before: int | None = None, limit: int = 100
) -> list[Event]:
    """What was done to the run and its parts, newest first; `before` is an event's `seq`."""
    rows = await tx.fetch(
        _EVENTS,
        run,
        scope.everything,
        list(scope.projects),
        MAX_ID if before is None else before,
        min(max(limit, 1), 1000),
    )
    return [Event(**dict(row)) for row in rows]


async def _by_id(tx: Tx, scope: Scope, wanted: RunFilter) -> RunPage | None:
    """The one run whose id was typed, if it was one."""
    try:
        run = parse_run_id(wanted.text or "")
    except ValueError:
        return None
    projects = await visible_projects(tx, scope, wanted.project)
    found = await _matching(tx, RunFilter(), [run], 1)
    rows = tuple(row for row in found if row.project_id in projects)
    return RunPage(rows=rows, before=None) if rows else None


def _source(
    scope: Scope, wanted: RunFilter, projects: Sequence[int]
) -> tuple[str, tuple[object, ...], bool]:
    """The statement that gives ids in order, its arguments, and whether it alone decides."""
    rest = bool(wanted.actor or wanted.cluster or wanted.labels or wanted.text)
    arguments: tuple[object, ...]
    if wanted.name:
        sql, arguments, exact = _BY_NAME, (projects, wanted.name), not (rest or wanted.states)
    elif wanted.states:
        sql, arguments, exact = _BY_STATE, (projects, sorted(wanted.states)), not rest
    elif scope.everything and not wanted.project:
        sql, arguments, exact = _NEWEST, (), not rest
    else:
        sql, arguments, exact = _BY_PROJECT, (projects,), not rest
    if wanted.oldest_first:
        sql = sql.replace("id < $1", "id > $1").replace("DESC", "ASC")
    return sql, arguments, exact


def _window(wanted: RunFilter, limit: int, pairs: int) -> int:
    window = _CLUSTER_WINDOW if wanted.cluster else _WINDOW
    return max(limit + 1, min(window, _MOST_IDS // pairs))


def _start(wanted: RunFilter) -> int:
    return -1 if wanted.oldest_first else MAX_ID


async def _matching(tx: Tx, wanted: RunFilter, ids: Sequence[int], limit: int) -> list[RunRow]:
    if not ids or limit < 1:
        return []
    sql = _MATCHING.replace("DESC", "ASC") if wanted.oldest_first else _MATCHING
    rows = await tx.fetch(
        sql,
        ids,
        sorted(wanted.states) or None,
        wanted.name,
        wanted.actor,
        dict(wanted.labels),
        wanted.text or None,
        wanted.cluster,
        limit,
    )
    return [RunRow(**_fields(row)) for row in rows]


_FIELDS = tuple(RunRow.__dataclass_fields__)


def _fields(row: Row) -> dict[str, Any]:
    return {name: row[name] for name in _FIELDS} | {"state": RunState(row["state"])}
