"""The supervisor, with real processes: tiny scripts that live, die, refuse and dawdle."""

from __future__ import annotations

import asyncio
import io
import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from verderer.cli.up import lock
from verderer.cli.up.backoff import Backoff
from verderer.cli.up.role import REFUSED, Alive, Answers, Exits, Readiness, RoleSpec, Says
from verderer.cli.up.stream import LogStream, last_words
from verderer.cli.up.supervisor import Patience, Supervisor
from verderer.core.errors import Conflict, Fault

FOREVER = "import time; time.sleep(600)"
NOTE = "import os, sys; open(sys.argv[1], 'a').write(f'{os.getpid()}\\n')\n"
DEADLINE_S = 20.0
BRIEFLY = Alive(0.05)
USUAL = Patience()


def script(
    name: str, code: str, *arguments: object, ready: Readiness = BRIEFLY, stop_s: float = 5.0
) -> RoleSpec:
    return RoleSpec(
        name=name,
        argv=(sys.executable, "-S", "-c", code, *map(str, arguments)),
        ready=ready,
        environment=dict(os.environ),
        stop_within_s=stop_s,
    )


def until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not true():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.02)


async def soon(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while not true():
            await asyncio.sleep(0.02)


def pids(file: Path) -> list[int]:
    return [int(line) for line in file.read_text().split()] if file.exists() else []


def runs(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


class Platform:
    """A running supervisor and what it wrote."""

    def __init__(self, stages: list[list[RoleSpec]], patience: Patience) -> None:
        self.out = io.StringIO()
        self.ready = asyncio.Event()
        self.supervisor = Supervisor(
            stages,
            LogStream(self.out, text=True, colours=False),
            on_ready=self.ready.set,
            patience=patience,
            backoff=lambda: Backoff(first_s=0.02, most_s=0.1),
        )
        self.running = asyncio.create_task(self.supervisor.run())

    async def becomes_ready(self) -> None:
        async with asyncio.timeout(DEADLINE_S):
            await self.ready.wait()

    async def ends(self) -> None:
        async with asyncio.timeout(DEADLINE_S):
            await self.running


@asynccontextmanager
async def platform(*stages: list[RoleSpec], patience: Patience = USUAL) -> AsyncIterator[Platform]:
    made = Platform(list(stages), patience)
    try:
        yield made
    finally:
        made.supervisor.stop()
        await asyncio.gather(made.running, return_exceptions=True)


async def test_a_killed_process_is_started_again(tmp_path: Path) -> None:
    seen = tmp_path / "pids"
    async with platform([script("role", NOTE + FOREVER, seen)]) as up:
        await up.becomes_ready()
        os.kill(pids(seen)[0], signal.SIGKILL)
        await soon(lambda: len(pids(seen)) == 2)
        assert not runs(pids(seen)[0])
        assert runs(pids(seen)[1])


async def test_a_stage_starts_when_the_one_before_is_ready(tmp_path: Path) -> None:
    seen = tmp_path / "order"
    slow = "import time, sys; time.sleep(0.3); open(sys.argv[1], 'a').write('migrated\\n')"
    quick = "import sys; open(sys.argv[1], 'a').write('served\\n');" + FOREVER
    async with platform(
        [script("migrate", slow, seen, ready=Exits())], [script("server", quick, seen)]
    ) as up:
        await up.becomes_ready()
        await soon(lambda: len(seen.read_text().split()) == 2)
        assert seen.read_text().split() == ["migrated", "served"]


async def test_an_early_process_prepares_at_once_and_begins_at_its_turn(tmp_path: Path) -> None:
    seen = tmp_path / "order"
    note = "import sys, time\ndef note(word): open(sys.argv[1], 'a').write(word + '\\n')\n"
    first = note + "time.sleep(0.8); note('migrated')"
    early = note + "note('imported'); sys.stdin.readline(); note('began'); " + FOREVER
    second = replace(script("server", early, seen), early=True)
    async with platform([script("migrate", first, seen, ready=Exits())], [second]) as up:
        await up.becomes_ready()
        await soon(lambda: len(seen.read_text().split()) == 3)
    assert seen.read_text().split() == ["imported", "migrated", "began"]


async def test_an_early_process_that_dies_before_its_turn_is_started_again(
    tmp_path: Path,
) -> None:
    seen = tmp_path / "pids"
    dies_once = NOTE + "if len(open(sys.argv[1]).readlines()) == 1: raise SystemExit(1)\n" + FOREVER
    second = replace(script("server", dies_once, seen), early=True)
    slow = "import time; time.sleep(0.6)"
    async with platform([script("migrate", slow, ready=Exits())], [second]) as up:
        await up.becomes_ready()
        assert len(pids(seen)) == 2


async def test_processes_stop_in_the_opposite_order(tmp_path: Path) -> None:
    seen = tmp_path / "order"
    code = """
        import signal, sys, time
        def leave(*_):
            open(sys.argv[1], 'a').write(sys.argv[2] + '\\n')
            sys.exit(0)
        signal.signal(signal.SIGTERM, leave)
        import os; os.write(int(os.environ['VERDERER_READY_FD']), b'ready\\n')
        while True: time.sleep(600)
    """
    names = ["postgres", "server", "agent"]
    stages = [[script(n, textwrap.dedent(code), seen, n, ready=Says())] for n in names]
    async with platform(*stages) as up:
        await up.becomes_ready()
        up.supervisor.stop()
        await up.ends()
    assert seen.read_text().split() == ["agent", "server", "postgres"]


async def test_one_that_does_not_listen_is_killed_after_its_grace(tmp_path: Path) -> None:
    seen = tmp_path / "pids"
    deaf = (
        "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        + NOTE
        + "import os; os.write(int(os.environ['VERDERER_READY_FD']), b'ready\\n')\n"
        + FOREVER
    )
    async with platform([script("deaf", deaf, seen, ready=Says(), stop_s=0.2)]) as up:
        await up.becomes_ready()
        up.supervisor.stop()
        await up.ends()
    assert not runs(pids(seen)[0])


async def test_a_second_stop_does_not_wait_for_the_grace(tmp_path: Path) -> None:
    deaf = (
        "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "import os; os.write(int(os.environ['VERDERER_READY_FD']), b'ready\\n')\n" + FOREVER
    )
    async with platform([script("deaf", deaf, ready=Says(), stop_s=60.0)]) as up:
        await up.becomes_ready()
        up.supervisor.stop()
        await asyncio.sleep(0)
        up.supervisor.stop()
        await up.ends()


async def test_a_stop_during_the_start_leaves_nothing_behind(tmp_path: Path) -> None:
    seen = tmp_path / "pids"
    async with platform([script("never", NOTE + FOREVER, seen, ready=Says())]) as up:
        await soon(lambda: len(pids(seen)) == 1)
        up.supervisor.stop()
        await up.ends()
        assert not up.ready.is_set()
    assert not runs(pids(seen)[0])


async def test_a_stop_before_anything_runs_is_a_clean_one() -> None:
    async with platform([script("role", FOREVER)]) as up:
        up.supervisor.stop()
        await up.ends()


async def test_a_refusal_at_the_start_is_final_and_says_why(tmp_path: Path) -> None:
    seen = tmp_path / "pids"
    refuses = NOTE + f"import sys; print('no such bucket'); sys.exit({REFUSED})"
    other = tmp_path / "other"
    async with platform(
        [script("other", NOTE + FOREVER, other)], [script("server", refuses, seen)]
    ) as up:
        with pytest.raises(Fault, match="no such bucket"):
            await up.ends()
    assert len(pids(seen)) == 1
    assert not runs(pids(other)[0])


async def test_a_failing_start_is_tried_a_few_times(tmp_path: Path) -> None:
    seen = tmp_path / "pids"
    async with platform(
        [script("server", NOTE + "raise SystemExit(1)", seen, ready=Says())],
        patience=Patience(attempts=3),
    ) as up:
        with pytest.raises(Fault, match="server does not start"):
            await up.ends()
    assert len(pids(seen)) == 3


async def test_a_start_that_heals_is_no_failure(tmp_path: Path) -> None:
    seen = tmp_path / "pids"
    heals = NOTE + "raise SystemExit(len(open(sys.argv[1]).readlines()) < 3)"
    async with platform([script("migrate", heals, seen, ready=Exits())]) as up:
        await up.becomes_ready()
    assert len(pids(seen)) == 3


async def test_a_refusal_later_is_not_final(tmp_path: Path) -> None:
    seen = tmp_path / "pids"
    code = (
        NOTE
        + "import time\n"
        + "if len(open(sys.argv[1]).readlines()) in (2, 3): raise SystemExit(78)\n"
        + FOREVER
    )
    async with platform([script("server", code, seen)]) as up:
        await up.becomes_ready()
        os.kill(pids(seen)[0], signal.SIGKILL)
        await soon(lambda: len(pids(seen)) == 4)
        assert not up.running.done()


async def test_a_program_that_cannot_be_executed_is_a_failure() -> None:
    missing = RoleSpec(name="server", argv=("/nonexistent/program",))
    async with platform([missing], patience=Patience(attempts=2)) as up:
        with pytest.raises(Fault, match="cannot be executed"):
            await up.ends()


async def test_one_that_is_never_ready_is_started_again_and_given_up(tmp_path: Path) -> None:
    seen = tmp_path / "pids"
    async with platform(
        [script("mute", NOTE + FOREVER, seen, ready=Says())],
        patience=Patience(ready_within_s=0.4, attempts=2),
    ) as up:
        with pytest.raises(Fault, match="mute does not start"):
            await up.ends()
    assert len(pids(seen)) == 2
    assert not any(map(runs, pids(seen)))


async def test_a_server_is_ready_when_it_answers_200(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    code = """
        import http.server, sys
        class Late(http.server.BaseHTTPRequestHandler):
            asked = 0
            def do_GET(self):
                Late.asked += 1
                self.send_response(200 if Late.asked > 2 else 503)
                self.end_headers()
        http.server.HTTPServer(('127.0.0.1', int(sys.argv[1])), Late).serve_forever()
    """
    ready = Answers(f"http://127.0.0.1:{port}/readyz")
    async with platform([script("server", textwrap.dedent(code), port, ready=ready)]) as up:
        await up.becomes_ready()
        assert up.out.getvalue().count("/readyz") == 3


async def test_every_line_says_who_wrote_it_even_an_endless_one() -> None:
    code = "print('first'); print('x' * 200_000); print('last', end='')"
    async with platform([script("migrate", code, ready=Exits())]) as up:
        await up.becomes_ready()
    lines = up.out.getvalue().splitlines()
    assert all(line.startswith("migrate   | ") for line in lines)
    assert lines[0].endswith("first")
    assert lines[-1].endswith("last")
    assert sum(line.count("x") for line in lines) == 200_000


def test_a_json_stream_holds_only_json() -> None:
    out = io.StringIO()
    stream = LogStream(out, text=False, colours=False)
    stream.write("server", '{"event":"own"}')
    stream.write("server", "Traceback (most recent call last):")
    own, wrapped = map(json.loads, out.getvalue().splitlines())
    assert own == {"event": "own"}
    assert (wrapped["event"], wrapped["role"]) == ("Traceback (most recent call last):", "server")


@pytest.mark.parametrize(
    ("tail", "said"),
    [
        pytest.param([], "it said nothing", id="nothing"),
        pytest.param(["a", "b"], "\na\nb", id="plain lines"),
        pytest.param(
            ['{"event":"no bucket","hint":"make one"}'], "no bucket: make one", id="a refusal"
        ),
        pytest.param(
            ['{"event":"crashed","exception":"Traceback\\n  here\\nKeyError: 1"}'],
            "crashed: KeyError: 1",
            id="a crash",
        ),
        pytest.param(["[1]"], "\n[1]", id="JSON that is no event"),
    ],
)
def test_why_a_process_ended_is_told_briefly(tail: list[str], said: str) -> None:
    assert last_words(tail) == said


def test_waiting_doubles_up_to_a_limit_and_starts_over_after_a_good_life() -> None:
    backoff = Backoff()
    assert [round(backoff.after(1.0), 1) for _ in range(8)] == [
        0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10.0, 10.0,
    ]  # fmt: skip
    assert backoff.after(30.0) == pytest.approx(0.2)
    for _ in range(5000):
        assert backoff.after(0.0) <= 10.0


SUPERVISE = """
import asyncio, os, sys
from pathlib import Path
from verderer.cli.up import lock
from verderer.cli.up.role import RoleSpec, Alive
from verderer.cli.up.stream import LogStream
from verderer.cli.up.supervisor import Supervisor
from verderer.telemetry import logs
import signal
logs.configure(role="up")
code, folder = sys.argv[1], Path(sys.argv[2])

async def main():
    roles = [
        RoleSpec(name=n, argv=(sys.executable, "-S", "-c", code, str(folder / n)),
                 ready=Alive(0.1), environment=dict(os.environ))
        for n in ("one", "two")
    ]
    up = Supervisor([roles], LogStream(text=True, colours=False),
                    on_ready=lambda: print("ready", flush=True))
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, up.stop)
    loop.add_signal_handler(signal.SIGTERM, up.stop)
    await up.run()

with lock.hold(folder):
    asyncio.run(main())
"""


@pytest.fixture
def supervised(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A supervisor in a process of its own, with two roles that note their pids."""
    process = subprocess.Popen(
        [sys.executable, "-c", SUPERVISE, NOTE + FOREVER, str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's tie is Linux's")
def test_killing_the_supervisor_takes_its_children_along(
    supervised: subprocess.Popen[str], tmp_path: Path
) -> None:
    children = pids(tmp_path / "one") + pids(tmp_path / "two")
    assert len(children) == 2
    killed = time.monotonic()
    supervised.kill()
    until(lambda: not any(map(runs, children)))
    assert time.monotonic() - killed < 2.0


def test_a_second_up_refuses_and_names_the_first(
    supervised: subprocess.Popen[str], tmp_path: Path
) -> None:
    refused = pytest.raises(Conflict, match=f"process {supervised.pid} already runs")
    with refused, lock.hold(tmp_path):
        pass


def test_down_ends_the_running_one_and_waits(
    supervised: subprocess.Popen[str], tmp_path: Path
) -> None:
    children = pids(tmp_path / "one") + pids(tmp_path / "two")
    assert lock.end(tmp_path, within_s=DEADLINE_S) == supervised.pid
    assert not any(map(runs, children))
    assert supervised.wait(DEADLINE_S) == 0
    assert lock.end(tmp_path, within_s=1.0) is None


def test_a_killed_up_leaves_no_lock_behind(
    supervised: subprocess.Popen[str], tmp_path: Path
) -> None:
    supervised.kill()
    supervised.wait()
    assert lock.running(tmp_path) is None
    with lock.hold(tmp_path):
        assert lock.running(tmp_path) == os.getpid()
