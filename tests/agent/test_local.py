"""The agent in its own process over real processes: killed, stopped, measured."""

from __future__ import annotations

import asyncio
import random
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import psutil

from tests.agent.fake_control_plane import FakeControlPlane
from tests.agent.rig import until
from verderer.wire.agent import InputFile, OutputFile

LIMIT_MIB = 64


@asynccontextmanager
async def process(
    plane: FakeControlPlane, folder: Path
) -> AsyncIterator[asyncio.subprocess.Process]:
    folder.mkdir(exist_ok=True)
    with (folder / "agent.log").open("ab") as log:
        agent = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "tests.agent.agent_process",
            plane.url,
            str(folder / "state"),
            str(folder / "root"),
            stdout=log,
            stderr=log,
        )
    try:
        yield agent
    finally:
        if agent.returncode is None:
            agent.kill()
        await agent.wait()


async def test_a_step_reads_its_input_and_its_output_is_stored(
    plane: FakeControlPlane, folder: Path
) -> None:
    plane.objects["given"] = b"hello"
    async with process(plane, folder):
        key = plane.order(
            script="tr a-z A-Z < in/text | tee out.txt\nmkdir m; cp out.txt m/a\n",
            inputs=[InputFile(name="text", path="in/text", key="given")],
            outputs=[
                OutputFile(name="text", path="out.txt", key="artifacts/text"),
                OutputFile(name="model", path="m", key="artifacts/model"),
            ],
        )
        await until(lambda: plane.ends[key] and plane.log_complete(key), within_s=30)
    assert plane.state(key) == "succeeded", plane.end_of(key)
    assert plane.log_of(key) == b"HELLO"
    assert plane.objects["artifacts/text"] == plane.objects["artifacts/model/a"] == b"HELLO"
    assert [(o.name, o.size, o.files) for o in plane.end_of(key).outputs] == [
        ("text", 5, 1),
        ("model", 5, 1),
    ]


async def test_a_missing_input_and_a_missing_output_are_different_ends(
    plane: FakeControlPlane, folder: Path
) -> None:
    async with process(plane, folder):
        first = plane.order(script="true", inputs=[InputFile(name="data", path="x", key="nothing")])
        second = plane.order(
            script="true", outputs=[OutputFile(name="model", path="m", key="artifacts/m")]
        )
        await until(lambda: plane.ends[first] and plane.ends[second], within_s=30)
    for key, cause, named in ((first, "start", "data"), (second, "output", "model")):
        end = plane.end_of(key).end
        assert end is not None
        assert (end.cause, named in end.message) == (cause, True)


async def test_killed_again_and_again_every_step_runs_once_and_no_line_is_lost(
    plane: FakeControlPlane, folder: Path
) -> None:
    chance = random.Random(11)
    folder.mkdir(exist_ok=True)
    ran = folder / "ran"
    script = f"echo $STEP >> {ran}\nfor i in $(seq 40); do echo $STEP line $i; sleep 0.05; done\n"
    keys = []
    for _ in range(6):
        plane.hellos.clear()
        async with process(plane, folder) as agent:
            await until(lambda: plane.hellos, within_s=30)
            keys += [
                plane.order(
                    script=script,
                    env={"STEP": str(len(keys) + n)},
                )
                for n in range(4)
            ]
            await asyncio.sleep(chance.random() * 1.2)
            agent.kill()
    async with process(plane, folder):
        await until(lambda: all(plane.ends[key] for key in keys), within_s=60)
        await until(lambda: all(plane.log_complete(key) for key in keys), within_s=30)
        await until(lambda: not list((folder / "root" / "attempts").iterdir()), within_s=30)
    assert sorted(map(int, ran.read_text().split())) == list(range(len(keys)))
    for number, key in enumerate(keys):
        expected = "".join(f"{number} line {i}\n" for i in range(1, 41))
        assert plane.log_of(key).decode() == expected
        assert plane.state(key) == "succeeded"


async def test_sigterm_ends_the_agent_and_not_the_work(
    plane: FakeControlPlane, folder: Path
) -> None:
    async with process(plane, folder) as agent:
        key = plane.order(script="sleep 3; echo done")
        await until(lambda: plane.state(key) == "running", within_s=30)
        agent.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(agent.wait(), 5) == 0
    async with process(plane, folder):
        await until(lambda: plane.log_complete(key), within_s=30)
    assert plane.log_of(key) == b"done\n"


async def test_the_agent_stays_small_while_a_step_prints_a_hundred_megabytes(
    plane: FakeControlPlane, folder: Path
) -> None:
    async with process(plane, folder) as agent:
        await until(lambda: plane.nodes, within_s=30)
        idle = psutil.Process(agent.pid).memory_info().rss / 2**20
        key = plane.order(script="yes 'a line of quite ordinary length, again' | head -c 100000000")
        most = idle

        def done() -> bool:
            nonlocal most
            most = max(most, psutil.Process(agent.pid).memory_info().rss / 2**20)
            return plane.log_complete(key)

        await until(done, within_s=60)
    print(f"resident: {idle:.1f} MiB idle, {most:.1f} MiB at most")
    assert sum(fact.size for fact in plane.logs.values()) == 100_000_000
    assert most < LIMIT_MIB
