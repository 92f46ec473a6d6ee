"""The command line in this process: its words, what it wrote, and the code it ended with."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.server_thread import Server
from verderer.cli import main as cli


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str


Run = Callable[..., Ended]


@pytest.fixture
def server(dsn: str) -> Iterator[Server]:
    made = Server(dsn)
    try:
        yield made
    finally:
        made.close()


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A home where nobody is logged in, and a terminal of 80 columns."""
    for name in ("VERDERER_URL", "VERDERER_TOKEN", "VERDERER_CONTEXT", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("COLUMNS", "80")
    return tmp_path


@pytest.fixture
def verderer(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Run:
    """Run a command of nobody in particular."""

    def run(*words: object) -> Ended:
        monkeypatch.setattr(sys, "argv", ["verderer", *map(str, words)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            cli.run()
        shown = capsys.readouterr()
        code = ended.value.code
        return Ended(code if isinstance(code, int) else 0, shown.out, shown.err)

    return run


@pytest.fixture
def member(verderer: Run, server: Server, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command as a member of the project `ours`."""
    monkeypatch.setenv("VERDERER_URL", server.url)
    monkeypatch.setenv("VERDERER_TOKEN", server.platform.cast.member.token)
    return verderer
