"""What a real Slurm and its administrators do to jobs, and what the driver makes of it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.drivers.contract import (
    Work,
    begin,
    joined,
    read_all,
    seen,
    until,
    until_over,
    until_running,
)
from tests.drivers.slurm.rigs import SlurmRig
from verderer.core.errors import Conflict, Fault
from verderer.core.model.attempt import AttemptKey, AttemptState, End, EndCause
from verderer.core.model.resources import Resources
from verderer.core.model.waiting import Pending, Waiting
from verderer.drivers.contract import LogPiece, Observed

pytestmark = pytest.mark.xdist_group("kubernetes")


def _words(observed: Observed) -> str:
    return observed.pending.message if observed.pending is not None else ""


def end_of(observed: Observed) -> End:
    assert observed.end is not None
    return observed.end


async def output_of(rig: SlurmRig, key: AttemptKey, replica: int = 0) -> str:
    pieces: list[LogPiece] = [
        piece async for piece in rig.driver.logs(key, replica=replica, after=0)
    ]
    return joined(pieces).decode()


async def running(rig: SlurmRig, work: Work = Work.HANG) -> AttemptKey:
    key = await begin(rig.driver, rig.order(work))
    await until_running(rig.driver, key)
    return key


def power_off(rig: SlurmRig, key: AttemptKey, job: str) -> None:
    """Kill what a job has on its node at once, as the loss of the machine would."""
    conf = f"SLURM_CONF={rig.testbed.conf}".encode()
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and conf in (entry / "environ").read_bytes().split(b"\0"):
                words = (entry / "cmdline").read_bytes()
                if f"slurmstepd: [{job}.".encode() in words or str(key).encode() in words:
                    os.kill(int(entry.name), signal.SIGKILL)


async def test_a_job_that_somebody_else_cancels_is_cancelled(rig: SlurmRig) -> None:
    key = await running(rig)
    rig.testbed.call("scancel", await rig.job_of(key))
    observed = await until_over(rig.driver, key)
    assert observed.state is AttemptState.CANCELLED
    assert end_of(observed).message == "somebody cancelled the job in Slurm"


async def test_a_program_that_is_told_to_end_by_hand_was_killed(rig: SlurmRig) -> None:
    key = await running(rig)
    rig.testbed.call("scancel", "--signal=TERM", "--batch", await rig.job_of(key))
    end = end_of(await until_over(rig.driver, key))
    assert (end.cause, end.signal) == (EndCause.SIGNAL, signal.SIGTERM)


async def test_a_job_put_back_into_the_queue_is_lost_and_not_run_again(
    rig: SlurmRig, tmp_path: Path
) -> None:
    ran = tmp_path / "ran"
    order = rig.program(script=f"echo x >> {ran}; exec sleep 600")
    await begin(rig.driver, order)
    await until_running(rig.driver, order.key)
    job = await rig.job_of(order.key)
    rig.testbed.call("scontrol", "update", f"jobid={job}", "requeue=1")
    rig.testbed.call("scontrol", "requeue", job)
    end = end_of(await until_over(rig.driver, order.key))
    assert end.cause is EndCause.LOST
    assert "back into" in end.message
    rig.testbed.wait(lambda: not rig.testbed.call("squeue", "-h"), "it is cancelled")
    assert ran.read_text() == "x\n"


async def test_a_dead_node_loses_its_attempts_and_no_others(rig: SlurmRig) -> None:
    key = await running(rig)
    observed = await seen(rig.driver, key)
    assert observed is not None
    node, job = observed.node, await rig.job_of(key)
    away = rig.program(command=("sleep", "600"), requests=Resources.of({"cpu": 16_000}))
    other = await begin(rig.driver, away)
    elsewhere = await until_running(rig.driver, other)
    assert elsewhere.node != node
    rig.testbed.daemon("kill", f"slurmd.{node}")
    rig.testbed.call("scontrol", "update", f"nodename={node}", "state=down", "reason=dead")
    for _ in range(20):  # Slurm has given it up, and its program lives
        alive = await seen(rig.driver, key)
        assert alive is not None
        assert alive.state is AttemptState.RUNNING
        await asyncio.sleep(0.1)
    power_off(rig, key, job)
    lost = await until_over(rig.driver, key)
    assert (lost.state, end_of(lost).cause) == (AttemptState.LOST, EndCause.LOST)
    assert node in end_of(lost).message
    still = await seen(rig.driver, other)
    assert still is not None
    assert still.state is AttemptState.RUNNING
    assert node in {n.name for n in await rig.driver.nodes() if not n.ready}


async def test_nothing_is_concluded_while_the_controller_is_away(rig: SlurmRig) -> None:
    await rig.restart(command_timeout_s=2.0)
    going = await running(rig)
    ending = await begin(rig.driver, rig.program(script="sleep 1; echo done"))
    await until_running(rig.driver, ending)
    rig.testbed.daemon("stop", "slurmctld")
    assert "squeue" in (await fault_of(rig)).message
    new = rig.order(Work.SUCCEED)
    with pytest.raises(Fault):
        await begin(rig.driver, new)
    assert await rig.driver.logs(ending, replica=0, after=0).__anext__()
    rig.testbed.daemon("start", "slurmctld")
    rig.testbed.wait(lambda: "UP" in rig.testbed.call("scontrol", "ping"), "it is back")
    await begin_when_back(rig, new)
    assert (await until_over(rig.driver, ending)).state is AttemptState.SUCCEEDED
    assert (await until_over(rig.driver, new.key)).state is AttemptState.SUCCEEDED
    assert len(rig.jobs(new.key)) == 1
    still = await seen(rig.driver, going)
    assert still is not None
    assert still.state is AttemptState.RUNNING


async def test_a_controller_that_goes_back_in_time_runs_nothing_twice(
    rig: SlurmRig, tmp_path: Path
) -> None:
    ran = tmp_path / "ran"
    order = rig.program(script=f"echo $$ >> {ran}; sleep 3")
    await begin(rig.driver, order)
    await until_running(rig.driver, order.key)
    # Killed before it has saved what happened: the job waits again, or is not known any more.
    rig.testbed.daemon("kill", "slurmctld")
    rig.testbed.daemon("start", "slurmctld")
    rig.testbed.wait(lambda: "UP" in rig.testbed.call("scontrol", "ping"), "it is back")
    for _ in range(400):
        with contextlib.suppress(Fault):
            observed = await seen(rig.driver, order.key)
            if observed is not None and observed.state.over:
                break
        await asyncio.sleep(0.1)
    assert observed is not None
    assert observed.state.over
    assert len(ran.read_text().split()) == 1
    assert not Path(f"/proc/{ran.read_text().strip()}").exists()


async def fault_of(rig: SlurmRig) -> Fault:
    """The first that `observe` raises; what was seen a moment ago is told until then."""
    for _ in range(200):
        try:
            await rig.driver.observe()
        except Fault as problem:
            return problem
        await asyncio.sleep(0.05)
    pytest.fail("the controller is away and the driver does not see it")


async def begin_when_back(rig: SlurmRig, order: object) -> None:
    """The agent tries again, and so does this test."""
    for _ in range(50):
        try:
            await rig.driver.start(order, workspace="")  # type: ignore[arg-type]
            await rig.driver.observe()
        except Fault as problem:
            await asyncio.sleep(min(0.2, problem.retry_after_s))
        else:
            return
    pytest.fail("the controller is back and the driver does not see it")


async def test_a_controller_that_lost_its_state_does_not_end_what_lives(
    rig: SlurmRig, tmp_path: Path
) -> None:
    pid = tmp_path / "pid"
    order = rig.program(script=f"trap '' TERM; echo $$ > {pid}; while :; do sleep 0.2; done")
    await begin(rig.driver, order)
    observed = await until_running(rig.driver, order.key)
    assert observed.state is AttemptState.RUNNING, observed
    rig.testbed.wait(lambda: pid.exists() and bool(pid.read_text()), "the program has begun")
    program = int(pid.read_text())
    # The node cannot be told about the controller's loss, so the program goes on.
    rig.testbed.daemon("kill", f"slurmd.{observed.node}")
    rig.testbed.daemon("kill", "slurmctld")
    for file in (rig.testbed.base / "state").iterdir():
        file.unlink() if file.is_file() else None
    rig.testbed.daemon("start", "slurmctld")
    rig.testbed.wait(lambda: "UP" in rig.testbed.call("scontrol", "ping"), "it is back")
    assert not rig.jobs(order.key)
    for _ in range(10):
        try:
            still = await seen(rig.driver, order.key)
            assert still is not None
            assert still.state is AttemptState.RUNNING
        except Fault:
            pass
        await rig.driver.changed(timeout_s=0.5)
    os.kill(program, signal.SIGKILL)
    end = end_of(await until_over(rig.driver, order.key))
    assert (end.cause, end.signal) == (EndCause.SIGNAL, signal.SIGKILL)


async def test_what_slurm_forgot_and_what_is_silent_is_lost(rig: SlurmRig) -> None:
    key = await running(rig)
    observed = await seen(rig.driver, key)
    assert observed is not None
    job = await rig.job_of(key)
    for name in (f"slurmd.{observed.node}", "slurmctld"):
        rig.testbed.daemon("kill", name)
    power_off(rig, key, job)
    for file in (rig.testbed.base / "state").iterdir():
        file.unlink() if file.is_file() else None
    rig.testbed.daemon("start", "slurmctld")
    rig.testbed.wait(lambda: "UP" in rig.testbed.call("scontrol", "ping"), "it is back")
    for _ in range(100):
        try:
            found = await seen(rig.driver, key)
        except Fault:
            found = None
        if found is not None and found.state.over:
            break
        await asyncio.sleep(0.1)
    assert found is not None
    assert end_of(found).cause is EndCause.LOST
    assert "forgot" in end_of(found).message


async def test_munge_away_is_a_fault_and_passes(rig: SlurmRig) -> None:
    await rig.restart(command_timeout_s=2.0)
    key = await running(rig)
    rig.testbed.daemon("stop", "munged")
    with pytest.raises(Fault):
        await rig.driver.stop(key, grace_s=0)
    rig.testbed.daemon("start", "munged")
    await rig.driver.stop(key, grace_s=0)
    assert (await until_over(rig.driver, key)).state is AttemptState.CANCELLED


async def test_a_node_is_drained_and_put_back(rig: SlurmRig) -> None:
    key = await running(rig)
    observed = await seen(rig.driver, key)
    assert observed is not None
    node = observed.node
    await rig.driver.cordon(node, reason="case 7: xid\n79")
    await rig.driver.cordon(node, reason="again")
    shown = rig.testbed.call("scontrol", "--oneliner", "show", "node", node)
    assert "Reason=verderer:case 7: xid 79" in shown
    assert "DRAIN" in shown
    still = await seen(rig.driver, key)
    assert still is not None
    assert still.state is AttemptState.RUNNING
    assert not await rig.driver.drain(node, grace_s=5)
    assert (await until_over(rig.driver, key)).state is AttemptState.CANCELLED
    for _ in range(100):
        if await rig.driver.drain(node, grace_s=5):
            break
        await asyncio.sleep(0.1)
    assert await rig.driver.drain(node, grace_s=5)
    await rig.driver.uncordon(node)
    await rig.driver.uncordon(node)
    shown = rig.testbed.call("scontrol", "--oneliner", "show", "node", node)
    assert "DRAIN" not in shown


async def test_somebody_elses_drain_stays(rig: SlurmRig) -> None:
    rig.testbed.call("scontrol", "update", "nodename=n1", "state=drain", "reason=ours: fan")
    await rig.driver.cordon("n1", reason="xid")
    with pytest.raises(Conflict, match="ours: fan"):
        await rig.driver.uncordon("n1")
    assert "Reason=ours: fan" in rig.testbed.call("scontrol", "-o", "show", "node", "n1")


async def test_a_step_sees_the_gpus_that_it_asked_for_and_no_others(rig: SlurmRig) -> None:
    if not rig.testbed.has_device_files:
        pytest.skip("NOT TESTED: no device files can be made, so Slurm hands out no indices")
    show = 'echo "[$CUDA_VISIBLE_DEVICES][$NVIDIA_VISIBLE_DEVICES]"'
    two = rig.program(script=show, requests=Resources.of({"nvidia.com/gpu": 2_000}))
    none = rig.program(script=show)
    await asyncio.gather(begin(rig.driver, two), begin(rig.driver, none))
    await until_over(rig.driver, two.key)
    await until_over(rig.driver, none.key)
    assert await output_of(rig, none.key) == "[][void]\n"
    assert await output_of(rig, two.key) == "[0,1][0,1]\n"


async def test_nodes_tell_what_jobs_of_everybody_have_taken(rig: SlurmRig) -> None:
    foreign = ("--gres=gpu:3", "-w", "n2", "--mem=1G", "--output=/dev/null", "--wrap=sleep 60")
    rig.testbed.call("sbatch", *foreign)
    rig.testbed.wait(
        lambda: bool(rig.testbed.call("squeue", "-h", "-t", "running")), "the other's job runs"
    )
    node = {node.name: node for node in await rig.driver.nodes()}["n2"]
    assert node.ready
    assert node.allocatable.get("nvidia.com/gpu") == 8_000
    assert node.labels["slurm.verderer.dev/free.nvidia.com_gpu"] == "5000"
    assert node.labels["slurm.verderer.dev/free.cpu"] == "15000"
    assert node.labels["slurm.verderer.dev/feature.avx512"] == "true"


async def test_why_a_job_waits_is_told_and_a_waiting_job_can_be_stopped(
    make_rig: Callable[..., SlurmRig],
) -> None:
    rig = make_rig(partition="closed")
    key = await begin(rig.driver, rig.order(Work.SUCCEED))
    waiting = await until(rig.driver, key, lambda o: "PartitionDown" in _words(o))
    assert waiting.pending == Waiting(
        code=Pending.UNAVAILABLE, message="PartitionDown: The partition is down."
    )
    assert waiting.state is AttemptState.STARTING
    await rig.driver.stop(key, grace_s=60)
    observed = await until_over(rig.driver, key)
    assert (observed.state, observed.started_ms) == (AttemptState.CANCELLED, None)
    rig.testbed.wait(lambda: not rig.testbed.call("squeue", "-h"), "the queue is empty")


async def test_ranks_of_several_nodes_know_each_other(rig: SlurmRig) -> None:
    script = (
        'echo "$VERDERER_NODE_RANK/$VERDERER_NUM_NODES $SLURMD_NODENAME $MASTER_ADDR:$MASTER_PORT"'
    )
    order = rig.program(script=script, nodes=2)
    await begin(rig.driver, order)
    assert (await until_over(rig.driver, order.key)).state is AttemptState.SUCCEEDED
    told = [(await output_of(rig, order.key, replica)).split() for replica in (0, 1)]
    assert [words[0] for words in told] == ["0/2", "1/2"]
    assert told[0][1] != told[1][1]
    assert told[0][2] == told[1][2]
    assert int(told[0][2].rpartition(":")[2]) > 0


async def test_the_first_rank_that_fails_ends_the_others_and_counts(rig: SlurmRig) -> None:
    order = rig.program(script='[ "$VERDERER_NODE_RANK" = 1 ] && exit 5; exec sleep 600', nodes=2)
    await begin(rig.driver, order)
    end = end_of(await until_over(rig.driver, order.key))
    assert (end.cause, end.exit_code) == (EndCause.EXIT, 5)
    assert end.message == "rank 1 of 2: exit code 5"


async def test_ranks_of_several_nodes_are_stopped_together(rig: SlurmRig) -> None:
    order = rig.program(command=("sleep", "600"), nodes=3)
    await begin(rig.driver, order)
    await until_running(rig.driver, order.key)
    await rig.driver.stop(order.key, grace_s=10)
    assert (await until_over(rig.driver, order.key)).state is AttemptState.CANCELLED


async def test_a_stubborn_program_on_several_nodes_is_forced(rig: SlurmRig) -> None:
    order = rig.order(Work.STUBBORN, nodes=2)
    await begin(rig.driver, order)
    await until_running(rig.driver, order.key)
    await rig.driver.stop(order.key, grace_s=0.3)
    assert (await until_over(rig.driver, order.key)).state is AttemptState.CANCELLED


async def test_the_working_directory_and_the_script_are_the_steps_own(rig: SlurmRig) -> None:
    order = rig.program(
        script='pwd; ls; echo "$WORD"; printf \'%s|\' "$@"; echo $0 > left',
        args=("a b", "$(id)", "'; rm -rf /tmp/x; '"),
        env={"WORD": "$HOME `id`\n;"},
    )
    work = await rig.driver.prepare(order)
    (Path(work) / "given").write_text("x")
    await rig.driver.start(order, workspace=work)
    assert (await until_over(rig.driver, order.key)).state is AttemptState.SUCCEEDED
    told = await output_of(rig, order.key)
    assert told == f"{work}\ngiven\n$HOME `id`\n;\na b|$(id)|'; rm -rf /tmp/x; '|"
    assert (Path(work) / "left").exists()


async def test_fifty_jobs_cost_the_controller_one_question_at_a_time(rig: SlurmRig) -> None:
    # Slurm looks at its limits every half minute: the fifty run meanwhile.
    limited = await running(rig)
    job = await rig.job_of(limited)
    rig.testbed.call("scontrol", "update", f"jobid={job}", "endtime=now+1seconds")
    asked: Counter[str] = Counter()
    ask = rig.driver._slurm._run

    async def counted(program: str, *arguments: str) -> str:
        asked[program] += 1
        return await ask(program, *arguments)

    rig.driver._slurm._run = counted  # type: ignore[method-assign]
    orders = [rig.program(script="echo done") for _ in range(50)]
    await asyncio.gather(*(begin(rig.driver, order) for order in orders))
    for order in orders:
        assert (await until_over(rig.driver, order.key)).state is AttemptState.SUCCEEDED
    assert asked["sbatch"] <= 50 + 1  # one asks for the version
    assert asked["scontrol"] <= 2  # about the end of the one that ran into its limit
    assert asked["sacct"] + asked["scancel"] == 0
    assert asked["squeue"] < 300
    outputs = [joined(await read_all(rig.driver, order.key)) for order in orders]
    assert outputs == [b"done\n"] * 50
    end = end_of(await until_over(rig.driver, limited))
    assert end.cause is EndCause.TIMEOUT
    assert "Slurm's time limit" in end.message
