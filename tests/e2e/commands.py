"""The command line as a person uses it: a home of its own, a terminal where one is asked for."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

VERDERER = (sys.executable, "-P", "-m", "verderer.cli.main")
PATIENCE_S = 90.0
PASSWORD = "seven quiet herons wade"


def clean_environment(home: Path) -> dict[str, str]:
    """Ours without any setting, in a home where nobody is logged in."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("VERDERER_")}
    for name in ("MLFLOW_TRACKING_URI", "MLFLOW_TRACKING_TOKEN", "FORCE_COLOR"):
        kept.pop(name, None)
    return kept | {"HOME": str(home), "XDG_CONFIG_HOME": str(home / ".config"), "NO_COLOR": "1"}


class Cli:
    """`verderer` with a home of its own."""

    def __init__(self, home: Path) -> None:
        home.mkdir(parents=True, exist_ok=True)
        self.environment = clean_environment(home)
        self.home = home

    def __call__(self, *words: str, code: int = 0) -> str:
        """Run a command to its end; what it wrote to standard output."""
        done = self.attempt(*words)
        assert done.returncode == code, f"{words}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout

    def attempt(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command to whatever end."""
        return subprocess.run(
            [*VERDERER, *words],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )

    def read(self, *words: str) -> Any:
        """Run a command and read the JSON that it prints."""
        return json.loads(self(*words, "-o", "json"))

    def log_in(self, url: str, one_time: str, *, password: str = PASSWORD) -> str:
        """Log in the first time, at a terminal; what was seen there."""
        answers = [("Password: ", one_time), ("New password: ", password), (": ", password)]
        words = ["login", url, "--email", "admin@localhost"]
        return converse([*VERDERER, *words], answers, self.environment)

    def submit(self, folder: Path, document: str, *words: str) -> str:
        """Submit a document and leave at once; the run's id."""
        file = folder / "pipeline.yaml"
        file.write_text(document)
        return self("run", str(file), "--no-watch", *words).strip()

    def state(self, run: str) -> str:
        return str(self.read("runs", "show", run)["run"]["state"])

    @contextmanager
    def beginning(self, *words: str) -> Iterator[Lines]:
        """A command that stays, and its lines as they come."""
        with subprocess.Popen(
            [*VERDERER, *words],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        ) as process:
            try:
                yield Lines(process)
            finally:
                process.kill()


class Lines:
    """What a running command writes, with the moment at which each line was seen."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        self._process = process
        self._out = process.stdout.fileno()
        self._held = b""
        self.seen: list[str] = []

    def until(self, text: str) -> float:
        """Read until a line holds `text`; the monotonic time at which it was there.

        Raises:
            AssertionError: the command ended before that, or took too long.
        """
        return self._read(text)

    def to_the_end(self) -> int:
        """Read all that comes; the exit code."""
        self._read(None)
        return self._process.wait(PATIENCE_S)

    def _read(self, text: str | None) -> float:
        deadline = time.monotonic() + PATIENCE_S
        while text is None or not any(text in line for line in self.seen):
            left = max(0.0, deadline - time.monotonic())
            assert select.select([self._out], [], [], left)[0], f"nothing more came: {self.seen}"
            chunk = os.read(self._out, 65536)
            *lines, self._held = (self._held + chunk).split(b"\n")
            self.seen += [line.decode() for line in lines]
            if not chunk:
                self.seen += [self._held.decode()] if self._held else []
                assert text is None or any(text in line for line in self.seen), self.seen
                break
        return time.monotonic()


def converse(
    command: Sequence[str], answers: Sequence[tuple[str, str]], environment: Mapping[str, str]
) -> str:
    """Run a command at a terminal, answer each prompt in turn; all that was shown there."""
    ours, theirs = os.openpty()
    process = subprocess.Popen(
        command,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=environment,
        start_new_session=True,
    )
    os.close(theirs)
    shown, looked = "", 0
    waiting = list(answers)
    deadline = time.monotonic() + PATIENCE_S
    try:
        while True:
            assert time.monotonic() < deadline, shown
            if not select.select([ours], [], [], 1.0)[0]:
                continue
            with suppress(OSError):  # how a terminal says that nobody is at its other end
                if chunk := os.read(ours, 65536):
                    shown += chunk.decode(errors="replace")
                    if waiting and waiting[0][0] in shown[looked:]:
                        looked = len(shown)
                        os.write(ours, waiting.pop(0)[1].encode() + b"\n")
                    continue
            break
        code = process.wait(PATIENCE_S)
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    assert code == 0, shown
    assert not waiting, f"nobody asked for {waiting[0][0]!r}:\n{shown}"
    return shown
