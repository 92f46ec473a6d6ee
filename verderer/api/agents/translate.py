"""Between wire documents of agents and our own values; what does not fit is refused by name."""

from __future__ import annotations

from datetime import UTC, datetime

from verderer.core.errors import Invalid
from verderer.core.model.attempt import AttemptKey, AttemptState, End, EndCause
from verderer.core.model.cluster import CheckLevel, CheckReport, NodeReport
from verderer.core.model.resources import Resources
from verderer.core.model.waiting import Pending, Waiting
from verderer.core.pipeline.spec import OnClusterLost
from verderer.usecases.agents import hand_out_orders
from verderer.usecases.agents.receive_logs import Chunk
from verderer.usecases.agents.receive_report import Fact
from verderer.wire import agent as wire

_FACTS = frozenset(
    {
        AttemptState.STARTING,
        AttemptState.RUNNING,
        AttemptState.SUCCEEDED,
        AttemptState.FAILED,
        AttemptState.CANCELLED,
        AttemptState.LOST,
    }
)
_LATEST_MS = 253_402_300_799_000  # the end of the year 9999


def fact(document: wire.AttemptFact) -> Fact:
    """Read one fact.

    Raises:
        Invalid: its key, state or end is not one.
    """
    try:
        state = AttemptState(document.state)
        end = None if document.end is None else _end(document.end)
    except ValueError as e:
        raise Invalid(f"attempt {document.key[:100]!r}: {e}") from e
    if state not in _FACTS:
        raise Invalid(f"an agent does not report {state}")
    if (end is None) == state.over or (end is not None and end.state is not state):
        raise Invalid(f"attempt {document.key[:100]!r}: its end does not fit the state {state}")
    return Fact(
        key=_key(document.key),
        state=state,
        node=document.node[:253],
        at=_time(document.at_unix_ms),
        end=end,
        outputs=tuple((o.name, o.key, o.size, o.files, o.sha256) for o in document.outputs),
    )


def _end(document: wire.EndFact) -> End:
    return End(
        cause=EndCause(document.cause),
        exit_code=document.exit_code,
        signal=document.signal,
        message=document.message.replace("\x00", "")[:2000],
    )


def wait(document: wire.WaitFact) -> tuple[AttemptKey, Waiting | None] | None:
    """Read why an attempt waits; a code that we do not know is shown by its words alone.

    None: it names no attempt, so there is nothing to be said about it.
    """
    try:
        key = AttemptKey.parse(document.key)
    except ValueError:
        return None
    if not document.code:
        return key, None
    try:
        code = Pending(document.code)
    except ValueError:
        code = Pending.UNKNOWN
    numbers = {name[:100]: n for name, n in document.numbers.items() if abs(n) < 2**63}
    words = document.message.replace("\x00", "")[:2000]
    waits = Waiting(
        code=code,
        message=words,
        numbers=dict(list(numbers.items())[:50]),
        hopeless=document.hopeless,
    )
    return key, waits


def chunk(document: wire.LogFact) -> Chunk:
    """Read the news of one log chunk."""
    return Chunk(
        key=_key(document.key),
        replica=document.replica,
        sequence=document.sequence,
        first_byte=document.first_byte,
        size=document.size,
        lines=document.lines,
        lost=document.lost,
        first_at=_time(document.first_unix_ms),
        last_at=_time(document.last_unix_ms),
        sealed=document.sealed,
        complete=document.complete,
    )


def node(document: wire.NodeFact) -> NodeReport:
    """Read the description of one node."""
    try:
        allocatable = Resources.of(document.allocatable)
    except ValueError as e:
        raise Invalid(f"node {document.name[:100]!r}: {e}") from e
    return NodeReport(
        name=document.name[:253],
        ready=document.ready,
        allocatable=allocatable,
        labels=document.labels,
        cpu_load=document.cpu_load,
        memory_free=document.memory_free,
    )


def order(given: hand_out_orders.Order) -> wire.Order:
    """Write one order."""
    return wire.Order(
        key=str(given.key),
        revision=given.revision,
        launch=None if given.begin is None else _launch(given.begin),
        grace_s=given.grace_s,
        log_prefix=given.log_prefix,
    )


def _launch(begin: hand_out_orders.Begin) -> wire.Launch:
    spec, filled = begin.spec, begin.launch
    return wire.Launch(
        run_name=begin.run_name,
        step=begin.step,
        project=begin.project,
        image=filled.image,
        command=list(filled.command),
        args=list(filled.args),
        script=filled.script,
        env=dict(begin.env),
        requests=spec.requests.as_dict(),
        limits=spec.limits.as_dict(),
        nodes=spec.nodes,
        timeout_s=spec.timeout_s,
        grace_s=float(spec.grace_s),
        leased=spec.on_cluster_lost is OnClusterLost.RERUN,
        inputs=[wire.InputFile(name=i.name, path=i.path, key=i.key) for i in begin.inputs],
        outputs=[wire.OutputFile(name=o.name, path=o.path, key=o.key) for o in begin.outputs],
    )


def _key(text: str) -> AttemptKey:
    try:
        return AttemptKey.parse(text)
    except ValueError as e:
        raise Invalid(f"{text[:100]!r} is not an attempt") from e


def _time(unix_ms: int) -> datetime | None:
    if not 0 < unix_ms <= _LATEST_MS:
        return None
    return datetime.fromtimestamp(unix_ms / 1000, UTC)


def check(fact: wire.CheckFact) -> CheckReport:
    """A level that we do not know is one that was not passed."""
    try:
        level = CheckLevel(fact.level)
    except ValueError:
        level = CheckLevel.UNKNOWN
    return CheckReport(
        name=fact.name[:100],
        level=level,
        required=fact.required,
        message=fact.message[:2_000],
        remedy=fact.remedy[:8_000],
    )
