"""Fixtures of the drivers' tests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from tests.drivers.rigs import LocalRig


@pytest.fixture
async def make_local(tmp_path: Path) -> AsyncIterator[Callable[..., LocalRig]]:
    """Makes local drivers with settings of the test's own; their processes are gone after it."""
    made: list[LocalRig] = []

    def make(root: Path | None = None, **settings: object) -> LocalRig:
        made.append(LocalRig(root or tmp_path / f"root{len(made)}", **settings))
        return made[-1]

    yield make
    for rig in made:
        await rig.end()


@pytest.fixture
async def local(make_local: Callable[..., LocalRig]) -> LocalRig:
    """A local driver as it comes."""
    return make_local()


@pytest.fixture
async def unlimited(make_local: Callable[..., LocalRig]) -> LocalRig:
    """A local driver on a machine whose cgroups are not ours."""
    return make_local(cgroup="off")
