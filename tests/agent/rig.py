"""Agents under test, and waiting for what they do."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.agent.fake_control_plane import CREDENTIAL, FakeControlPlane
from verderer.agent.run import AgentConfig, run_agent
from verderer.drivers.contract import Driver


async def until(condition: Callable[[], object], *, within_s: float = 15.0) -> None:
    """Return once `condition` is true; fail when it does not become so."""
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        await asyncio.sleep(0.002)


def config(plane: FakeControlPlane, state_dir: Path, **more: Any) -> AgentConfig:
    settings: dict[str, Any] = {
        "server_url": plane.url,
        "credential": CREDENTIAL,
        "state_dir": state_dir,
        "version": "test",
        "settle_s": 0.3,
        **more,
    }
    return AgentConfig(**settings)


@asynccontextmanager
async def agent(
    plane: FakeControlPlane, driver: Driver, state_dir: Path, **more: Any
) -> AsyncIterator[asyncio.Task[int]]:
    """An agent that is killed without a word at the end, as `kill -9` would."""
    task = asyncio.create_task(run_agent(config(plane, state_dir, **more), driver))
    try:
        yield task
    finally:
        if not task.done():
            task.cancel()
        await asyncio.gather(task, return_exceptions=True)
