"""What is told about nodes, and when Slurm is asked."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from tests.drivers.slurm.test_readers import nodes_of, sample
from verderer.core.errors import Fault
from verderer.core.model.resources import Resources
from verderer.drivers.contract import NodeFacts
from verderer.drivers.slurm.clockwork import Clockwork
from verderer.drivers.slurm.nodefacts import node_facts
from verderer.drivers.slurm.options import SlurmOptions
from verderer.drivers.slurm.readers.nodes import Partition, SlurmNode, read_partitions

OPTIONS = SlurmOptions(shared_dir=Path("/shared"))
EVERY = Partition(name="gpu", default=True, up=True, nodes=("g1", "g2", "g3", "g4", "g5"))


def facts(
    name: str, options: SlurmOptions = OPTIONS, *partitions: Partition
) -> dict[str, NodeFacts]:
    shown = nodes_of(name).values()
    return {one.name: one for one in node_facts(shown, partitions or (EVERY,), options)}


def test_a_node_says_what_it_has_and_what_everybody_left_of_it() -> None:
    node = facts("nodes-25.05.json")["g1"]
    assert node.allocatable == Resources.of(
        {"cpu": 62_000, "memory": 1_000_000 << 20, "nvidia.com/gpu": 8_000}
    )
    assert node.labels["slurm.verderer.dev/free.cpu"] == "38000"
    assert node.labels["slurm.verderer.dev/free.memory"] == str(700_000 << 20)
    assert node.labels["slurm.verderer.dev/free.nvidia.com_gpu"] == "5000"
    assert node.labels["slurm.verderer.dev/feature.nvlink"] == "true"
    assert node.labels["slurm.verderer.dev/partitions"] == "all,gpu"
    assert node.labels["verderer.dev/accelerator"] == "a100"
    assert node.memory_free == 512_000 << 20
    assert node.cpu_load == pytest.approx(4.5 / 62)


def test_a_drained_node_has_nothing_free_and_says_why() -> None:
    node = facts("nodes-25.05.json")["g2"]
    assert not node.ready
    assert node.labels["slurm.verderer.dev/free.cpu"] == "0"
    assert node.labels["slurm.verderer.dev/reason"] == "verderer:case-9 ecc"
    assert node.labels["slurm.verderer.dev/state"] == "IDLE+DRAIN"


def test_mig_instances_are_counted_by_themselves() -> None:
    options = dataclasses.replace(
        OPTIONS, gres={"nvidia.com/gpu": "gpu", "nvidia.com/mig-1g.10gb": "gpu:1g.10gb"}
    )
    node = facts("nodes-25.05.json", options)["g5"]
    assert node.allocatable.get("nvidia.com/gpu") == 7_000
    assert node.allocatable.get("nvidia.com/mig-1g.10gb") == 4_000


def test_what_is_unknown_is_never_free() -> None:
    node = SlurmNode(name="g1", state="IDLE", flags=frozenset(), partitions=("gpu",))
    (told,) = node_facts([node], [EVERY], OPTIONS)
    assert not told.ready
    assert not [label for label in told.labels if ".free." in label]
    assert (told.cpu_load, told.memory_free) == (None, None)


def test_only_nodes_that_our_jobs_can_reach_are_told() -> None:
    partitions = read_partitions(sample("partitions-22.05.txt"))
    assert facts("nodes-22.05.txt", OPTIONS, *partitions).keys() == {"n0", "n1", "n2"}
    short = dataclasses.replace(OPTIONS, partition="short")
    assert facts("nodes-22.05.txt", short, *partitions).keys() == {"n0"}
    closed = dataclasses.replace(OPTIONS, partition="closed")
    assert [node.ready for node in facts("nodes-22.05.txt", closed, *partitions).values()] == [
        False
    ]


class Looked:
    def __init__(self) -> None:
        self.now = 0.0
        self.takes_s = 0.0
        self.times = 0
        self.fault: Fault | None = None

    async def look(self) -> None:
        self.times += 1
        self.now += self.takes_s
        if self.fault is not None:
            raise self.fault


@pytest.fixture
def looked() -> Looked:
    return Looked()


@pytest.fixture
def clockwork(looked: Looked) -> Clockwork:
    return Clockwork(looked.look, shortest_s=1.0, longest_s=10.0, clock=lambda: looked.now)


async def test_a_look_serves_everybody_until_the_next_is_due(
    looked: Looked, clockwork: Clockwork
) -> None:
    for _ in range(5):
        await clockwork.refresh(busy=True)
    assert looked.times == 1
    looked.now += 1.0
    await clockwork.refresh(busy=True)
    assert looked.times == 2


async def test_looks_become_rare_when_nothing_happens(looked: Looked, clockwork: Clockwork) -> None:
    assert clockwork.interval_s(busy=True) == 1.0
    looked.now = 200.0
    assert clockwork.interval_s(busy=True) == pytest.approx(4.0)
    looked.now = 10_000.0
    assert clockwork.interval_s(busy=True) == 10.0
    clockwork.stir()
    assert clockwork.interval_s(busy=True) == 1.0
    assert clockwork.interval_s(busy=False) == 10.0


async def test_a_slow_controller_is_asked_less(looked: Looked, clockwork: Clockwork) -> None:
    looked.takes_s = 2.0
    await clockwork.refresh(busy=True)
    assert clockwork.interval_s(busy=True) == 20.0


async def test_a_controller_that_is_away_is_left_alone_and_its_fault_told(
    looked: Looked, clockwork: Clockwork
) -> None:
    looked.fault = Fault("away")
    for _ in range(5):
        with pytest.raises(Fault, match="away"):
            await clockwork.refresh(busy=True)
    assert looked.times == 1
    for _ in range(20):
        looked.now += clockwork.interval_s(busy=True)
        with pytest.raises(Fault):
            await clockwork.refresh(busy=True)
    assert clockwork.interval_s(busy=True) == 30.0
    looked.fault = None
    looked.now += 30.0
    await clockwork.refresh(busy=True)
    assert clockwork.interval_s(busy=True) <= 10.0
