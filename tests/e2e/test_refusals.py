"""Settings that cannot work: each is refused by name, with a remedy, and without a traceback."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Iterator
from urllib.parse import urlsplit, urlunsplit

import pytest

from tests.chaos.platform import free_port, wait_for
from tests.e2e.apart import Outside, outside
from tests.e2e.test_backup import make_database
from verderer.cli.up.role import REFUSED

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(180), pytest.mark.xdist_group("chaos")]

UNREACHABLE = "postgresql://somebody:s3cretword@127.0.0.1:9/verderer"


@pytest.fixture(scope="module")
def there() -> Iterator[Outside]:
    with outside() as made:
        yield made


def refusal(there: Outside, role: str, *, code: int = REFUSED, **changes: str) -> tuple[str, str]:
    """What the role said when it gave up, and its advice."""
    changes.setdefault("VERDERER_SERVER_PORT", str(free_port()))
    done = there.command(role, **changes)
    said = done.stdout + done.stderr
    assert done.returncode == code, said
    assert "Traceback" not in said
    for secret in (urlsplit(there.dsn).password or "", "s3cretword"):
        assert secret not in said
    last = json.loads(done.stderr.strip().splitlines()[-1])
    assert last["hint"]
    return last["event"], last["hint"]


def test_a_database_that_was_never_set_up(there: Outside) -> None:
    said, hint = refusal(there, "scheduler")
    assert "the database lacks" in said
    assert hint == "Run `verderer migrate`."


@pytest.mark.parametrize("role", ["migrate", "server", "scheduler"])
def test_a_database_that_is_not_what_the_address_says(there: Outside, role: str) -> None:
    parts = urlsplit(there.dsn)
    said, hint = refusal(there, role, code=1, VERDERER_DATABASE_URL=UNREACHABLE)
    assert "127.0.0.1:9 cannot be reached" in said
    assert "database.url" in hint
    wrong = there.dsn.replace(parts.password or "", "s3cretword")
    said, hint = refusal(there, role, VERDERER_DATABASE_URL=wrong)
    assert f"does not let {parts.username} in" in said
    nowhere = urlunsplit(parts._replace(path="/nowhere"))
    said, hint = refusal(there, role, VERDERER_DATABASE_URL=nowhere)
    assert "has no database nowhere" in said
    assert hint.startswith("CREATE DATABASE nowhere OWNER")
    for address in ("mysql://x:s3cretword@y/z", "postgresql://u:s3cretword@h:port/x"):
        said, hint = refusal(there, role, VERDERER_DATABASE_URL=address)
        assert said.startswith("database.url cannot be used")
        assert "postgresql://" in hint


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"VERDERER_SECURITY_SECRET_KEY": "short"}, "security.secret_key has 5 characters"),
        ({"VERDERER_SECURITY_SECRET_KEY": ""}, "security.secret_key is not set"),
        ({"VERDERER_SERVER_PROT": "1"}, "VERDERER_SERVER_PROT in the environment is no setting"),
        ({"VERDERER_SERVER_PORT": "http"}, "server.port: expected a whole number"),
        ({"VERDERER_SERVER_HOST": "192.0.2.1"}, "cannot listen on 192.0.2.1"),
        ({"VERDERER_OBJECTS_URL": "ftp://x"}, "unknown scheme"),
        ({"VERDERER_OBJECTS_SECRET_KEY": ""}, "access_key and secret_key go together"),
    ],
)
def test_a_setting_that_cannot_be(there: Outside, changes: dict[str, str], named: str) -> None:
    said, _ = refusal(there, "server", **changes)
    assert named in said


def test_a_port_that_is_taken(there: Outside) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        said, hint = refusal(there, "server", VERDERER_SERVER_PORT=port)
    assert f"127.0.0.1:{port}: Address already in use" in said
    assert "server.port" in hint


def test_a_first_password_that_cannot_be_kept_locks_nobody_out(there: Outside) -> None:
    database = asyncio.run(make_database(there.dsn, "first"))
    nowhere = str(there.folder / "no-folder" / "file")
    done = there.command("migrate", "--first-login", nowhere, VERDERER_DATABASE_URL=database)
    assert done.returncode == REFUSED
    last = json.loads(done.stderr.strip().splitlines()[-1])
    assert nowhere in last["event"]
    assert last["hint"] == "`verderer recover admin@localhost` prints another one."
    done = there.command("recover", VERDERER_DATABASE_URL=database)
    assert done.stdout.startswith("Login: admin@localhost  one-time password: ")


def test_an_agent_without_a_credential(there: Outside) -> None:
    elsewhere = str(there.folder / "nobody-joined-here")
    said, hint = refusal(there, "agent", VERDERER_DATA_DIR=elsewhere)
    assert said == "this agent has not joined a cluster"
    assert "verderer agent join" in hint
    assert "verderer migrate" in hint


def test_a_data_folder_that_is_none(there: Outside) -> None:
    file = there.folder / "a-file"
    file.touch()
    done = there.command("up", VERDERER_DATA_DIR=str(file))
    assert "Traceback" not in done.stderr
    assert f"the data folder {file} cannot be used: it is not a folder" in done.stderr
    assert "--data-dir" in done.stderr


@pytest.mark.parametrize("role", ["server", "scheduler"])
def test_a_bucket_that_is_not_there_or_not_ours(there: Outside, role: str) -> None:
    assert there.command("migrate").returncode == 0
    said, hint = refusal(there, role)
    assert said.startswith("objects.url: ")
    assert "the bucket does not exist" in said
    assert "verderer doctor --fix" in hint
    said, hint = refusal(there, role, VERDERER_OBJECTS_SECRET_KEY="wrong")
    assert said.startswith("objects.access_key: ")
    assert "secret_key in [objects]" in hint


def test_each_of_several_workers_says_it_and_all_give_up(there: Outside) -> None:
    done = there.command(
        "server", VERDERER_SERVER_WORKERS="2", VERDERER_SERVER_PORT=str(free_port())
    )
    assert done.returncode == REFUSED
    assert "Traceback" not in done.stderr
    events = [json.loads(line) for line in done.stderr.strip().splitlines()]
    assert any(one["event"].startswith("objects.url: ") and one["hint"] for one in events)
    assert events[-1]["event"] == "a worker cannot work with these settings"


def test_a_store_that_is_away_is_waited_for(there: Outside) -> None:
    assert there.command("migrate").returncode == 0
    role = there.start("scheduler", VERDERER_OBJECTS_ENDPOINT="http://127.0.0.1:9")
    wait_for(lambda: "cannot be kept at the moment" in role.said, 60, "it says so")
    wait_for(lambda: '"lease":"placement"' in role.said, 60, "it leads all the same")
    assert role.end() == 0


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({}, "the bucket does not exist"),
        ({"VERDERER_OBJECTS_SECRET_KEY": "wrong"}, "HTTP 403"),
        ({"VERDERER_OBJECTS_ENDPOINT": "http://127.0.0.1:9"}, "cannot reach the bucket"),
    ],
)
def test_the_doctor_says_what_is_wrong_with_the_bucket(
    there: Outside, changes: dict[str, str], named: str
) -> None:
    done = there.command("doctor", "--server", "-o", "json", **changes)
    found = {one["what"]: one for one in json.loads(done.stdout)}
    assert (done.returncode, found["object store"]["verdict"]) == (1, "fail")
    assert named in found["object store"]["detail"]
    assert found["object store"]["remedy"]
