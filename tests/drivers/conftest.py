"""Fixtures of the drivers' tests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.drivers.rigs import LocalRig


@pytest.fixture
async def local(tmp_path: Path) -> AsyncIterator[LocalRig]:
    """A local driver whose every process is gone after the test."""
    rig = LocalRig(tmp_path / "root")
    yield rig
    await rig.end()


@pytest.fixture
async def unlimited(tmp_path: Path) -> AsyncIterator[LocalRig]:
    """The same on a machine whose cgroups are not ours."""
    rig = LocalRig(tmp_path / "unlimited", cgroup="off")
    yield rig
    await rig.end()
