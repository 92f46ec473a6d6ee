"""The agent's clocks: fetch orders, watch the cluster, tell about nodes. Each stands on its own.

When the control plane is away, observation goes on and what it finds waits in the reporter; when
the cluster is away, orders wait and nothing is concluded from silence.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Final

import structlog

from verderer.agent.backoff import Backoff
from verderer.agent.lease import Lease
from verderer.agent.reconciler import Reconciler
from verderer.agent.reporter import Reporter
from verderer.agent.session import Complaints, Session, pause_s
from verderer.agent.translate import node_fact
from verderer.core.errors import Fault, VerdererError
from verderer.drivers.contract import Driver
from verderer.wire.agent import NodeFact, SyncRequest

log = structlog.get_logger("verderer.agent")

LONGEST_WAIT_S: Final = 10.0
NODES_EVERY_S: Final = 10.0
NODES_LOOK_S: Final = 2.0
OBSERVE_EVERY_S: Final = 10.0
DRIVER_ANSWERS_S: Final = 60.0
"""A driver that takes longer over an observation is treated as unreachable."""
_PAUSE: Final = 3.0
"""Looking may take a quarter of the time: after a look that took t comes a pause of 3 t."""


async def fetch_orders(
    session: Session, books: Reconciler, reporter: Reporter, lease: Lease
) -> None:
    """Long-poll for orders until cancelled.

    Raises:
        Superseded: another agent has taken over.
    """
    backoff, complaints = Backoff(), Complaints("fetching orders")
    # Half the heartbeat, so that an answer which takes its time still counts as one.
    wait_s = min(LONGEST_WAIT_S, session.heartbeat_s / 2)
    while True:
        await reporter.room()
        desired = books.desired
        asked = desired.ask()
        request = SyncRequest(
            epoch=session.epoch,
            since=desired.revision,
            wait_s=wait_s if desired.whole else 0.0,
        )
        since, began, sent = desired.revision, time.monotonic(), lease.now()
        try:
            answer = await session.call(session.client.sync(request))
        except VerdererError as error:
            wait = pause_s(error, backoff)
            complaints.trouble(error, retry_s=wait)
            await asyncio.sleep(wait)
            continue
        complaints.over()
        if answer.revision < desired.revision and not answer.full:
            desired.revision = 0  # the server has gone back in time: ask for everything
        books.received(answer, asked=asked)
        await lease.granted(answer.lease_s, sent=sent)  # after what must end has been told to
        for key in desired.unreadable:
            log.error("an order has a key that names no attempt", key=ascii(key))
        desired.unreadable.clear()
        # Composing the next request takes a millisecond that what has just come need not wait for.
        await asyncio.sleep(0.001)
        news = bool(answer.orders) or answer.revision != since
        if news or not request.wait_s or time.monotonic() - began >= wait_s / 2:
            backoff.reset()
        else:
            # Answered at once with nothing: a server that does not hold polls must not be hammered.
            await backoff.wait()


async def watch_cluster(driver: Driver, books: Reconciler, *, settle_s: float) -> None:
    """Observe whenever something may have changed, and now and then."""
    backoff, complaints = Backoff(), Complaints("observing the cluster")
    while True:
        number = books.begin_observation()
        began = time.monotonic()
        try:
            async with asyncio.timeout(DRIVER_ANSWERS_S):
                attempts = await driver.observe()
        except (VerdererError, TimeoutError) as error:
            fault = error if isinstance(error, VerdererError) else Fault("it does not answer")
            wait = backoff.next_s()
            complaints.trouble(fault, retry_s=wait)
            await asyncio.sleep(wait)
            continue
        backoff.reset()
        complaints.over()
        changed = books.observed(attempts, number=number)
        looked = time.monotonic()
        books.act_on(changed)
        await _changed(driver, settle_s / 4 if books.unsettled else OBSERVE_EVERY_S)
        pause = looked + _PAUSE * (looked - began) - time.monotonic()
        if pause > 0:
            await asyncio.sleep(pause)


async def _changed(driver: Driver, timeout_s: float) -> None:
    try:
        async with asyncio.timeout(timeout_s + DRIVER_ANSWERS_S):
            await driver.changed(timeout_s=timeout_s)
    except (VerdererError, TimeoutError):
        await asyncio.sleep(min(1.0, timeout_s))


async def tell_nodes(driver: Driver, reporter: Reporter) -> None:
    """Report the cluster's nodes every ten seconds, and within two of a change."""
    last: Sequence[object] = ()
    told = 0.0
    complaints = Complaints("asking for the nodes")
    while True:
        try:
            async with asyncio.timeout(DRIVER_ANSWERS_S):
                nodes = [node_fact(node) for node in await driver.nodes()]
        except (VerdererError, TimeoutError) as error:
            fault = error if isinstance(error, VerdererError) else Fault("it does not answer")
            complaints.trouble(fault, retry_s=NODES_LOOK_S)
            await asyncio.sleep(NODES_LOOK_S)
            continue
        complaints.over()
        now, lasting = time.monotonic(), [_lasting(node) for node in nodes]
        if lasting != last or now - told >= NODES_EVERY_S - NODES_LOOK_S / 2:
            last, told = lasting, now
            reporter.nodes(nodes)
        await asyncio.sleep(NODES_LOOK_S)


def _lasting(node: NodeFact) -> tuple[object, ...]:
    """What counts as a change: load and free memory move all the time."""
    return node.name, node.ready, node.allocatable, node.labels
