"""Rigs for the contract: the fake cluster, and processes of this machine."""

from __future__ import annotations

import dataclasses
import itertools
from pathlib import Path
from typing import Any

import pytest

from tests.drivers.contract import RUN, TALK_OUTPUT, Work
from verderer.core.model.attempt import AttemptKey, End, EndCause
from verderer.core.model.resources import Resources
from verderer.drivers.contract import Order
from verderer.drivers.fake.cluster import FakeCluster
from verderer.drivers.fake.driver import FakeDriver, fake_nodes
from verderer.drivers.fake.script import Behaviour
from verderer.drivers.local.driver import LocalDriver
from verderer.drivers.local.limits import find_limits

MIB = 1 << 20


def plain_order(step: int, **changes: Any) -> Order:
    order = Order(key=AttemptKey(RUN, step, 1), run_name="night", step="train", project="vision")
    return dataclasses.replace(order, **changes)


BEHAVIOURS = {
    Work.SUCCEED: Behaviour(),
    Work.EXIT_3: Behaviour(end=End(cause=EndCause.EXIT, exit_code=3)),
    Work.KILLED: Behaviour(end=End(cause=EndCause.SIGNAL, signal=9)),
    Work.HANG: Behaviour(run_s=None),
    Work.STUBBORN: Behaviour(run_s=None, heeds_stop=False),
    Work.NO_SUCH_PROGRAM: Behaviour(end=End(cause=EndCause.START, message="command not found")),
    Work.OOM: Behaviour(end=End(cause=EndCause.OOM, signal=9)),
    Work.TALK: Behaviour(output=TALK_OUTPUT),
}


class FakeRig:
    """Restarting keeps the cluster and replaces the driver."""

    def __init__(self) -> None:
        self.cluster = FakeCluster(
            fake_nodes(2), behave=lambda order: BEHAVIOURS[Work(order.command[0])]
        )
        self.driver = FakeDriver(self.cluster)
        self._steps = itertools.count()

    async def restart(self) -> None:
        self.driver = FakeDriver(self.cluster)

    def order(self, work: Work, **changes: Any) -> Order:
        return plain_order(next(self._steps), command=(work.value,), **changes)


_TALK = "".join(f"\\{byte:03o}" for byte in TALK_OUTPUT)
_EAT = "x = bytearray(300 << 20)"

PROGRAMS: dict[Work, dict[str, Any]] = {
    Work.SUCCEED: {"command": ("true",)},
    Work.EXIT_3: {"script": "exit 3"},
    Work.KILLED: {"script": "kill -9 $$"},
    Work.HANG: {"command": ("sleep", "600")},
    Work.STUBBORN: {"script": "trap '' TERM; while true; do sleep 0.1; done"},
    Work.NO_SUCH_PROGRAM: {"command": ("no-such-program",)},
    Work.OOM: {
        "command": ("python3", "-c", _EAT),
        "limits": Resources.of({"memory": 64 * MIB}),
    },
    Work.TALK: {"command": ("printf", _TALK)},
}


def memory_can_be_limited() -> bool:
    bases = find_limits("verderer-trial").bases
    for base in set(bases.values()):
        Path(base).rmdir()
    return "memory" in bases


class LocalRig:
    """Restarting lets go of the root directory and takes it again."""

    def __init__(self, root: Path, **settings: Any) -> None:
        self.root = root
        self.driver = LocalDriver(root, **settings)
        self._settings = settings
        self._steps = itertools.count()

    async def restart(self) -> None:
        await self.driver.close()
        self.driver = LocalDriver(self.root, **self._settings)

    def order(self, work: Work, **changes: Any) -> Order:
        if work is Work.OOM and not memory_can_be_limited():
            pytest.skip("NOT TESTED: no writable memory cgroup, so an OOM cannot be provoked")
        return self.program(**{**PROGRAMS[work], **changes})

    def program(self, **fields: Any) -> Order:
        return plain_order(next(self._steps), **fields)

    async def end(self) -> None:
        """Stop what a failed test left behind."""
        for observed in await self.driver.observe():
            await self.driver.stop(observed.key, grace_s=0)
        while any(not o.state.over for o in await self.driver.observe()):
            await self.driver.changed(timeout_s=1.0)
        await self.driver.close()
