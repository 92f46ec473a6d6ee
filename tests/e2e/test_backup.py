"""A backup is made while everything runs, and put back where there is nothing."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import pytest

from tests.chaos.platform import check_rows, platform, rows, wait_for
from tests.e2e.apart import BUCKET, outside
from tests.e2e.commands import VERDERER, Cli, clean_environment
from tests.e2e.test_apart import PASSING
from tests.rig.folders import reachable_folder
from verderer.objects.store import open_store

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(300), pytest.mark.xdist_group("chaos")]

LONG = "metadata: {name: long, project: demo}\nsteps:\n- {name: a, script: 'sleep 300'}\n"
LATER = "metadata: {name: later, project: demo}\nsteps:\n- {name: a, script: 'echo at last'}\n"


@dataclass(frozen=True)
class Kept:
    """An installation that was backed up: one run was over, one ran and one waited."""

    folder: Path
    environment: Mapping[str, str]
    over: str
    running: str
    waiting: str

    def command(self, *words: str, **changes: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*VERDERER, *words],
            env={**self.environment, **changes},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )


@pytest.fixture(scope="module")
def kept() -> Iterator[Kept]:
    with reachable_folder() as folder:
        environment = clean_environment(folder / "home")
        with platform(folder / "old", environment) as there:
            cli = Cli(folder / "home")
            cli.log_in(there.url, there.one_time_password())
            over = cli.submit(folder, PASSING)
            cli("watch", over)
            running = cli.submit(folder, LONG)
            wait_for(lambda: bool(there.attempts()), 60, "a step runs")
            (scheduler,) = there.role("scheduler")
            scheduler.suspend()
            waiting = cli.submit(folder, LATER)
            made = Kept(folder, environment, over, running, waiting)
            done = made.command("backup", str(folder / "b"), "--data-dir", str(folder / "old"))
            scheduler.resume()
            assert done.returncode == 0, done.stderr
            assert "objects of" in done.stdout
        yield made


def test_everything_is_there_again_and_goes_on(kept: Kept) -> None:
    new = kept.folder / "new"
    done = kept.command("restore", str(kept.folder / "b"), "--data-dir", str(new))
    assert done.returncode == 0, done.stderr
    with platform(new, kept.environment) as there:
        assert "one-time password" not in there.log.read_text(), "the people are there already"
        cli = Cli(kept.folder / "home2")
        token = (kept.folder / "home/.config/verderer/config.toml").read_text()
        token = token.partition('token = "')[2].partition('"')[0]
        cli.environment |= {"VERDERER_URL": there.url, "VERDERER_TOKEN": token}
        here = {kept.over, kept.running, kept.waiting}
        assert {run["id"] for run in cli.read("runs")} == here
        assert cli("logs", f"{kept.over}/read") == "over the counter\n"
        target = kept.folder / "fetched"
        cli("artifacts", f"{kept.over}/write", "download", "--to", str(target))
        found = [path.read_text() for path in target.rglob("letter.txt")]
        assert found == ["over the counter\n"]
        assert "succeeded" in cli("watch", kept.waiting)
        assert cli("logs", f"{kept.waiting}/a") == "at last\n"
        assert cli.state(kept.running) == "failed", "nobody starts it under the same name again"
        lost = "SELECT 1 FROM attempts WHERE state = 'lost' AND number = 1"
        assert len(asyncio.run(rows(there.dsn, lost))) == 1
        asyncio.run(check_rows(there.dsn))
        query = "SELECT actor, detail FROM audit WHERE action = 'installation.restored'"
        (row,) = asyncio.run(rows(there.dsn, query))
        assert row["actor"] == "system:operator"


def test_nothing_is_restored_over_something(kept: Kept) -> None:
    done = kept.command("restore", str(kept.folder / "b"), "--data-dir", str(kept.folder / "old"))
    assert done.returncode == 1
    assert "the database is not empty" in done.stderr
    objects = kept.folder / "other"
    objects.mkdir()
    (objects / "letter").write_text("of somebody else")
    fresh = ("--data-dir", str(kept.folder / "fresh"))
    done = kept.command(
        "restore", str(kept.folder / "b"), *fresh, VERDERER_OBJECTS_URL=str(objects)
    )
    assert done.returncode == 1
    assert "the object store is not empty: it holds letter" in done.stderr
    done = kept.command("backup", str(kept.folder / "b"), "--data-dir", str(kept.folder / "old"))
    assert done.returncode == 1
    assert "is not empty" in done.stderr


def test_a_bucket_is_listed_or_copied_and_an_older_server_has_its_own_programs() -> None:
    with outside() as there:
        assert there.command("doctor", "--server", "--fix").stdout
        assert there.command("migrate").returncode == 0
        store = open_store(there.s3.config(f"s3://{BUCKET}/some/prefix"))
        for name in ("artifacts/a", "artifacts/b"):
            asyncio.run(store.put(name, name.encode()))
        asyncio.run(store.put("tmp/c", b"not for good"))
        listed, copied = there.folder / "listed", there.folder / "copied"
        assert "2 objects" in there.command("backup", str(listed)).stdout
        assert "2 objects" in there.command("backup", str(copied), "--objects").stdout
        other = asyncio.run(make_database(there.dsn, "other"))
        elsewhere = {"VERDERER_OBJECTS_URL": f"s3://{BUCKET}/else"}
        done = there.command("restore", str(copied), VERDERER_DATABASE_URL=other, **elsewhere)
        assert done.returncode == 0, done.stderr
        moved = open_store(there.s3.config(f"s3://{BUCKET}/else"))
        assert asyncio.run(moved.get("artifacts/b")) == b"artifacts/b"
        third = asyncio.run(make_database(there.dsn, "third"))
        asyncio.run(store.delete("artifacts/b"))
        done = there.command("restore", str(listed), VERDERER_DATABASE_URL=third)
        assert done.returncode == 1
        assert "1 objects are missing or not what was written: artifacts/b" in done.stderr
        asyncio.run(store.put("artifacts/b", b"artifacts/b"))
        done = there.command("restore", str(listed), VERDERER_DATABASE_URL=third)
        assert done.returncode == 0, done.stderr


async def make_database(dsn: str, name: str) -> str:
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute(f"CREATE DATABASE {name}")
        return urlunsplit(urlsplit(dsn)._replace(path=f"/{name}"))
    finally:
        await connection.close()


@pytest.mark.parametrize("what", ["manifest.json", "database.dump", "objects.jsonl", "object"])
def test_what_was_damaged_is_refused_by_name(kept: Kept, tmp_path: Path, what: str) -> None:
    subprocess.run(["cp", "-r", str(kept.folder / "b"), str(tmp_path / "b")], check=True)
    place = tmp_path / "b"
    whole = kept.command("restore", str(place), "--check")
    assert whole.returncode == 0, whole.stderr
    first = json.loads((place / "objects.jsonl").read_text().splitlines()[0])["key"]
    victim = place / "objects" / first if what == "object" else place / what
    content = bytearray(victim.read_bytes())
    content[len(content) // 2] ^= 1
    victim.write_bytes(content[:-5] if what == "manifest.json" else content)
    done = kept.command("restore", str(place), "--check")
    assert done.returncode == 1
    assert (first if what == "object" else what) in done.stderr
    assert "Traceback" not in done.stderr
    victim.unlink()
    done = kept.command("restore", str(place), "--data-dir", str(tmp_path / "new"))
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
