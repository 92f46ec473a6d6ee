"""GET /runs/{run}/why: each waiting step with its reasons, cluster by cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec
from litestar import Request, get

from verderer.api.auth import ActorArg, ContextArg
from verderer.api.paging import USUAL, AfterArg, LimitArg, Page, page_of, read_cursor
from verderer.api.runs.documents import quantities, show_reason, show_waiting
from verderer.api.runs.found import READ, RunArg, StepArg, the_run, the_step
from verderer.api.runs.output import read_output, source_of
from verderer.core.diagnosis import ADVICE, find, may_tell
from verderer.core.ending import describe
from verderer.core.explain import Reason, Why, nearest_first
from verderer.core.model.attempt import AttemptState, End
from verderer.core.model.cluster import OFFLINE_AFTER_S
from verderer.core.model.step import StepState
from verderer.objects.log_reading import last_lines
from verderer.store.views.steps import Shown, shown_attempt
from verderer.store.views.why import OnCluster, StuckStep, scheduler_gone_s, stuck_steps
from verderer.usecases.explain_silence import explain_silence
from verderer.wire.runs import EndedOut, ReasonOut, WhyOut


@get("/runs/{run:str}/why", opt=READ, tags=["runs"], summary="Why a run waits")
async def why_run(
    context: ContextArg,
    actor: ActorArg,
    run: RunArg,
    limit: LimitArg = USUAL,
    after: AfterArg = "",
) -> Page[WhyOut]:
    """Every step that waits, here or on its cluster, or whose cluster is silent."""
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
        fences = {s.idx: await explain_silence(context, tx, s) for s in rows}
    now = context.clock()

    def show(step: StuckStep) -> WhyOut:
        return show_why(step, gone_s, now, fences[step.idx])

    return page_of(rows, limit, key=lambda s: s.idx, show=show)


@get("/runs/{run:str}/steps/{step:str}/why", opt=READ, tags=["runs"], summary="Why a step waits")
async def why_step(
    request: Request[Any, Any, Any],
    context: ContextArg,
    actor: ActorArg,
    run: RunArg,
    step: StepArg,
) -> WhyOut:
    """One step with its reasons, of which there are none when it does not wait; when its newest
    attempt failed, how, and what lies behind that."""
    async with context.db.reading() as tx:
        head = await the_run(tx, actor, run)
        found = await the_step(tx, actor, head, step)
        rows = await stuck_steps(tx, actor.scope, head.id, found.idx)
        gone_s = await scheduler_gone_s(tx, actor.scope)
        fence = await explain_silence(context, tx, rows[0])
        newest = found.attempt
        output = None
        if newest is not None and newest.end is not None and may_tell(newest.end):
            number = newest.number
            output = await read_output(tx, actor, head, found, number=number, replica=0)
    shown = show_why(rows[0], gone_s, context.clock(), fence)
    if newest is None or newest.end is None or newest.state is AttemptState.SUCCEEDED:
        return shown
    last = await last_lines(source_of(request.app.state), output.infos) if output else b""
    return msgspec.structs.replace(shown, ended=_ended(newest.number, newest.end, last, rows[0]))


def _ended(number: int, end: End, last: bytes, step: StuckStep) -> EndedOut:
    finding = find(end, last, step.requests)
    if finding is None:
        return EndedOut(attempt=number, message=describe(end))
    behind, change = ADVICE[finding]
    return EndedOut(
        attempt=number, message=describe(end), code=finding.value, behind=behind, change=change
    )


def show_why(
    step: StuckStep, gone_s: float | None, now: datetime, fence: Reason | None = None
) -> WhyOut:
    """The document of one step; the rest is what `scheduler_gone_s` and `explain_silence` give."""
    reasons = reasons_of(step, gone_s, now)
    if fence is not None and step.state is StepState.ACTIVE:
        reasons.append(show_reason(fence))
    return WhyOut(
        index=step.idx,
        step=step.name,
        state=_shown(step),
        since=step.ready_at,
        requests=quantities(step.requests),
        nodes=step.nodes,
        reasons=reasons,
        nearest=next((one.change for one in reasons if one.change), ""),
    )


def reasons_of(step: StuckStep, gone_s: float | None, now: datetime) -> list[ReasonOut]:
    """Why the step does not run; empty when it does not wait."""
    if step.state is StepState.BLOCKED:
        return [show_reason(Reason(why=Why.NEEDS, others=step.needs))]
    if step.state is StepState.ACTIVE:
        if silent := _silence(step):
            return [show_reason(silent)]
        return [] if step.on_cluster is None else [_not_begun(step.cluster, step.on_cluster)]
    if step.state is not StepState.READY:
        return []
    found = [] if (nobody := _nobody_places(step, gone_s, now)) is None else [show_reason(nobody)]
    if step.pause_s > 0:
        return [*found, show_reason(Reason(why=Why.BACKOFF, seconds=step.pause_s))]
    if step.reasons:
        return found + _stored(step.reasons)
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


def _not_begun(cluster: str, there: OnCluster) -> ReasonOut:
    """The cluster's word, or that it has not said any."""
    if there.waits is not None:
        return show_waiting(there.waits, cluster, there.since)
    why = Why.ASSIGNED if there.state is AttemptState.ASSIGNED else Why.STARTING
    return show_reason(Reason(why=why, cluster=cluster))


def _stored(found: Sequence[Mapping[str, Any]]) -> list[ReasonOut]:
    """Reasons as placement wrote them; one that this release does not know keeps its code."""
    known, strange = [], []
    for one in found:
        try:
            known.append(Reason.from_dict(one))
        except (ValueError, TypeError, KeyError):
            code, cluster = str(one.get("why", "unknown")), str(one.get("cluster", ""))
            strange.append(ReasonOut(code=code, cluster=cluster))
    return [show_reason(reason) for reason in nearest_first(known)] + strange


def _shown(step: StuckStep) -> str:
    if step.state in (StepState.BLOCKED, StepState.READY):
        return Shown.WAITING.value
    if step.state is StepState.ACTIVE:
        state = step.on_cluster.state if step.on_cluster else AttemptState.RUNNING
        return shown_attempt(state, offline=_silence(step) is not None).value
    return step.state.value


ROUTES = (why_run, why_step)
