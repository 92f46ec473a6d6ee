"""An agent that is locked out while its long poll is open."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace

import httpx2
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tests.rig.people import SYSTEM
from tests.usecases.test_enrolment import come
from verderer.api.agents.routes import ROUTES
from verderer.api.app import build_app
from verderer.usecases.agents.agent_session import hello
from verderer.usecases.authenticate import authenticate
from verderer.usecases.context import Context
from verderer.usecases.enrolment.expel import retire_cluster, revoke_agent
from verderer.usecases.enrolment.invite import invite_agent


async def _revoked(ctx: Context) -> None:
    await revoke_agent(ctx, SYSTEM, "gpu-east")


async def _removed(ctx: Context) -> None:
    await retire_cluster(ctx, SYSTEM, "gpu-east")


async def _another_joined(ctx: Context) -> None:
    made = await invite_agent(ctx, SYSTEM, "gpu-east", "slurm")
    await come(ctx, made, Ed25519PrivateKey.generate())


def _told_of_waiting(ctx: Context, monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """An event that is set once somebody listens for the news of a cluster."""
    listening, waits = ctx.wakeups.listening, asyncio.Event()

    def noted(*topics: str) -> object:
        waits.set()
        return listening(*topics)

    monkeypatch.setattr(ctx.wakeups, "listening", noted)
    return waits


@pytest.mark.parametrize("change", [_revoked, _removed, _another_joined])
async def test_its_open_poll_ends_with_a_refusal(
    ctx: Context,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[Context], Awaitable[None]],
) -> None:
    app = build_app(context=ctx, objects=None, grants=None, extra_handlers=[*ROUTES])  # type: ignore[arg-type]
    app.state.heartbeats = SimpleNamespace(note=lambda _cluster: None)
    client = httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url="http://x")
    made = await invite_agent(ctx, SYSTEM, "gpu-east", "slurm")
    admitted = await come(ctx, made, Ed25519PrivateKey.generate())
    actor = await authenticate(ctx, bearer=admitted.credential)
    epoch = await hello(ctx, actor, instance="one", version="test")
    asked = {"epoch": epoch, "since": 0, "wait_s": 30.0}
    shown = {"authorization": f"Bearer {admitted.credential}"}
    async with client:
        waits = _told_of_waiting(ctx, monkeypatch)
        poll = asyncio.create_task(
            client.post("/api/v1/agent/sync", json=asked, headers=shown, timeout=60)
        )
        waiting = asyncio.create_task(waits.wait())
        await asyncio.wait([poll, waiting], return_when=asyncio.FIRST_COMPLETED)
        assert waits.is_set(), poll.result().text
        await change(ctx)
        answer = await poll
    assert (answer.status_code, answer.json()["code"]) == (401, "not_authenticated"), answer.text
