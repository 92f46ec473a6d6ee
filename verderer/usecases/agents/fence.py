"""Fence: what a silent cluster ran, and is sure to have stopped, is given up and may start anew."""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from verderer.core.errors import Conflict
from verderer.core.fencing import LEASE_S, MARGIN_S, Fenced, Silence, behind_fence, fence_s
from verderer.core.model.actor import Actor, ActorKind
from verderer.core.model.attempt import AttemptKey, AttemptState, End, EndCause
from verderer.store.database import Row, Tx
from verderer.store.tables.lost import fences
from verderer.usecases.agents.receive_report import Fact, receive_facts
from verderer.usecases.context import Context

_AT_ONCE = 500

log = structlog.get_logger(__name__)


async def fence_silent(ctx: Context) -> int:
    """Give up what may start elsewhere, on every cluster that has just become silent for so long.

    Return how many attempts. Safe to repeat and to run in several processes at once: an attempt
    ends once. A cluster is looked at once for each of its silences.
    """
    async with ctx.db.reading() as tx:
        silent = await fences.due(tx, beyond_s=LEASE_S + MARGIN_S)
    given_up = 0
    for cluster in silent:
        try:
            given_up += await _fence(ctx, cluster)
        except Conflict as e:  # its agent has just come back, in a new session
            log.info("a cluster came back before it was fenced", cluster=cluster.name, why=e.code)
    return given_up


async def _fence(ctx: Context, cluster: fences.Silent) -> int:
    agent = Actor(kind=ActorKind.AGENT, id=cluster.id, name=cluster.name, origin="fence")
    end = End(cause=EndCause.LOST, message=_said(cluster))
    given_up, after = 0, 0
    epoch: int | None = None
    while True:
        async with ctx.db.reading() as tx:
            rows = await fences.live_on(tx, cluster, after=after, limit=_AT_ONCE)
            keys = await _fenced(ctx, tx, cluster, rows)
        if keys:
            epoch = epoch or await _close(ctx, cluster)
            facts = [Fact(key=key, state=AttemptState.LOST, end=end) for key in keys]
            await receive_facts(ctx, agent, epoch=epoch, facts=facts)
            log.warning("work given up behind its fence", cluster=cluster.name, attempts=len(keys))
        given_up += len(keys)
        if len(rows) < _AT_ONCE:
            break
        after = rows[-1]["step"]
    async with ctx.db.transaction() as tx:
        await fences.done(tx, cluster)
    return given_up


async def _close(ctx: Context, cluster: fences.Silent) -> int:
    """An agent that comes back in its old session could still start what it was preparing."""
    bound = fence_s(cluster.stops_within_s)
    async with ctx.db.transaction() as tx:
        epoch = await fences.close_session(tx, cluster.id, cluster.epoch, silent_s=bound)
    if epoch is None:
        raise Conflict(f"cluster {cluster.name} is back", code="cluster_heard")
    return epoch


async def _fenced(
    ctx: Context, tx: Tx, cluster: fences.Silent, rows: Sequence[Row]
) -> list[AttemptKey]:
    found = []
    for row in rows:
        spec = (await ctx.pipelines.load(tx, row["document"])).steps[row["template"]]
        silence = Silence(
            silent_s=cluster.silent_s,
            stops_within_s=cluster.stops_within_s,
            under_promise=row["under_promise"],
        )
        if isinstance(behind_fence(spec.on_cluster_lost, silence), Fenced):
            found.append(AttemptKey(row["run_id"], row["idx"], row["number"]))
    return found


def _said(cluster: fences.Silent) -> str:
    bound = fence_s(cluster.stops_within_s)
    return (
        f"cluster {cluster.name} was silent for {cluster.silent_s:.0f} s; its agent stops such "
        f"work within {bound:.0f} s"
    )
