"""The contract of all drivers, over a real Slurm."""

from __future__ import annotations

import pytest

from tests.drivers.contract import DriverContract
from tests.drivers.slurm.rigs import SlurmRig
from verderer.drivers.contract import CanCordon, Driver, HasWorkspace

pytestmark = pytest.mark.xdist_group("kubernetes")


class TestSlurmDriver(DriverContract):
    pass


async def test_it_is_a_driver_with_a_workspace_whose_nodes_can_be_cordoned(rig: SlurmRig) -> None:
    driver: Driver = rig.driver
    assert driver.kind == "slurm"
    assert isinstance(driver, HasWorkspace)
    assert isinstance(driver, CanCordon)
