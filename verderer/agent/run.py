"""Builds an agent from its parts and runs it until it is told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import signal
from collections.abc import Coroutine, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import structlog

from verderer.agent.checking import tell_checks
from verderer.agent.chores import Chores
from verderer.agent.ending import Ender
from verderer.agent.files.tickets import Tickets
from verderer.agent.files.transfers import Granter, Transfers
from verderer.agent.identity.renewing import Renewing
from verderer.agent.journal import Journal
from verderer.agent.launching import Launcher
from verderer.agent.lease import Lease, promise_of
from verderer.agent.logs.shipping import Shipper
from verderer.agent.logs.stream import Limits
from verderer.agent.loop import fetch_orders, tell_nodes, watch_cluster
from verderer.agent.reconciler import Hands, Reconciler
from verderer.agent.releasing import Releaser
from verderer.agent.reporter import Reporter
from verderer.agent.session import (
    SESSION_IS_SOUND_S,
    Session,
    SupersededNote,
    open_session,
)
from verderer.core.errors import Conflict, Fault, VerdererError
from verderer.drivers.contract import Driver
from verderer.wire.client import AgentClient
from verderer.wire.object_client import ObjectClient

log = structlog.get_logger("verderer.agent")

EXIT_STOPPED: Final = 0
"""Told to stop; everything known is reported, or could not be within `stop_within_s`."""
EXIT_SUPERSEDED: Final = 3
"""Another agent speaks for this cluster; a supervisor may restart us, the next start waits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentConfig:
    """What an agent is told at its start."""

    server_url: str
    credential: str = field(repr=False)
    """Made on the cluster's page; decides which cluster this is."""
    state_dir: Path
    """Where the journal lies. Must survive restarts; belongs to one agent at a time."""
    version: str
    carry_url: str = ""
    """Where the carriers of steps reach the control plane; empty: at `server_url`."""
    ca_file: str | None = None
    """PEM file of the authority that signed the server's certificate, when the system has none."""
    identity: Renewing | None = None
    """Where the next credential comes from; None: this one is for good."""
    settle_s: float = 10.0
    """An attempt that was launched and is absent for so long is reported as lost."""
    request_timeout_s: float = 30.0
    """For one exchange with the control plane, beside the time that a long poll waits."""
    stop_within_s: float = 4.0
    """Most time for the last reports after SIGTERM."""
    logs: Limits = field(default_factory=Limits)


async def run_agent(config: AgentConfig, driver: Driver) -> int:
    """Serve the cluster that the credential stands for, until SIGTERM or SIGINT.

    Running work is left alone whatever happens here. Returns `EXIT_STOPPED` or `EXIT_SUPERSEDED`.

    Raises:
        Conflict: another agent uses the same state directory.
        Fault: the state directory cannot be used.
        Invalid: an address or a certificate file is malformed.
    """
    stop = asyncio.Event()
    with _signals(stop):
        async with AsyncExitStack() as stack:
            _claim(stack, config.state_dir)
            note = SupersededNote(config.state_dir)
            client = await stack.enter_async_context(
                AgentClient(
                    config.server_url,
                    config.credential,
                    ca_file=config.ca_file,
                    timeout_s=config.request_timeout_s,
                )
            )
            if config.identity is not None:
                await _identify(stack, config.identity, client)
            objects = await stack.enter_async_context(
                ObjectClient(config.server_url, ca_file=config.ca_file)
            )
            session = await _unless(stop, _enter(config, driver, client, note))
            if session is None:
                return EXIT_STOPPED
            return await _serve(config, driver, session, objects, note, stop)


async def _identify(stack: AsyncExitStack, identity: Renewing, client: AgentClient) -> None:
    """Begin with a credential that works, if there is one to be had, and keep it fresh."""
    if identity.due:
        with contextlib.suppress(VerdererError):  # said, and tried again, by the task below
            await identity.once(client)
    task = asyncio.create_task(identity.run(client), name="credential")
    stack.callback(task.cancel)


async def _enter(
    config: AgentConfig, driver: Driver, client: AgentClient, note: SupersededNote
) -> Session:
    pause = note.pause_s()
    if pause:
        log.warning(
            "another agent had taken over this cluster: waiting before trying to take it back",
            for_s=round(pause),
            hint="stop one of the two, or give each cluster a credential of its own",
        )
        await asyncio.sleep(pause)
    return await open_session(
        client, version=config.version, kind=driver.kind, stops_within_s=promise_of(driver)
    )


async def _serve(
    config: AgentConfig,
    driver: Driver,
    session: Session,
    objects: ObjectClient,
    note: SupersededNote,
    stop: asyncio.Event,
) -> int:
    journal = Journal(config.state_dir / "journal")
    reporter, chores = Reporter(), Chores()
    transfers = Transfers(Granter(session), objects)
    books = _assemble(config, driver, session, transfers, journal, reporter, chores)
    reporting = chores.spawn(reporter.run(session), "reporter")
    loops = [
        chores.spawn(fetch_orders(session, books, reporter, Lease(driver)), "orders"),
        chores.spawn(watch_cluster(driver, books, settle_s=config.settle_s), "cluster"),
        chores.spawn(tell_nodes(driver, reporter), "nodes"),
        chores.spawn(tell_checks(driver, session, transfers), "checks"),
        chores.spawn(_sound(note), "session"),
    ]
    try:
        await _first(stop, session, [reporting, *loops[:3]])
        if session.over.is_set():
            note.leave()
            log.error(
                "another agent has taken over this cluster, or it was given up as lost: stopping, "
                "running work goes on",
                hint="if two agents have the same credential, stop one of them",
            )
            return EXIT_SUPERSEDED
        log.info("stopping; running work goes on", unreported=reporter.waiting)
        for task in loops:
            task.cancel()
        if not await reporter.drain(config.stop_within_s):
            log.warning("stopped with facts unreported; the next start reports them")
        return EXIT_STOPPED
    finally:
        await chores.end()
        await journal.close()


def _assemble(
    config: AgentConfig,
    driver: Driver,
    session: Session,
    transfers: Transfers,
    journal: Journal,
    reporter: Reporter,
    chores: Chores,
) -> Reconciler:
    tickets = Tickets(
        session,
        server_url=config.carry_url or config.server_url,
        ca_file=Path(config.ca_file) if config.ca_file else None,
    )
    hands = Hands(
        launcher=Launcher(driver, journal, transfers, chores, tickets),
        ender=Ender(driver, transfers, chores),
        releaser=Releaser(driver, chores),
        shipper=Shipper(driver, transfers, journal, reporter, chores, limits=config.logs),
    )
    books = Reconciler(hands, journal, reporter, epoch=session.epoch, settle_s=config.settle_s)
    hands.launcher.begin(books)
    hands.ender.begin(books.decide_end)
    hands.releaser.begin(books)
    hands.shipper.begin(books.shipped)
    books.restore()
    return books


async def _first(
    stop: asyncio.Event, session: Session, essential: list[asyncio.Task[None]]
) -> None:
    """Return when told to stop or superseded; raise what an essential task died of."""
    told = asyncio.create_task(_wait(stop))
    over = asyncio.create_task(_wait(session.over))
    try:
        await asyncio.wait([told, over, *essential], return_when=asyncio.FIRST_COMPLETED)
    finally:
        told.cancel()
        over.cancel()
    for task in essential:
        if task.done() and not session.over.is_set():
            task.result()


async def _wait(event: asyncio.Event) -> None:
    await event.wait()


async def _unless(stop: asyncio.Event, work: Coroutine[object, object, Session]) -> Session | None:
    """The result of `work`, or None when told to stop first."""
    task, stopped = asyncio.create_task(work), asyncio.create_task(stop.wait())
    try:
        await asyncio.wait([task, stopped], return_when=asyncio.FIRST_COMPLETED)
        return task.result() if task.done() else None
    finally:
        for one in (task, stopped):
            one.cancel()
        await asyncio.gather(task, stopped, return_exceptions=True)


async def _sound(note: SupersededNote) -> None:
    """A session that lasts is not one of a quarrel."""
    await asyncio.sleep(SESSION_IS_SOUND_S)
    note.clear()


def _claim(stack: AsyncExitStack, state_dir: Path) -> None:
    """Keep every other agent out of the state directory while this one lives."""
    try:
        state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(state_dir / "lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise Fault(
            f"the state directory {state_dir} cannot be used: {error.strerror or error}",
            hint="give the agent's user the right to write there",
        ) from error
    stack.callback(os.close, lock)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise Conflict(
            f"another agent uses {state_dir}",
            hint="stop it first, or give this one a state directory of its own",
            code="state_dir_in_use",
        ) from error


@contextlib.contextmanager
def _signals(stop: asyncio.Event) -> Iterator[None]:
    """Set `stop` on SIGTERM and SIGINT for as long as it is entered."""
    loop = asyncio.get_running_loop()
    taken: list[signal.Signals] = []
    for one in (signal.SIGTERM, signal.SIGINT):
        # Only the main thread may; embedded elsewhere, whoever runs us cancels instead.
        with contextlib.suppress(RuntimeError, ValueError):
            loop.add_signal_handler(one, stop.set)
            taken.append(one)
    try:
        yield
    finally:
        for one in taken:
            loop.remove_signal_handler(one)
