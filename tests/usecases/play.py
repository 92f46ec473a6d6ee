"""Plays a state machine over a real PostgreSQL, each example from empty tables."""

from __future__ import annotations

import asyncio
from typing import Protocol

from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from verderer.store.database import Database


class Machine(Protocol):
    """What both are given to before it is played."""

    loop: asyncio.AbstractEventLoop
    database: Database


async def wipe(database: Database) -> None:
    """Begin an example with nothing in the tables."""
    async with database.transaction() as tx:
        await tx.execute(
            "TRUNCATE runs, projects, clusters, leases, audit, shapes, documents, ledger CASCADE"
        )


def play(machine: type[Machine], dsn: str, *, examples: int, steps: int) -> None:
    """Run so many examples of so many steps, on a loop of their own."""
    machine.loop = loop = asyncio.new_event_loop()
    machine.database = database = loop.run_until_complete(Database.open(dsn, size=3))
    try:
        run_state_machine_as_test(
            machine,
            settings=settings(
                max_examples=examples,
                stateful_step_count=steps,
                deadline=None,
                suppress_health_check=list(HealthCheck),
            ),
        )
    finally:
        loop.run_until_complete(database.close())
        loop.close()
