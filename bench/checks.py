"""What must hold when everything has come to rest, asked of the tables themselves."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter

from bench.platform.platform import CLUSTERS, Platform

_ENDED = "SELECT coalesce(sum(n), 0)::bigint FROM run_counters WHERE state = 'succeeded'"
_TRUE = {
    "steps that did not succeed": "SELECT count(*) FROM steps WHERE state <> 'succeeded'",
    "steps without exactly one attempt": """
        SELECT count(*) FROM (SELECT s.id FROM steps s LEFT JOIN attempts a ON a.step_id = s.id
                               GROUP BY s.id HAVING count(a.step_id) <> 1) AS odd""",
    "attempts that did not succeed": "SELECT count(*) FROM attempts WHERE state <> 'succeeded'",
    "amounts still reserved": "SELECT count(*) FROM capacity WHERE reserved <> 0",
    "steps still queued": "SELECT count(*) FROM queue",
    "runs whose counters lie": """
        SELECT count(*) FROM (
            SELECT state, count(*) AS n FROM runs GROUP BY state) AS r
          FULL JOIN (SELECT state, sum(n) AS n FROM run_counters GROUP BY state
                     HAVING sum(n) <> 0) AS c USING (state)
         WHERE r.n IS DISTINCT FROM c.n""",
}
_HISTORY = """
    SELECT action, count(*) AS n FROM audit
     WHERE action IN ('run.submitted', 'attempt.assigned', 'attempt.succeeded', 'run.succeeded')
     GROUP BY action
"""


async def ended(platform: Platform) -> int:
    """Runs that have succeeded, as the counters say."""
    return int(await platform.sql.fetchval(_ENDED))


async def until_ended(platform: Platform, runs: int, within_s: float) -> None:
    """Wait until so many runs have succeeded."""
    deadline = time.monotonic() + within_s
    while (done := await ended(platform)) < runs:
        platform.check()
        if time.monotonic() > deadline:
            raise RuntimeError(f"{runs - done} of {runs} runs are not over after {within_s:g} s")
        await asyncio.sleep(0.1)


async def everything_ended_once(platform: Platform, *, submitted: int) -> str:
    """Raise unless every accepted run is over, once, with its history; say what was looked at."""
    runs = await platform.sql.fetchval("SELECT count(*) FROM runs")
    if runs != submitted:
        raise RuntimeError(f"{submitted} runs were accepted and {runs} are there")
    for what, query in _TRUE.items():
        if found := await platform.sql.fetchval(query):
            raise RuntimeError(f"{found} {what}")
    steps = await platform.sql.fetchval("SELECT count(*) FROM steps")
    counted = {row["action"]: row["n"] for row in await platform.sql.fetch(_HISTORY)}
    wanted = {
        "run.submitted": runs, "run.succeeded": runs,
        "attempt.assigned": steps, "attempt.succeeded": steps,
    }  # fmt: skip
    if counted != wanted:
        raise RuntimeError(f"the history holds {counted}, not {wanted}")
    return f"{runs:,} runs, {steps:,} steps: each ended once, nothing reserved, history whole"


def started_once(platform: Platform) -> int:
    """Raise if any attempt began to exist twice on the clusters, which have ended; their count."""
    started: Counter[str] = Counter()
    for cluster in CLUSTERS:
        told = json.loads(platform.summary(cluster).read_text())
        if told["twice"]:
            raise RuntimeError(f"{cluster} started {told['twice'][:3]} twice")
        started.update(told["started"])
    steps = Counter(key.rpartition("-")[0] for key in started)
    if twice := [key for key, n in (started + steps).items() if n > 1]:
        raise RuntimeError(f"{len(twice)} steps ran more than once: {twice[:3]}")
    return len(steps)
