from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import verderer
from verderer.core.model.attempt import EndCause
from verderer.drivers.local.monitor import endings
from verderer.drivers.local.monitor.endings import verdict

EXIT_3 = 3 << 8
SIGKILL = 9


@pytest.mark.parametrize(
    ("why", "statuses", "failed", "oom", "expected"),
    [
        pytest.param("", [0], None, False, ("exit", 0, None, ""), id="success says nothing"),
        pytest.param("", [EXIT_3], 0, False, ("exit", 3, None, "exit code 3"), id="an exit code"),
        pytest.param(
            "",
            [SIGKILL],
            0,
            False,
            ("signal", None, 9, "killed by signal 9 (SIGKILL)"),
            id="a kill from outside",
        ),
        pytest.param(
            "",
            [SIGKILL],
            0,
            True,
            ("oom", None, 9, "its memory limit was reached"),
            id="the same kill, by its own memory limit",
        ),
        pytest.param(
            "", [0], None, True, ("exit", 0, None, ""), id="a child's OOM that it got over"
        ),
        pytest.param(
            "",
            [15, EXIT_3],
            1,
            False,
            ("exit", 3, None, "replica 1 of 2: exit code 3"),
            id="the first to fail gives the reason, not those it took along",
        ),
        pytest.param(
            "cancelled", [15], None, False, ("cancelled", None, 15, "said so"), id="on request"
        ),
        pytest.param(
            "timeout", [SIGKILL], None, False, ("timeout", None, 9, "said so"), id="out of time"
        ),
        pytest.param(
            "start", [127 << 8], None, False, ("start", None, None, "said so"), id="never started"
        ),
        pytest.param(
            "cancelled", [None], None, False, ("cancelled", None, None, "said so"), id="not begun"
        ),
    ],
)
def test_verdict(
    why: str,
    statuses: list[int | None],
    failed: int | None,
    oom: bool,
    expected: tuple[object, ...],
) -> None:
    end = verdict(why, statuses, failed, oom=oom, detail="said so" if why else "")
    assert (end["cause"], end["exit_code"], end["signal"], end["message"]) == expected


def test_causes_are_those_of_the_core() -> None:
    ours = {
        endings.EXIT,
        endings.SIGNAL,
        endings.OOM,
        endings.TIMEOUT,
        endings.CANCELLED,
        endings.LOST,
        endings.START,
    }
    assert ours == {cause.value for cause in EndCause} - {EndCause.OUTPUT.value}


def test_unknown_signals_have_no_name() -> None:
    assert endings.signal_name(9) == "signal 9 (SIGKILL)"
    assert endings.signal_name(99) == "signal 99"


def test_monitors_import_nothing_heavy() -> None:
    code = (
        "import sys; sys.path.append(sys.argv[1])\n"
        "import verderer.drivers.local.monitor.spawner\n"
        "print(*sys.modules)"
    )
    root = Path(verderer.__file__).parents[1]
    answer = subprocess.run(
        [sys.executable, "-I", "-S", "-E", "-c", code, str(root)],
        capture_output=True,
        text=True,
        check=True,
    )
    heavy = {"typing", "dataclasses", "inspect", "pathlib", "asyncio", "socket", "traceback"}
    assert not heavy & set(answer.stdout.split())
