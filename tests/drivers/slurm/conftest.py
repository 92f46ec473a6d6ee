"""One Slurm for all tests of a session; its daemons are gone afterwards, whatever happened."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.drivers.slurm.rigs import SlurmRig
from tests.drivers.slurm.testbed import Testbed, missing


@pytest.fixture(scope="session")
def testbed() -> Iterator[Testbed]:
    """A running cluster."""
    if why := missing():
        pytest.skip(f"NOT TESTED: {why}")
    base = Path(tempfile.mkdtemp(prefix="vs-", dir="/tmp"))
    made = Testbed(base)
    try:
        made.start()
        yield made
    finally:
        made.stop()
        shutil.rmtree(base, ignore_errors=True)


@pytest.fixture
async def make_rig(testbed: Testbed) -> AsyncIterator[Callable[..., SlurmRig]]:
    """Makes drivers with settings of the test's own; the cluster is empty and whole after it."""
    made: list[tuple[SlurmRig, Path]] = []

    def make(**changes: Any) -> SlurmRig:
        shared = Path(tempfile.mkdtemp(prefix="vsd-", dir="/tmp"))
        made.append((SlurmRig(testbed, shared, **changes), shared))
        return made[-1][0]

    yield make
    for rig, _ in made:
        await rig.end()
    for _, shared in made:
        shutil.rmtree(shared, ignore_errors=True)


@pytest.fixture
async def rig(make_rig: Callable[..., SlurmRig]) -> SlurmRig:
    """A driver as it comes."""
    return make_rig()
