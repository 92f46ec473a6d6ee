"""What is to be done about an attempt, from values alone; the keeper does it.

Every deed may be decided again before its effect is seen: each is harmless when repeated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from verderer.core.model.attempt import AttemptState, EndCause
from verderer.core.model.waiting import Pending, Waiting
from verderer.drivers.kubernetes import intention as intentions
from verderer.drivers.kubernetes.deciding.ending import Verdict, View
from verderer.drivers.kubernetes.deciding.waiting import at_once
from verderer.drivers.kubernetes.intention import Intention
from verderer.drivers.kubernetes.seen.clocks import rfc3339
from verderer.drivers.kubernetes.seen.sights import Pod, holds
from verderer.drivers.kubernetes.terms import Terms

SETTLE_S: Final = 1.0
"""What is younger is not written about unless it has ended: most steps that are over within a
second then cost one write, and a burst of starts is not slowed by telling how each begins."""
NOTE_EVERY_S: Final = 10.0
"""A changed message alone is not written more often."""
_NEVER: Final = ("violates PodSecurity", "denied the request")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One attempt with an object of ours and no end on record, at one moment."""

    intention: Intention
    view: View
    verdict: Verdict
    waits: Waiting | None
    waited_s: float
    """For so long it has waited for the same kind of thing."""
    age_s: float
    """Since this life of the agent first saw it."""
    noted_s: float
    """Since its status was last written."""
    hurried: frozenset[str]
    now_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Deeds:
    """In the order in which to do them."""

    stop: dict[str, Any] | None = None
    """Ask for its end: for `spec.stop`."""
    make_job: bool = False
    delete_job: bool = False
    hurry: Sequence[Pod] = ()
    """Pods to be told to end within the grace of the stop."""
    status: dict[str, Any] | None = None
    """For the status, what has changed of it."""
    look_again_s: float | None = None
    """Nothing may happen until then, and then something may be due."""


def due(case: Case, terms: Terms) -> Deeds:
    """Decide."""
    verdict, view = case.verdict, case.view
    if verdict.end is not None:
        ended_ms = verdict.ended_ms if verdict.ended_ms is not None else case.now_ms
        return Deeds(
            status={
                **_progress(case),
                **intentions.ended_status(verdict.end, ended_ms=ended_ms, stored=verdict.outputs),
            }
        )
    if view.stop is not None:
        alive = [p for p in view.pods if p.metadata.uid not in view.gone]
        return Deeds(
            delete_job=_deletable(view),
            hurry=[p for p in alive if p.metadata.uid not in case.hurried],
            status=_changes(case),
        )
    stop, later = _overdue(case, terms)
    young = SETTLE_S - case.age_s
    return Deeds(
        stop=stop,
        make_job=stop is None and not view.had_job,
        status=_changes(case) if young <= 0 else None,
        look_again_s=later if young <= 0 else min(young, later if later is not None else young),
    )


def _deletable(view: View) -> bool:
    return (
        view.job is not None
        and not view.job_gone
        and not view.job.metadata.deletion_timestamp
        and holds(view.job.status.conditions, "Failed") is None
    )


def _overdue(case: Case, terms: Terms) -> tuple[dict[str, Any] | None, float | None]:
    """What ends it for having taken too long, or seconds until something could."""
    timeout_s, began = case.view.timeout_s, case.verdict.started_ms
    if case.verdict.storing:
        return None, None
    if case.verdict.state is AttemptState.RUNNING and timeout_s is not None and began is not None:
        left = timeout_s + terms.timeout_margin_s - (case.now_ms - began) / 1000
        return (_stop(case, EndCause.TIMEOUT, ""), None) if left <= 0 else (None, left)
    waits = case.waits
    if waits is None:
        return None, None
    if waits.hopeless:
        never = at_once(waits) or any(words in waits.message for words in _NEVER)
        limit, words = 0.0 if never else terms.start_wait_s, waits.message
    elif waits.code is Pending.GANG:
        limit = terms.gang_wait_s
        words = f"not all replicas found a place within {limit:g} s: {waits.message}"
    else:
        return None, None
    left = limit - case.waited_s
    return (_stop(case, EndCause.START, words), None) if left <= 0 else (None, left)


def _stop(case: Case, cause: EndCause, message: str) -> dict[str, Any]:
    return intentions.stop(
        cause,
        grace_s=case.intention.spec.grace_seconds,
        at_ms=case.now_ms,
        message=message[:2_000],
    )


def _changes(case: Case) -> dict[str, Any] | None:
    """What of the status is not on record yet; None when there is nothing to write."""
    known = case.intention.status
    new = _progress(case)
    told = {
        "phase": known.phase,
        "node": known.node,
        "jobUid": known.job_uid,
        "startedAt": known.started_at,
    }
    words = {"reason": "", "message": ""}
    if case.waits is not None:
        words = {"reason": case.waits.code.value, "message": case.waits.message[:2_000]}
    changed = {name: text for name, text in new.items() if told.get(name) != text}
    if changed or (case.waits is not None and _worth_saying(case, words)):
        return {**changed, **words}
    return None


def _worth_saying(case: Case, words: Mapping[str, str]) -> bool:
    known = case.intention.status
    if words["reason"] != known.reason:
        return True
    return words["message"] != known.message and case.noted_s >= NOTE_EVERY_S


def _progress(case: Case) -> dict[str, Any]:
    verdict = case.verdict
    new: dict[str, Any] = {"phase": intentions.PHASES[verdict.state]}
    if verdict.node:
        new["node"] = verdict.node
    if case.view.job is not None:
        new["jobUid"] = case.view.job.metadata.uid
    if verdict.started_ms is not None:
        new["startedAt"] = rfc3339(verdict.started_ms)
    return new
