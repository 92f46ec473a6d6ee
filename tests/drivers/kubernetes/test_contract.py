from __future__ import annotations

import pytest

from tests.drivers.contract import DriverContract, Rig
from tests.drivers.kubernetes.rig import KubernetesRig

pytestmark = pytest.mark.xdist_group("kubernetes")


class TestKubernetesDriver(DriverContract):
    @pytest.fixture
    def rig(self, kube: KubernetesRig) -> Rig:
        return kube
