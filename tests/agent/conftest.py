from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.agent.fake_control_plane import FakeControlPlane


@pytest.fixture
async def plane() -> AsyncIterator[FakeControlPlane]:
    async with FakeControlPlane() as plane:
        yield plane
