"""Logging in and out, and where tokens are kept and sent."""

from __future__ import annotations

import json
import os
import pty
import select
import stat
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cli.conftest import Run
from tests.cli.server_thread import Server
from tests.rig.people import PASSWORD, SYSTEM
from verderer.cli.commands import contexts
from verderer.cli.commands.contexts import Context, Contexts
from verderer.cli.screen.failures import Exit
from verderer.core.errors import Invalid
from verderer.usecases.people.users import create_user

VERDERER = [sys.executable, "-P", "-m", "verderer.cli.main"]


def converse(words: list[str], answers: list[tuple[str, str]], home: Path) -> tuple[int, str]:
    """Run a command at a terminal and type an answer whenever its question has come."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ |= {"XDG_CONFIG_HOME": str(home / "config"), "NO_COLOR": "1"}
        os.execv(sys.executable, [*VERDERER, *words])
    shown, seen = "", 0
    deadline = time.monotonic() + 60
    waiting = list(answers)
    while time.monotonic() < deadline:
        if select.select([terminal], [], [], 0.1)[0]:
            try:
                part = os.read(terminal, 4096)
            except OSError:
                break
            shown += part.decode()
        elif waiting and waiting[0][0] in shown[seen:]:
            # Nothing more came for a while: the echo is off and the answer is waited for.
            seen = len(shown)
            os.write(terminal, waiting.pop(0)[1].encode() + b"\n")
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), shown


def config(home: Path) -> Path:
    return home / "config/verderer/config.toml"


def test_a_password_becomes_a_token_that_only_its_owner_can_read(
    home: Path, server: Server, verderer: Run
) -> None:
    words = ["login", server.url]
    answers = [("E-mail", "member@example.org"), ("Password", "wrong"), ("Password", PASSWORD)]
    code, shown = converse(words, answers, home)
    assert code == 0, shown
    assert PASSWORD not in shown
    assert stat.S_IMODE(config(home).stat().st_mode) == 0o600
    assert stat.S_IMODE(config(home).parent.stat().st_mode) == 0o700
    kept = tomllib.loads(config(home).read_text())["contexts"]["default"]
    assert (kept["url"], kept["email"]) == (server.url, "member@example.org")
    assert PASSWORD not in config(home).read_text()
    assert "member@example.org" in verderer("whoami").out
    assert verderer("logout").code == 0
    assert "token" not in tomllib.loads(config(home).read_text())["contexts"]["default"]
    assert verderer("whoami").code == Exit.NOT_AUTHENTICATED
    config(home).write_text(config(home).read_text() + f'token = "{kept["token"]}"\n')
    assert verderer("whoami").code == Exit.NOT_AUTHENTICATED, "it was revoked at the server"


def test_a_one_time_password_is_replaced_on_the_way(
    home: Path, server: Server, verderer: Run
) -> None:
    made = server.do(create_user(server.platform.world.ctx, SYSTEM, email="new@example.org"))
    answers = [
        ("Password", made.password),
        ("New password", "short"),
        ("epeat", "short"),
        ("New password", "five small boats at sea"),
        ("epeat", "five small boats at sea"),
    ]
    code, shown = converse(["login", server.url, "--email", "new@example.org"], answers, home)
    assert code == 0, shown
    assert "works once" in shown
    assert "shorter than" in shown
    assert "new@example.org" in verderer("whoami").out


def test_a_token_logs_in_without_a_terminal(
    home: Path, server: Server, verderer: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = server.platform.cast.member.token
    assert verderer("login", server.url, "--token", token).code == 0
    assert verderer("login", server.url, "--token", "vrd_u_x", "--context", "bad").code == 3
    root = server.platform.cast.root.token
    assert verderer("login", server.url, "--token", root, "--context", "work").code == 0
    assert "root@example.org" in verderer("whoami").out, "the newest login is the current one"
    assert "member@example.org" in verderer("--context", "default", "whoami").out
    monkeypatch.setenv("VERDERER_CONTEXT", "default")
    assert "member@example.org" in verderer("whoami").out


def test_without_a_terminal_nobody_is_asked(home: Path, server: Server) -> None:
    done = subprocess.run(
        [*VERDERER, "login", server.url],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env=os.environ | {"XDG_CONFIG_HOME": str(home / "config")},
        timeout=60,
        check=False,
    )
    assert done.returncode == Exit.NOT_AUTHENTICATED
    assert "--token" in done.stderr


class TestWhichContext:
    @pytest.fixture(autouse=True)
    def _saved(self, home: Path) -> None:
        one = Context(name="one", url="https://one.example", token="token of one")
        two = Context(name="two", url="https://two.example", token="token of two")
        contexts.save(Contexts("one", (one, two)))

    def test_the_environment_wins(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert contexts.chosen().token == "token of one"
        monkeypatch.setenv("VERDERER_TOKEN", "mine")
        assert (contexts.chosen().url, contexts.chosen().token) == ("https://one.example", "mine")
        monkeypatch.setenv("VERDERER_URL", "https://three.example/")
        assert contexts.chosen().url == "https://three.example"

    def test_a_token_goes_to_its_own_server_alone(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("VERDERER_URL", "https://evil.example")
        assert contexts.chosen().token == ""
        monkeypatch.setenv("VERDERER_URL", "https://two.example")
        assert contexts.chosen().token == "token of two"

    def test_a_file_that_others_can_read_is_refused(self, home: Path) -> None:
        config(home).chmod(0o644)
        with pytest.raises(Invalid) as refused:
            contexts.load()
        assert "chmod 600" in refused.value.hint

    def test_a_damaged_file_is_refused_in_words(self, home: Path, verderer: Run) -> None:
        config(home).write_text("current = [")
        done = verderer("runs")
        assert done.code == Exit.FAILED
        assert "cannot be read" in done.err


@given(
    st.lists(
        st.tuples(
            st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_-]{0,9}", fullmatch=True),
            st.text(st.characters(exclude_categories=["Cs"])),
        ),
        unique_by=lambda pair: pair[0],
        max_size=4,
    )
)
def test_what_is_saved_is_loaded(
    tmp_path_factory: pytest.TempPathFactory, pairs: list[tuple[str, str]]
) -> None:
    folder = tmp_path_factory.mktemp("home")
    known = tuple(Context(name=name, url="https://x", email=text) for name, text in pairs)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(folder))
        contexts.save(Contexts("default", known))
        assert contexts.load() == Contexts("default", known)


class TestUsers:
    @pytest.fixture
    def root(self, verderer: Run, server: Server, monkeypatch: pytest.MonkeyPatch) -> Run:
        monkeypatch.setenv("VERDERER_URL", server.url)
        monkeypatch.setenv("VERDERER_TOKEN", server.platform.cast.root.token)
        return verderer

    def of(self, root: Run, email: str) -> dict[str, object]:
        rows = json.loads(root("users", "-o", "json").out)
        return next(row for row in rows if row["email"] == email)

    def test_accounts_are_made_changed_and_locked_out(self, root: Run) -> None:
        made = root("users", "add", "ana+1@example.org", "--name", "Ana")
        assert (made.code, len(made.out.strip())) == (0, 23)
        assert "not shown again" in made.err
        assert "password not chosen yet" in root("users").out
        again = json.loads(root("users", "reset-password", "ana+1@example.org", "-o", "json").out)
        assert again["password"] != made.out.strip()
        for verb, member, value in (
            ("promote", "platform_admin", True),
            ("demote", "platform_admin", False),
            ("deactivate", "active", False),
            ("activate", "active", True),
        ):
            assert root("users", verb, "ana+1@example.org").code == 0
            assert self.of(root, "ana+1@example.org")[member] is value

    def test_who_may_not_or_does_not_exist_is_said(self, root: Run, server: Server) -> None:
        assert root("users", "deactivate", "nobody@example.org").code == Exit.NOT_FOUND
        lost = root("users", "demote", server.platform.cast.root.email)
        assert lost.code != 0
        assert "Ask another platform admin" in lost.err

    def test_a_member_may_not(self, member: Run) -> None:
        assert member("users").code == Exit.FAILED
