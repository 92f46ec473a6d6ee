"""At most once, whatever is lost between us and a real controller."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.drivers.contract import Work, begin, seen, until_over, until_running
from tests.drivers.slurm.rigs import SlurmRig
from verderer.core.errors import Fault, Refusal
from verderer.core.model.attempt import AttemptState, EndCause
from verderer.core.model.resources import Resources
from verderer.drivers.slurm.driver import SlurmDriver

pytestmark = pytest.mark.xdist_group("kubernetes")


@pytest.fixture
def commands(tmp_path: Path) -> Callable[..., str]:
    """A folder of Slurm's commands of which some are scripts of the test's own."""

    def make(sbatch: str = 'exec "$real" "$@"', **others: str) -> str:
        folder = tmp_path / "bin"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        scripts = {"sbatch": sbatch, "squeue": "", "scontrol": "", "scancel": "", "sacct": ""}
        for name, script in (scripts | others).items():
            body = script or 'exec "$real" "$@"'
            (folder / name).write_text(f"#!/bin/sh\nreal={shutil.which(name)}\n{body}\n")
            (folder / name).chmod(0o755)
        return str(folder)

    return make


ACCEPTED_WITHOUT_ANSWER = '"$real" "$@" >/dev/null && exec sleep 60'
NEVER_ARRIVED = 'echo "sbatch: error: Unable to contact slurm controller" >&2; exit 1'


async def test_a_job_whose_answer_was_lost_is_found_and_not_doubled(
    rig: SlurmRig, commands: Callable[..., str]
) -> None:
    await rig.restart(bin_dir=commands(ACCEPTED_WITHOUT_ANSWER), command_timeout_s=1.0)
    order = rig.order(Work.SUCCEED)
    with pytest.raises(Fault, match="did not answer"):
        await begin(rig.driver, order)
    await begin(rig.driver, order)
    observed = await until_over(rig.driver, order.key)
    assert observed.state is AttemptState.SUCCEEDED
    assert len(rig.jobs(order.key)) == 1


async def test_a_successor_finds_the_job_without_being_told_to_start_it(
    rig: SlurmRig, commands: Callable[..., str]
) -> None:
    await rig.restart(bin_dir=commands(ACCEPTED_WITHOUT_ANSWER), command_timeout_s=1.0)
    order = rig.order(Work.HANG)
    with pytest.raises(Fault):
        await begin(rig.driver, order)
    await rig.restart()
    await until_running(rig.driver, order.key)
    assert len(rig.jobs(order.key)) == 1
    await rig.driver.stop(order.key, grace_s=0)
    await until_over(rig.driver, order.key)


async def test_an_order_that_never_arrived_is_handed_in_by_the_successor(
    rig: SlurmRig, commands: Callable[..., str]
) -> None:
    await rig.restart(bin_dir=commands(NEVER_ARRIVED))
    order = rig.order(Work.SUCCEED)
    with pytest.raises(Fault, match="Unable to contact"):
        await begin(rig.driver, order)
    observed = await seen(rig.driver, order.key)
    assert observed is not None
    assert observed.state is AttemptState.STARTING
    await rig.restart()
    assert (await until_over(rig.driver, order.key)).state is AttemptState.SUCCEEDED
    assert len(rig.jobs(order.key)) == 1


async def test_a_stop_without_an_answer_of_sbatch_bars_the_job(
    rig: SlurmRig, commands: Callable[..., str], tmp_path: Path
) -> None:
    ran = tmp_path / "ran"
    late = f'(sleep 1; "$real" "$@"; touch {tmp_path}/late) >/dev/null 2>&1 & {NEVER_ARRIVED}'
    await rig.restart(bin_dir=commands(late))
    order = rig.program(script=f"echo x >> {ran}")
    with pytest.raises(Fault):
        await begin(rig.driver, order)
    await rig.driver.stop(order.key, grace_s=1)
    observed = await until_over(rig.driver, order.key)
    assert observed.state is AttemptState.CANCELLED
    rig.testbed.wait((tmp_path / "late").exists, "the late job arrives")
    rig.testbed.wait(lambda: not rig.testbed.call("squeue", "-h"), "it has ended")
    assert not ran.exists()


async def test_a_doubled_job_runs_nothing(rig: SlurmRig, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    order = rig.program(script=f"echo x >> {ran}; sleep 1")
    await begin(rig.driver, order)
    home = rig.options.shared_dir / "attempts" / str(order.key)
    arguments = json.loads((home / "order.json").read_text())["sbatch"]
    for _ in range(2):
        rig.testbed.call("sbatch", *arguments)
    assert (await until_over(rig.driver, order.key)).state is AttemptState.SUCCEEDED
    rig.testbed.wait(lambda: not rig.testbed.call("squeue", "-h"), "all three are over")
    assert len(rig.jobs(order.key)) == 3
    assert ran.read_text() == "x\n"


async def test_a_foreign_job_of_the_same_name_is_left_alone(rig: SlurmRig) -> None:
    order = rig.order(Work.HANG)
    options = ("--parsable", f"--job-name={order.key}", "--output=/dev/null", "--chdir=/tmp")
    foreign = rig.testbed.call("sbatch", *options, "--wrap=sleep 60").strip()
    assert await seen(rig.driver, order.key) is None
    await begin(rig.driver, order)
    await until_running(rig.driver, order.key)
    await rig.driver.stop(order.key, grace_s=0)
    await until_over(rig.driver, order.key)
    await rig.driver.forget(order.key)
    assert foreign in rig.testbed.call("squeue", "-h", "-o", "%A", "-t", "running,pending")


async def test_a_refusal_says_why_and_leaves_nothing(rig: SlurmRig) -> None:
    order = rig.program(command=("true",), requests=Resources.of({"nvidia.com/gpu": 99_000}))
    workspace = await rig.driver.prepare(order)
    with pytest.raises(Refusal, match="Requested node configuration is not available"):
        await rig.driver.start(order, workspace=workspace)
    assert await rig.driver.observe() == []
    assert rig.driver.workspace(order.key) == workspace
    await rig.driver.forget(order.key)
    assert rig.driver.workspace(order.key) is None


async def test_a_refusal_after_the_agents_death_is_an_end(
    rig: SlurmRig, commands: Callable[..., str]
) -> None:
    await rig.restart(bin_dir=commands(NEVER_ARRIVED))
    order = rig.program(command=("true",), requests=Resources.of({"nvidia.com/gpu": 99_000}))
    with pytest.raises(Fault):
        await begin(rig.driver, order)
    await rig.restart()
    observed = await until_over(rig.driver, order.key)
    assert observed.end is not None
    assert observed.end.cause is EndCause.START
    assert "not available" in observed.end.message


HAS_ACCOUNTING = """
[ "$*" = "show config" ] || exec "$real" "$@"
"$real" show config | sed s,accounting_storage/none,accounting_storage/slurmdbd,
"""
ACCOUNTS = r"""
id=$(echo "$@" | sed 's/.*--jobs=\([0-9]*\).*/\1/')
printf '%s\037CANCELLED by 0\0370:15\037\037\037n0\037%s\037/\n' "$id" "$NAME"
"""


async def test_whoever_cancelled_is_named_where_there_is_accounting(
    rig: SlurmRig, commands: Callable[..., str]
) -> None:
    order = rig.order(Work.HANG)
    sacct = f"NAME={order.key}\n{ACCOUNTS}"
    await rig.restart(bin_dir=commands(scontrol=HAS_ACCOUNTING, sacct=sacct))
    await begin(rig.driver, order)
    await until_running(rig.driver, order.key)
    rig.testbed.call("scancel", f"--name={order.key}")
    observed = await until_over(rig.driver, order.key)
    assert observed.end is not None
    assert observed.end.message == "user root cancelled the job in Slurm"


async def test_a_job_whose_folder_is_gone_can_still_be_ended(rig: SlurmRig) -> None:
    order = rig.order(Work.HANG)
    await begin(rig.driver, order)
    await until_running(rig.driver, order.key)
    await rig.driver.close()
    shutil.rmtree(rig.options.shared_dir)
    rig.driver = rig.make()
    assert (await until_running(rig.driver, order.key)).state is AttemptState.RUNNING
    await rig.driver.stop(order.key, grace_s=0)
    assert (await until_over(rig.driver, order.key)).state is AttemptState.CANCELLED


async def test_one_driver_at_a_time_uses_a_folder(rig: SlurmRig) -> None:
    await rig.driver.observe()
    second: SlurmDriver = rig.make()
    with pytest.raises(Fault, match="cannot be used"):
        await second.observe()


async def test_without_slurms_commands_it_says_what_to_do(rig: SlurmRig, tmp_path: Path) -> None:
    await rig.restart(bin_dir=str(tmp_path))
    with pytest.raises(Fault) as problem:
        await rig.driver.observe()
    assert "slurm.bin_dir" in problem.value.hint


def test_the_scripts_of_the_testbed_are_plain_shell() -> None:
    scripts = Path(__file__).parents[3] / "testbeds" / "slurm"
    for script in sorted(scripts.glob("*.sh")):
        subprocess.run(["sh", "-n", str(script)], check=True)
