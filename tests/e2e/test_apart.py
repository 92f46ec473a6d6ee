"""Roles started one by one over an external PostgreSQL and a real S3 server, used as people do."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.chaos.platform import rows, wait_for
from tests.e2e.apart import Outside, Role, answers, outside
from tests.e2e.commands import Cli

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(300), pytest.mark.xdist_group("chaos")]

PASSING = """
metadata: {name: passing, project: demo}
steps:
  - name: write
    outputs: {letter: out}
    script: |
      mkdir out
      echo "over the counter" > out/letter.txt
      echo written
  - name: read
    inputs: {letter: {from: write.letter, path: in}}
    command: [cat, in/letter.txt]
"""


@dataclass(frozen=True)
class House:
    """Two servers, two schedulers, an agent, and a command line that is logged in."""

    outside: Outside
    urls: tuple[str, str]
    schedulers: tuple[Role, Role]
    cli: Cli


@pytest.fixture(scope="module")
def house() -> Iterator[House]:
    with outside() as there:
        mended = there.command("doctor", "--server", "--fix", "-o", "json")
        assert '"bucket lifecycle"' in mended.stdout, mended.stdout + mended.stderr
        first = there.command("migrate")
        assert first.returncode == 0, first.stderr
        password = first.stdout.partition("one-time password: ")[2].split()[0]
        urls = there.start_server(), there.start_server()
        schedulers = there.start("scheduler"), there.start("scheduler")
        there.start("agent", VERDERER_AGENT_SERVER_URL=urls[0])
        cli = Cli(there.folder / "home")
        cli.log_in(urls[0], password)
        yield House(there, urls, schedulers, cli)


def test_a_run_goes_to_its_end_and_is_read_through_the_other_server(house: House) -> None:
    file = house.outside.folder / "passing.yaml"
    file.write_text(PASSING)
    assert "succeeded" in house.cli("run", str(file), "--watch")
    run = house.cli.read("runs", "--name", "passing")[0]["id"]
    house.cli.environment["VERDERER_URL"] = house.urls[1]
    house.cli.environment["VERDERER_TOKEN"] = token_of(house)
    assert house.cli("logs", f"{run}/write") == "written\n"
    assert house.cli("logs", f"{run}/read") == "over the counter\n"
    target = house.outside.folder / "fetched"
    house.cli("artifacts", f"{run}/write", "download", "--to", str(target))
    found = list(target.rglob("letter.txt"))
    assert [path.read_text() for path in found] == ["over the counter\n"]


def test_nothing_is_left_in_a_folder_of_the_servers(house: House) -> None:
    data = house.outside.folder / "data"
    kept = {path.name for path in data.iterdir()} if data.exists() else set()
    assert kept <= {"local", "agent"}, "only the agent, which has a cluster here, keeps anything"


def test_the_other_scheduler_takes_over(house: House) -> None:
    wait_for(lambda: bool(leaders(house)), 60, f"one leads:\n{house.schedulers[0].said[-2000:]}")
    pid = int(leaders(house)[0].split("-")[-2])
    (leading,) = [one for one in house.schedulers if one.process.pid == pid]
    leading.process.kill()
    file = house.outside.folder / "passing.yaml"
    file.write_text(PASSING.replace("name: passing", "name: after"))
    assert "succeeded" in house.cli("run", str(file), "--watch")


def test_the_doctor_finds_nothing_wrong(house: House) -> None:
    done = house.outside.command("doctor", "--server", "-o", "json")
    found = {one["what"]: one for one in json.loads(done.stdout)}
    assert not [one for what, one in found.items() if one["verdict"] == "fail" and what != "server"]
    assert found["object store"]["detail"].startswith("s3://apart/some/prefix")


def test_a_database_that_goes_away_is_said_and_waited_for(house: House) -> None:
    house.outside.database.stop()
    wait_for(lambda: not answers(f"{house.urls[1]}/readyz"), 60, "it says that it cannot work")
    assert answers(f"{house.urls[1]}/healthz"), "it lives, and must not be restarted for that"
    house.outside.database.start()
    wait_for(lambda: answers(f"{house.urls[1]}/readyz"), 60, "it works again")
    file = house.outside.folder / "passing.yaml"
    file.write_text(PASSING.replace("name: passing", "name: later"))
    assert "succeeded" in house.cli("run", str(file), "--watch")


def leaders(house: House) -> list[str]:
    """Who holds the lease of placement, as far as it was taken at all."""
    query = "SELECT holder FROM leases WHERE name = 'placement'"
    return [str(row["holder"]) for row in asyncio.run(rows(house.outside.dsn, query))]


def token_of(house: House) -> str:
    """What `login` left in the settings of the command line."""
    config = (house.outside.folder / "home/.config/verderer/config.toml").read_text()
    return config.partition('token = "')[2].partition('"')[0]
