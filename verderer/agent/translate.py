"""From wire documents to what drivers take, and back."""

from __future__ import annotations

from typing import Final

from verderer.agent.journal import Launched
from verderer.core.model.attempt import AttemptKey, End
from verderer.core.model.resources import Resources
from verderer.core.model.waiting import Waiting
from verderer.drivers import contract
from verderer.wire.agent import EndFact, Launch, NodeFact, Order, StoredOutput, WaitFact

MAX_MESSAGE: Final = 2_000
MAX_NUMBERS: Final = 50


def driver_order(order: Order, launch: Launch) -> contract.Order:
    """What a driver is told to start.

    Raises:
        ValueError: an amount is negative or the key names no attempt.
    """
    return contract.Order(
        key=AttemptKey.parse(order.key),
        run_name=launch.run_name,
        step=launch.step,
        project=launch.project,
        image=launch.image,
        command=tuple(launch.command),
        args=tuple(launch.args),
        script=launch.script,
        env=launch.env,
        requests=Resources.of(launch.requests),
        limits=Resources.of(launch.limits),
        nodes=launch.nodes,
        timeout_s=launch.timeout_s,
        grace_s=launch.grace_s,
        leased=launch.leased,
        inputs=tuple(
            contract.Input(name=one.name, path=one.path, key=one.key) for one in launch.inputs
        ),
        outputs=tuple(
            contract.Output(name=one.name, path=one.path, key=one.key) for one in launch.outputs
        ),
    )


def terms_of(order: Order) -> Launched:
    """What must be remembered of an order for as long as the attempt lasts."""
    launch = order.launch
    return Launched(
        order.key,
        log_prefix=order.log_prefix,
        replicas=launch.nodes if launch is not None else 1,
        outputs=list(launch.outputs) if launch is not None else [],
    )


def end_fact(end: End) -> EndFact:
    """How an attempt ended, for the wire."""
    return EndFact(
        cause=end.cause.value,
        exit_code=end.exit_code,
        signal=end.signal,
        message=end.message[:MAX_MESSAGE],
    )


def wait_fact(key: AttemptKey, waits: Waiting | None) -> WaitFact:
    """Why an attempt waits, for the wire; None: it does not any more."""
    if waits is None:
        return WaitFact(key=str(key))
    return WaitFact(
        key=str(key),
        code=waits.code.value,
        message=waits.message[:MAX_MESSAGE],
        numbers=dict(list(waits.numbers.items())[:MAX_NUMBERS]),
        hopeless=waits.hopeless,
    )


def stored_output(one: contract.Stored) -> StoredOutput:
    """What a step's own carrier has stored, for the wire."""
    return StoredOutput(
        name=one.name, key=one.key, size=one.size, files=one.files, sha256=one.sha256
    )


def node_fact(node: contract.NodeFacts) -> NodeFact:
    """What a node can give, for the wire."""
    return NodeFact(
        name=node.name,
        ready=node.ready,
        allocatable=node.allocatable.as_dict(),
        labels=dict(node.labels),
        cpu_load=node.cpu_load,
        memory_free=node.memory_free,
    )
