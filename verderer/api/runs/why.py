"""GET /runs/{run}/why: each waiting step with its reasons, cluster by cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from litestar import get

from verderer.api.auth import ActorArg, ContextArg
from verderer.api.paging import USUAL, AfterArg, LimitArg, Page, page_of, read_cursor
from verderer.api.runs.documents import quantities, show_reason
from verderer.api.runs.found import READ, RunArg, StepArg, the_run, the_step
from verderer.core.explain import Reason, Why
from verderer.core.model.cluster import OFFLINE_AFTER_S
from verderer.core.model.step import StepState
from verderer.store.views.steps import Shown
from verderer.store.views.why import StuckStep, scheduler_gone_s, stuck_steps
from verderer.wire.runs import ReasonOut, WhyOut


@get("/runs/{run:str}/why", opt=READ, tags=["runs"], summary="Why a run waits")
async def why_run(
    context: ContextArg,
    actor: ActorArg,
    run: RunArg,
    limit: LimitArg = USUAL,
    after: AfterArg = "",
) -> Page[WhyOut]:
    """Every step that waits, or whose cluster is silent, with its reasons."""
    start = read_cursor(after, int)
    async with context.db.reading() as tx:
        found = await the_run(tx, actor, run)
        rows = await stuck_steps(
            tx,
            actor.scope,
            found.id,
            after=-1 if start is None else min(start, 2**31 - 1),
            limit=limit + 1,
        )
        gone_s = await scheduler_gone_s(tx, actor.scope)
    now = context.clock()
    return page_of(rows, limit, key=lambda s: s.idx, show=lambda s: show_why(s, gone_s, now))


@get("/runs/{run:str}/steps/{step:str}/why", opt=READ, tags=["runs"], summary="Why a step waits")
async def why_step(context: ContextArg, actor: ActorArg, run: RunArg, step: StepArg) -> WhyOut:
    """One step with its reasons; there are none when it does not wait."""
    async with context.db.reading() as tx:
        head = await the_run(tx, actor, run)
        found = await the_step(tx, actor, head, step)
        rows = await stuck_steps(tx, actor.scope, head.id, found.idx)
        gone_s = await scheduler_gone_s(tx, actor.scope)
    return show_why(rows[0], gone_s, context.clock())


def show_why(step: StuckStep, gone_s: float | None, now: datetime) -> WhyOut:
    """The document of one step; `gone_s` is what `scheduler_gone_s` gives."""
    return WhyOut(
        index=step.idx,
        step=step.name,
        state=_shown(step),
        since=step.ready_at,
        requests=quantities(step.requests),
        nodes=step.nodes,
        reasons=reasons_of(step, gone_s, now),
    )


def reasons_of(step: StuckStep, gone_s: float | None, now: datetime) -> list[ReasonOut]:
    """Why the step does not run; empty when it does not wait."""
    if step.state is StepState.BLOCKED:
        return [show_reason(Reason(why=Why.NEEDS, others=step.needs))]
    if step.state is StepState.ACTIVE:
        return [show_reason(silent)] if (silent := _silence(step)) else []
    if step.state is not StepState.READY:
        return []
    found = [] if (nobody := _nobody_places(step, gone_s, now)) is None else [show_reason(nobody)]
    if step.pause_s > 0:
        return [*found, show_reason(Reason(why=Why.BACKOFF, seconds=step.pause_s))]
    if step.reasons:
        return found + [_stored(one) for one in _nearest_first(step.reasons)]
    return found or [show_reason(Reason(why=Why.PLACING))]


def _nobody_places(step: StuckStep, gone_s: float | None, now: datetime) -> Reason | None:
    if gone_s is not None and gone_s <= 0:
        return None
    since = (now - step.ready_at).total_seconds() if step.ready_at else 0.0
    return Reason(why=Why.NO_SCHEDULER, seconds=max(0.0, since if gone_s is None else gone_s))


def _silence(step: StuckStep) -> Reason | None:
    if step.silent_s is not None and step.silent_s < OFFLINE_AFTER_S:
        return None
    return Reason(why=Why.OFFLINE, cluster=step.cluster, seconds=step.silent_s or 0.0)


def _nearest_first(reasons: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The cluster that is nearest to starting it comes first: people read from the top."""
    order = {why.value: place for place, why in enumerate(Why)}
    return sorted(reasons, key=lambda r: -order.get(str(r.get("why")), -1))


def _stored(found: Mapping[str, Any]) -> ReasonOut:
    """A reason as placement wrote it; one that this release does not know keeps its code."""
    try:
        return show_reason(Reason.from_dict(found))
    except (ValueError, TypeError, KeyError):
        code, cluster = str(found.get("why", "unknown")), str(found.get("cluster", ""))
        return ReasonOut(code=code, cluster=cluster)


def _shown(step: StuckStep) -> str:
    if step.state in (StepState.BLOCKED, StepState.READY):
        return Shown.WAITING.value
    if step.state is StepState.ACTIVE:
        return (Shown.UNKNOWN if _silence(step) else Shown.RUNNING).value
    return step.state.value


ROUTES = (why_run, why_step)
