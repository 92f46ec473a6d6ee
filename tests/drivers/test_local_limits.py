from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.drivers.contract import begin, joined, read_all, until_over
from tests.drivers.rigs import MIB, LocalRig, memory_can_be_limited
from verderer.core.model.attempt import EndCause
from verderer.core.model.resources import Resources
from verderer.drivers.local import limits, load
from verderer.drivers.local.monitor.cgroup import Group

MOUNTS_V1 = """\
24 19 0:21 / /sys/fs/cgroup rw,relatime - tmpfs cgroup rw,mode=755
25 24 0:22 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:1 - cgroup cgroup rw,cpu,cpuacct
26 24 0:23 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
27 24 0:24 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
28 24 0:25 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,name=systemd
"""
OWN_V1 = "4:memory:/jobs/a b\n1:cpu,cpuacct:/\n9:name=systemd:/\n0::/\n"


def test_version_1_hierarchies_are_found_by_controller() -> None:
    found = limits.parse_hierarchies(MOUNTS_V1, OWN_V1)
    assert found.own_v1["cpu"] == Path("/sys/fs/cgroup/cpu,cpuacct")
    assert found.own_v1["memory"] == Path("/sys/fs/cgroup/memory/jobs/a b")
    assert found.own_v2 == Path("/sys/fs/cgroup/unified")


def test_a_container_sees_only_its_part_of_the_tree() -> None:
    mounts = "30 24 0:26 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n"
    found = limits.parse_hierarchies(mounts, "0::/docker/abc/agent\n")
    assert found.own_v2 == Path("/sys/fs/cgroup/agent")
    assert limits.parse_hierarchies("rubbish\n", "more\n") == limits.Hierarchies({}, None)


def fake_v2(root: Path, offered: str = "cpu io memory pids") -> Path:
    """A directory that looks like a version 2 cgroup; what is written to it stays there."""
    root.mkdir(parents=True)
    for file in ("cgroup.controllers", "cgroup.subtree_control", "cgroup.procs"):
        (root / file).write_text("")
    (root / "cgroup.controllers").write_text(offered)
    return root


def test_a_delegated_directory_is_used_when_it_hands_controllers_down(tmp_path: Path) -> None:
    root = fake_v2(tmp_path / "ours")
    base = fake_v2(root / "name")
    assert limits.find_limits("name", inside=root).label == "none", "the kernel listed nothing"
    (base / "cgroup.subtree_control").write_text("cpu memory pids")
    assert limits.find_limits("other", inside=tmp_path / "absent") == limits.Limits()


def test_version_2_limits_are_written_in_its_units(tmp_path: Path) -> None:
    base = tmp_path / "base"
    group = Group(2, dict.fromkeys(("cpu", "memory", "pids"), str(base)), "v1.0")
    home = base / "v1.0"
    home.mkdir(parents=True)
    for file in ("cpu.max", "cpu.weight", "memory.max", "memory.oom.group", "pids.max"):
        (home / file).write_text("")
    group.create(cpu=1500, cpu_share=1000, memory=64 * MIB, pids=100)
    written = {file.name: file.read_text() for file in home.iterdir()}
    assert written == {
        "cpu.max": "150000 100000",
        "cpu.weight": "39",
        "memory.max": str(64 * MIB),
        "memory.oom.group": "1",
        "pids.max": "100",
    }
    (home / "memory.events").write_text("low 0\nmax 3\noom 1\noom_kill 2\n")
    assert group.oom_kills() == 2


def test_a_limit_that_cannot_be_set_is_an_error(tmp_path: Path) -> None:
    group = Group(2, {"memory": str(tmp_path)}, "v1.0")
    with pytest.raises(FileNotFoundError):
        group.create(cpu=0, cpu_share=0, memory=MIB, pids=10)


def test_no_cgroup_means_no_limits_and_no_errors() -> None:
    group = Group(0, {}, "v1.0")
    group.create(cpu=1, cpu_share=1, memory=1, pids=1)
    group.join()
    assert not group.kill()
    assert group.oom_kills() == 0
    assert group.remove()


# As the spawner does it: with one thread. A child of many may wait for ever for a lock of another.
BIRTH = """
import os, signal, sys
from verderer.drivers.local.monitor import kernel
pid = kernel.fork_into(sys.argv[1])
if pid == 0:
    os.kill(os.getpid(), signal.SIGSTOP)
    os._exit(0)
os.waitpid(pid, os.WUNTRACED)
print(pid, open(sys.argv[1] + "/cgroup.procs").read().split())
os.kill(pid, signal.SIGKILL)
os.waitpid(pid, 0)
"""


def test_a_child_can_be_born_inside_a_version_2_cgroup() -> None:
    own = limits.own_directories().own_v2
    base = own / "verderer-birth" if own is not None else None
    try:
        assert base is not None
        base.mkdir()
    except (AssertionError, OSError):
        pytest.skip("NOT TESTED: no version 2 cgroup that is writable")
    try:
        command = [sys.executable, "-c", BIRTH, str(base)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
        pid, _, inside = done.stdout.strip().partition(" ")
        assert inside == str([pid])
    finally:
        base.rmdir()


async def test_memory_limits_hold_for_children_too(local: LocalRig) -> None:
    if not memory_can_be_limited():
        pytest.skip("NOT TESTED: no writable memory cgroup")
    script = "python3 -c 'x = bytearray(300 << 20)' || exit 9"
    order = local.program(script=script, limits=Resources.of({"memory": 64 * MIB}))
    await begin(local.driver, order)
    end = (await until_over(local.driver, order.key)).end
    assert end is not None
    assert end.cause is EndCause.OOM, "the shell survived, its child did not"


async def test_half_a_core_is_half_a_core(local: LocalRig) -> None:
    await local.driver.observe()
    if "cpu" not in local.driver._machine.limits.bases:
        pytest.skip("NOT TESTED: no writable cpu cgroup")
    code = (
        "import time\n"
        "until = time.monotonic() + 1.0\n"
        "while time.monotonic() < until: pass\n"
        "print(time.process_time())"
    )
    order = local.program(command=("python3", "-c", code), limits=Resources.of({"cpu": 500}))
    await begin(local.driver, order)
    await until_over(local.driver, order.key)
    assert float(joined(await read_all(local.driver, order.key))) < 0.75


async def test_groups_are_gone_after_the_end(local: LocalRig) -> None:
    order = local.program(command=("true",), limits=Resources.of({"cpu": 500, "memory": MIB * 64}))
    await begin(local.driver, order)
    await until_over(local.driver, order.key)
    for base in local.driver._machine.limits.bases.values():
        assert [entry for entry in Path(base).iterdir() if entry.is_dir()] == []


async def test_the_node_says_which_limits_hold(local: LocalRig) -> None:
    [node] = await local.driver.nodes()
    expected = sorted(local.driver._machine.limits.bases) or ["none"]
    assert node.labels["verderer.dev/limits"] == ",".join(expected)


def test_cpu_load_is_a_share_between_two_readings(tmp_path: Path) -> None:
    stat = tmp_path / "stat"
    meter = load.CpuMeter(stat)
    readings = []
    for text in (
        "cpu  100 0 100 800 0 0 0 0 0 0\ncpu0 …\n",
        "cpu  130 0 120 850 0 0 0 0 0 0\n",
        "cpu  130 0 120 850 0 0 0 0 0 0\n",
        "rubbish\n",
    ):
        stat.write_text(text)
        readings.append(meter.load())
    assert readings == [None, 0.5, None, None]


def test_meminfo_is_in_bytes() -> None:
    text = "MemTotal:  2048 kB\nHugePages_Total:  3\nodd line\n"
    assert load.parse_meminfo(text) == {"MemTotal": 2048 * 1024, "HugePages_Total": 3}


def test_quotas_above_us_bound_what_we_offer(tmp_path: Path) -> None:
    own = fake_v2(tmp_path / "slice") / "agent"
    fake_v2(own)
    (own.parent / "cpu.max").write_text("50000 100000\n")
    (own / "cpu.max").write_text("max 100000\n")
    (own.parent / "memory.max").write_text(f"{512 * MIB}\n")
    (own.parent / "memory.current").write_text(f"{500 * MIB}\n")
    assert load.cpu_milli(own) == 500
    assert load.memory_bytes(own) == (512 * MIB, 12 * MIB)
