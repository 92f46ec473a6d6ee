"""Rows of the store as documents of the API."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from verderer.core.explain import NEVER, Reason
from verderer.core.model.ids import run_id_text
from verderer.core.model.resources import format_quantity
from verderer.core.model.waiting import Waiting
from verderer.store.views.run_parts import BriefStep
from verderer.store.views.runs import Event, RunDetail, RunRow
from verderer.store.views.steps import ArtifactRow, AttemptRow, Shown, StepRow
from verderer.wire import runs as wire


def quantities(amounts: Mapping[str, int]) -> dict[str, str]:
    """Base units as Kubernetes quantities."""
    return {name: format_quantity(n, resource=name) for name, n in sorted(amounts.items())}


def show_run(row: RunRow) -> wire.RunOut:
    """One line of the list."""
    return wire.RunOut(**_run(row))


def show_detail(row: RunDetail, counts: Mapping[Shown, int]) -> wire.RunDetail:
    """Everything about one run but its steps."""
    return wire.RunDetail(
        **_run(row),
        counts={shown.value: counts[shown] for shown in Shown if counts.get(shown)},
        parameters=dict(row.parameters),
        idempotency_key=row.idempotency_key,
        pipeline=row.document,
    )


def _run(row: RunRow) -> dict[str, Any]:
    return {
        "id": run_id_text(row.id),
        "name": row.name,
        "project": row.project,
        "resource_group": row.resource_group,
        "state": row.state.value,
        "labels": dict(row.labels),
        "steps": row.steps,
        "open": row.open,
        "failed": row.failed,
        "actor": row.actor,
        "cloned_from": run_id_text(row.cloned_from) if row.cloned_from else None,
        "created_at": row.created_at,
        "started_at": row.started_at,
        "ended_at": row.ended_at,
    }


def show_step(row: StepRow) -> wire.StepOut:
    """A step with its newest attempt."""
    return wire.StepOut(**_step(row))


def show_step_detail(row: StepRow, attempts: list[AttemptRow]) -> wire.StepDetail:
    """A step with all of its attempts."""
    return wire.StepDetail(**_step(row), history=[show_attempt(a) for a in attempts])


def _step(row: StepRow) -> dict[str, Any]:
    return {
        "index": row.idx,
        "name": row.name,
        "state": row.shown.value,
        "matrix": dict(row.matrix or {}),
        "waits": row.waits,
        "attempts": row.attempts,
        "note": row.note,
        "requests": quantities(row.requests),
        "nodes": row.nodes,
        "ready_at": row.ready_at,
        "started_at": row.started_at,
        "ended_at": row.ended_at,
        "attempt": show_attempt(row.attempt) if row.attempt else None,
    }


def show_attempt(row: AttemptRow) -> wire.AttemptOut:
    """One launch."""
    return wire.AttemptOut(
        number=row.number,
        state=row.shown.value,
        cluster=row.cluster_id,
        node=row.node,
        assigned_at=row.assigned_at,
        started_at=row.started_at,
        ended_at=row.ended_at,
        cause=row.cause.value if row.cause else None,
        exit_code=row.exit_code,
        signal=row.signal,
        message=row.message,
        seen_at=row.seen_at,
    )


def show_reason(reason: Reason) -> wire.ReasonOut:
    """A reason with its numbers, in words and as values."""

    def amount(value: int) -> str:
        return format_quantity(value, resource=reason.resource) if reason.resource else ""

    return wire.ReasonOut(
        code=reason.why.value,
        message=reason.message,
        change=reason.change,
        never=reason.why in NEVER,
        cluster=reason.cluster,
        group=reason.group,
        resource=reason.resource,
        asked=amount(reason.asked),
        free=amount(reason.free),
        total=amount(reason.total),
        seconds=reason.seconds,
        others=list(reason.others),
        foreign=amount(reason.foreign) if reason.foreign else "",
    )


def show_waiting(waits: Waiting, cluster: str, since: datetime) -> wire.ReasonOut:
    """What a cluster says of an attempt that has not begun there."""
    return wire.ReasonOut(
        code=waits.code.value,
        message=waits.sentence,
        change=waits.change,
        never=waits.hopeless,
        cluster=cluster,
        numbers=dict(waits.numbers),
        since=since,
    )


def show_event(row: Event) -> wire.EventOut:
    """One line of the audit."""
    return wire.EventOut(
        seq=row.seq,
        at=row.at,
        actor=row.actor,
        action=row.action,
        step=row.step_idx,
        attempt=row.attempt,
        object=row.object,
        result=row.result,
        origin=row.origin,
        detail=dict(row.detail or {}),
    )


def show_artifact(row: ArtifactRow, run: str) -> wire.ArtifactOut:
    """An artifact with the address of its bytes."""
    folder = is_folder(row)
    what = "files" if folder else "content"
    return wire.ArtifactOut(
        index=row.idx,
        step=row.step,
        attempt=row.number,
        name=row.name,
        folder=folder,
        size=row.size,
        files=row.files,
        sha256=row.sha256,
        created_at=row.created_at,
        key=row.key,
        url=f"/api/v1/runs/{run}/artifacts/{row.idx}/{row.number}/{row.name}/{what}",
    )


def is_folder(row: ArtifactRow) -> bool:
    """Whether the artifact is a folder of files rather than one file."""
    return row.key.endswith("/") or row.files != 1


def show_change(step: BriefStep) -> wire.StepChange:
    """What `watch` says of a step."""
    return wire.StepChange(
        index=step.idx,
        name=step.name,
        state=step.shown.value,
        attempt=step.attempts,
        cluster=step.cluster,
        note=step.note,
        started_at=step.started_at,
        ended_at=step.ended_at,
    )
