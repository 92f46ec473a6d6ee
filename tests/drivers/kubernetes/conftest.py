"""Fixtures of the Kubernetes driver's tests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from testbeds.kubernetes.cluster import Cluster, missing
from tests.drivers.kubernetes.bed import prepare
from tests.drivers.kubernetes.rig import KubernetesRig


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A real control plane; started once, shared by all tests that are in its group."""
    if why := missing():
        pytest.skip(f"NOT TESTED against a real Kubernetes: {why}")
    with Cluster(Path(tmp_path_factory.mktemp("kubernetes"))) as started:
        prepare(started)
        yield started


@pytest.fixture
async def make_rig(cluster: Cluster) -> AsyncIterator[Callable[..., KubernetesRig]]:
    """Makes drivers with terms of the test's own; what they started is gone after it."""
    made: list[KubernetesRig] = []

    def make(**terms: object) -> KubernetesRig:
        made.append(KubernetesRig(cluster, **terms))
        return made[-1]

    yield make
    for rig in made:
        await rig.end()


@pytest.fixture
async def kube(make_rig: Callable[..., KubernetesRig]) -> KubernetesRig:
    """A driver as it comes."""
    return make_rig()
