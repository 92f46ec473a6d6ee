"""What has become of an attempt, from what the cluster shows of it. One function, no clock.

Pods are believed before their Job: a Job says the same a second later. Nothing that is silent,
unknown or out of reach is ever taken for an end: only a container that says how it ended, a Job
that is finished, or the absence of what was surely there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from verderer.core.model.attempt import AttemptState, End, EndCause
from verderer.drivers.contract import Stored
from verderer.drivers.kubernetes import naming
from verderer.drivers.kubernetes.deciding.carriers import (
    carrier_end,
    failed_by_name,
    state_of,
    stored,
)
from verderer.drivers.kubernetes.intention import Named, Stop
from verderer.drivers.kubernetes.seen.clocks import unix_ms
from verderer.drivers.kubernetes.seen.sights import (
    Condition,
    Job,
    Pod,
    TerminatedState,
    condition,
    holds,
)

MAX_MESSAGE: Final = 2_000
_SIGKILL: Final = 9
_HIGHEST_SIGNAL: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """All that is known of an attempt whose end is not on record."""

    nodes: int = 1
    timeout_s: float | None = None
    stop: Stop | None = None
    had_job: bool = False
    """Its Job is known to have existed."""
    job: Job | None = None
    """As last seen, also when it is gone."""
    job_gone: bool = False
    pods: Sequence[Pod] = ()
    """As last seen; those that are gone too."""
    gone: frozenset[str] = frozenset()
    """UIDs of the pods that are gone."""
    outputs: Sequence[Named] = ()
    """What its carrier stores when the program has succeeded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What has become of it."""

    state: AttemptState
    node: str = ""
    started_ms: int | None = None
    end: End | None = None
    ended_ms: int | None = None
    """None with an end when nobody noted the time."""
    storing: bool = False
    """Its program has ended on all nodes, and its outputs are being stored."""
    outputs: tuple[Stored, ...] = ()
    """Of a success: what was stored."""


def judge(view: View) -> Verdict:
    """Decide. `view.stop` with another cause than `cancelled` is the driver's own decision."""
    pods = sorted(view.pods, key=_rank)
    started = [ms for pod in pods if (ms := _started_ms(pod)) is not None]
    node = next((pod.spec.node_name for pod in pods if pod.spec.node_name), "") or ""
    end = _end(view, pods)
    if end is not None:
        end, outputs = _with_outputs(view, pods, end)
        return Verdict(
            outputs=outputs,
            state=end.state,
            node=node,
            started_ms=min(started, default=None),
            end=end,
            ended_ms=_ended_ms(view, pods),
        )
    state = AttemptState.STARTING
    if view.stop is not None or (view.job is not None and view.job.metadata.deletion_timestamp):
        state = AttemptState.STOPPING
    elif len(started) >= view.nodes:
        state = AttemptState.RUNNING
    # All ranks have begun when the last has; of a part, nothing can be said yet.
    began = max(started) if len(started) >= view.nodes else None
    if state is AttemptState.STOPPING:
        began = max(started, default=None)
    over = sum(1 for pod in pods if _terminated(pod) is not None)
    return Verdict(state=state, node=node, started_ms=began, storing=over >= view.nodes)


def _with_outputs(view: View, pods: Sequence[Pod], end: End) -> tuple[End, tuple[Stored, ...]]:
    """A success counts only with the report of what was stored; the first replica gives it."""
    if not view.outputs or end.cause is not EndCause.EXIT or end.exit_code != 0:
        return end, ()
    for pod in pods:
        found = stored(pod, view.outputs) if _rank(pod) == 0 else None
        if found is not None:
            return end, found
    message = "it succeeded, and nobody saw what its carrier had stored: its pod is gone"
    return End(cause=EndCause.OUTPUT, exit_code=0, message=message), ()


def _end(view: View, pods: Sequence[Pod]) -> End | None:
    alive = [p for p in pods if p.metadata.uid not in view.gone and not _over(p)]
    job = view.job
    if job is not None and holds(job.status.conditions, "Complete"):
        if view.outputs and any(_rank(pod) == 0 for pod in alive):
            return None  # its report is on the way
        return End(cause=EndCause.EXIT, exit_code=0)
    if alive:
        return None
    if _all_succeeded(view, pods):
        return End(cause=EndCause.EXIT, exit_code=0)
    failed = job is not None and holds(job.status.conditions, "Failed") is not None
    first = _first_failure(view, pods)
    if view.stop is not None:
        return _stopped(view, view.stop, settled=failed or _at_rest(view))
    if failed or view.job_gone or (first is not None and _is_last_word(view, first)):
        return _limited(_failure(view, first))
    return None


def _at_rest(view: View) -> bool:
    """Nothing of it can begin any more."""
    return view.job_gone or (view.job is None and not view.had_job)


def _stopped(view: View, stop: Stop, *, settled: bool) -> End | None:
    if not settled:
        return None
    if stop.cause == EndCause.TIMEOUT:
        return _timeout(view)
    if stop.cause == EndCause.CANCELLED:
        return End(cause=EndCause.CANCELLED, message=stop.message or "stopped on request")
    cause = EndCause(stop.cause) if stop.cause in set(EndCause) else EndCause.CANCELLED
    return _limited(End(cause=cause, message=stop.message))


def _all_succeeded(view: View, pods: Sequence[Pod]) -> bool:
    done = {_rank(pod) for pod in pods if pod.status.phase == "Succeeded"}
    return len(done) >= view.nodes


def _is_last_word(view: View, first: Pod) -> bool:
    """Whether a failure is the last word already, before the Job says so.

    With one replica it is. Of several, some may not have been made yet: the Job decides then.
    """
    return view.nodes == 1 and first.metadata.uid not in view.gone


def _first_failure(view: View, pods: Sequence[Pod]) -> Pod | None:
    """The pod that failed first; those that were killed because of it come later."""
    failed = [pod for pod in pods if _over(pod) and pod.status.phase != "Succeeded"]
    failed += [pod for pod in pods if pod.metadata.uid in view.gone and not _over(pod)]
    return min(failed, key=_failure_order, default=None)


def _failure_order(pod: Pod) -> tuple[bool, int, int]:
    ended = _terminated(pod)
    at = unix_ms(ended.finished_at) if ended is not None else None
    return (_was_deleted(pod), at if at is not None else 1 << 62, _rank(pod))


def _failure(view: View, pod: Pod | None) -> End:
    """Why it failed, from the pod that failed first, else from the Job's own words."""
    end = _pod_end(view, pod) if pod is not None else None
    if end is not None:
        return _of_replica(view, pod, end)
    failed = holds(view.job.status.conditions, "Failed") if view.job is not None else None
    if failed is not None:
        return _job_end(view, failed)
    if view.job_gone or view.had_job:
        return End(cause=EndCause.LOST, message="its Job was deleted by somebody else")
    return End(cause=EndCause.LOST, message="the cluster does not say how it ended")


def _pod_end(view: View, pod: Pod) -> End | None:
    disrupted = holds(pod.status.conditions, "DisruptionTarget")
    ended = _terminated(pod)
    if pod.status.reason == "DeadlineExceeded":
        return _timeout(view)
    if disrupted is not None:
        return _disruption(pod, disrupted)
    reason = pod.status.reason or ""
    if reason in _POD_REASONS:
        cause, words = _POD_REASONS[reason]
        return End(cause=cause, message=f"{words}: {pod.status.message or reason}")
    if reason.startswith("OutOf"):
        return End(cause=EndCause.START, message=f"the node had no room: {pod.status.message}")
    carried = carrier_end(pod)
    if carried is not None and not pod.metadata.deletion_timestamp:
        return carried
    if ended is not None and not _was_deleted(pod):
        return _container_end(ended)
    if pod.metadata.deletion_timestamp:
        return End(cause=EndCause.LOST, message="its pod was deleted by somebody else")
    if pod.metadata.uid in view.gone:
        return End(cause=EndCause.LOST, message="its pod is gone, and nobody saw how it ended")
    return _container_end(ended) if ended is not None else None


def _container_end(ended: TerminatedState) -> End:
    if ended.reason == "OOMKilled":
        return End(
            cause=EndCause.OOM,
            signal=_SIGKILL,
            message="it reached its memory limit and was killed",
        )
    if ended.reason in _START_REASONS:
        return End(cause=EndCause.START, message=ended.message or ended.reason)
    signal = ended.signal or (ended.exit_code - 128 if ended.exit_code > 128 else 0)
    if 0 < signal <= _HIGHEST_SIGNAL:
        return End(cause=EndCause.SIGNAL, signal=signal, message=f"killed by signal {signal}")
    return End(
        cause=EndCause.EXIT, exit_code=ended.exit_code, message=f"exit code {ended.exit_code}"
    )


def _disruption(pod: Pod, why: Condition) -> End:
    words = _DISRUPTIONS.get(why.reason or "", "the cluster took its pod away")
    if pod.status.reason == "Evicted" and pod.status.message:
        return End(cause=EndCause.LOST, message=f"{words}: {pod.status.message}")
    return End(cause=EndCause.LOST, message=f"{words}: {why.message or why.reason}")


def _job_end(view: View, failed: Condition) -> End:
    message = failed.message or failed.reason or ""
    if failed.reason == "DeadlineExceeded":
        return _timeout(view)
    if "DisruptionTarget" in message:
        return End(cause=EndCause.LOST, message=f"the cluster took its pod away: {message}")
    found = _EXIT_CODE.search(message)
    if found is not None:
        code = int(found["code"])
        carried = failed_by_name(found["who"] or "", code)
        return carried or _container_end(TerminatedState(exit_code=code))
    return End(cause=EndCause.LOST, message=f"its Job failed and its pods are gone: {message}")


def _timeout(view: View) -> End:
    limit = "its time limit" if view.timeout_s is None else f"its timeout of {view.timeout_s:g} s"
    return End(cause=EndCause.TIMEOUT, message=f"it ran longer than {limit}")


def _of_replica(view: View, pod: Pod | None, end: End) -> End:
    if view.nodes == 1 or pod is None or end.cause is EndCause.TIMEOUT:
        return end
    message = f"replica {_rank(pod)} of {view.nodes}: {end.message}"
    return End(cause=end.cause, exit_code=end.exit_code, signal=end.signal, message=message)


def _limited(end: End) -> End:
    if len(end.message) <= MAX_MESSAGE:
        return end
    message = end.message[: MAX_MESSAGE - 1] + "…"
    return End(cause=end.cause, exit_code=end.exit_code, signal=end.signal, message=message)


def _over(pod: Pod) -> bool:
    return pod.status.phase in ("Succeeded", "Failed")


def _was_deleted(pod: Pod) -> bool:
    """Whether it ended because somebody deleted it, not before."""
    asked = unix_ms(pod.metadata.deletion_timestamp)
    if asked is None:
        return False
    ended = _terminated(pod)
    at = unix_ms(ended.finished_at) if ended is not None else None
    asked -= 1000 * (pod.metadata.deletion_grace_period_seconds or 0)
    return at is None or at >= asked


def _terminated(pod: Pod) -> TerminatedState | None:
    state = state_of(pod, naming.CONTAINER)
    return state.terminated if state is not None else None


def _started_ms(pod: Pod) -> int | None:
    state = state_of(pod, naming.CONTAINER)
    if state is None:
        return None
    if state.running is not None:
        return unix_ms(state.running.started_at)
    if state.terminated is not None and state.terminated.reason not in _START_REASONS:
        return unix_ms(state.terminated.started_at)
    return None


def _ended_ms(view: View, pods: Sequence[Pod]) -> int | None:
    ended = (_terminated(pod) for pod in pods)
    times = [ms for one in ended if one is not None and (ms := unix_ms(one.finished_at))]
    if times:
        return max(times)
    if view.job is None:
        return None
    failed = condition(view.job.status.conditions, "Failed")
    noted = view.job.status.completion_time or (failed.last_transition_time if failed else None)
    return unix_ms(noted)


def _rank(pod: Pod) -> int:
    text = pod.metadata.label(naming.COMPLETION_INDEX) or pod.metadata.annotation(
        naming.COMPLETION_INDEX
    )
    return int(text) if text.isdigit() else 0


rank: Final[Callable[[Pod], int]] = _rank
started_ms: Final[Callable[[Pod], int | None]] = _started_ms
program_over: Final[Callable[[Pod], TerminatedState | None]] = _terminated

_EXIT_CODE: Final = re.compile(
    r"(?:Container (?P<who>[^ ]+) for .*)?failed with exit code (?P<code>[0-9]{1,3})\b"
)
_START_REASONS: Final = frozenset(
    {"StartError", "ContainerCannotRun", "CreateContainerError", "RunContainerError"}
)
_POD_REASONS: Final[Mapping[str, tuple[EndCause, str]]] = MappingProxyType(
    {
        "Evicted": (EndCause.LOST, "the node evicted it"),
        "NodeLost": (EndCause.LOST, "its node was lost"),
        "NodeShutdown": (EndCause.LOST, "its node was shut down"),
        "Shutdown": (EndCause.LOST, "its node was shut down"),
        "Terminated": (EndCause.LOST, "its node was shut down"),
        "Preempting": (EndCause.LOST, "the node made room for a more important pod"),
        "UnexpectedAdmissionError": (EndCause.START, "the node could not take it"),
        "NodeAffinity": (EndCause.START, "the node did not fit any more"),
        "TopologyAffinityError": (EndCause.START, "the node could not align its devices"),
        "InvalidNodeInfo": (EndCause.START, "the node could not take it"),
        "UnsupportedFeature": (EndCause.START, "the node cannot do what it asks for"),
    }
)
_DISRUPTIONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "PreemptionByScheduler": "preempted by a more important pod",
        "DeletionByTaintManager": "its node became unusable",
        "EvictionByEvictionAPI": "evicted, as when a node is drained",
        "DeletionByPodGC": "its node is gone",
        "TerminationByKubelet": "the node evicted it",
    }
)
