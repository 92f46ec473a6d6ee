"""A pipeline from submission to its end, by a whole platform whose agent serves Slurm."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.chaos.platform import Platform, platform, wait_for
from tests.drivers.slurm.testbed import Testbed
from tests.e2e.commands import Cli, clean_environment
from tests.rig.folders import reachable_folder

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(240), pytest.mark.xdist_group("kubernetes")]

TWO_STEPS = """
metadata: {name: two, project: demo}
steps:
  - name: write
    outputs: {greeting: out}
    resources: {requests: {nvidia.com/gpu: 2, memory: 128Mi}, limits: {memory: 128Mi}}
    script: |
      mkdir out
      echo "job $SLURM_JOB_NAME sees [$CUDA_VISIBLE_DEVICES]" | tee out/greeting.txt
  - name: read
    inputs: {greeting: {from: write.greeting, path: in}}
    nodes: 2
    script: 'echo "rank $VERDERER_NODE_RANK reads: $(cat in/greeting.txt)"'
"""
SLOW = """
metadata: {name: slow, project: demo}
steps:
  - name: only
    script: 'echo begun >> "$DIARY"; sleep 4; echo ended'
    env: {DIARY: %s}
"""


@dataclass
class House:
    platform: Platform
    cli: Cli
    folder: Path
    testbed: Testbed


@pytest.fixture(scope="module")
def house(testbed: Testbed) -> Iterator[House]:
    with reachable_folder() as folder:
        environment = clean_environment(folder / "home") | {
            "VERDERER_AGENT_KIND": "slurm",
            "VERDERER_AGENT_CLUSTER": "hpc",
            "VERDERER_SLURM_SHARED_DIR": str(folder / "shared"),
            "VERDERER_SLURM_CONF": str(testbed.conf),
            "VERDERER_SLURM_POLL_S": "0.2",
        }
        with platform(folder / "data", environment) as started:
            cli = Cli(folder / "home")
            cli.log_in(started.url, started.one_time_password())
            yield House(started, cli, folder, testbed)
    testbed.mend()


def test_two_steps_run_on_slurm_and_hand_their_files_on(house: House) -> None:
    run = house.cli.submit(house.folder, TWO_STEPS)
    house.cli("watch", run)
    assert house.cli.state(run) == "succeeded"
    written = house.cli("logs", f"{run}/write")
    if house.testbed.has_device_files:
        assert written.endswith("sees [0,1]\n")
    assert f"reads: {written.strip()}" in house.cli("logs", f"{run}/read")


def test_a_step_that_begins_under_one_agent_ends_once_under_the_next(house: House) -> None:
    diary = house.folder / "diary"
    run = house.cli.submit(house.folder, SLOW % diary)
    wait_for(diary.exists, 30, "the step has begun")
    assert house.platform.kill("agent")
    house.cli("watch", run)
    assert house.cli.state(run) == "succeeded"
    assert house.cli("logs", f"{run}/only") == "ended\n"
    assert diary.read_text() == "begun\n"


def test_nothing_is_left_in_the_shared_folder(house: House) -> None:
    attempts = house.folder / "shared" / "attempts"
    wait_for(lambda: not list(attempts.iterdir()), 30, "all attempts are forgotten")
