"""The whole platform behind a pooler in transaction mode."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import asyncpg
import pytest

from tests.chaos.platform import check_rows, wait_for
from tests.e2e import pooler
from tests.e2e.apart import Outside, Role, outside
from tests.e2e.commands import Cli
from verderer.store.database import Database
from verderer.store.wakeups import Wakeups

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(300), pytest.mark.xdist_group("chaos")]

CONNECTIONS = 3
"""Fewer than clients, so that each statement may meet another session than the one before."""
STEPS = 30
WIDE = "metadata: {name: wide, project: demo}\nsteps:\n" + "".join(
    f"- {{name: s{i}, needs: [{f's{i - 5}' if i >= 5 else ''}], script: 'echo line {i}'}}\n"
    for i in range(STEPS)
)


@pytest.fixture(scope="module")
def there() -> Iterator[Outside]:
    program = pooler.find()
    with outside() as made:
        mended = made.command("doctor", "--server", "--fix", "-o", "json")
        assert '"bucket lifecycle"' in mended.stdout, mended.stdout + mended.stderr
        with pooler.pooling(program, made.folder, made.dsn, size=CONNECTIONS) as pooled:
            made.environment["VERDERER_DATABASE_URL"] = pooled
            made.environment["VERDERER_DATABASE_DIRECT_URL"] = made.dsn
            try:
                yield made
            finally:
                for role in reversed(made.roles):
                    role.end()


def test_everything_works(there: Outside) -> None:
    first = there.command("migrate")
    assert first.returncode == 0, first.stderr
    password = first.stdout.partition("one-time password: ")[2].split()[0]
    url = there.start_server()
    schedulers = there.start("scheduler"), there.start("scheduler")
    there.start("agent", VERDERER_AGENT_SERVER_URL=url)
    cli = Cli(there.folder / "home")
    cli.log_in(url, password)
    runs = [cli.submit(there.folder, WIDE) for _ in range(3)]
    for run in runs:
        assert "succeeded" in cli("watch", run)
        assert cli("logs", f"{run}/s29") == "line 29\n"
    asyncio.run(check_rows(there.dsn))
    said = "".join(role.said for role in there.roles)
    assert "prepared statement" not in said
    assert "a pooler stands" not in said
    assert any(leads(one) for one in schedulers)


def test_without_the_direct_address_it_works_too_and_says_what_to_set(there: Outside) -> None:
    plain = {"VERDERER_DATABASE_DIRECT_URL": ""}
    url, role = there.start_server(**plain), there.start("scheduler", **plain)
    cli = Cli(there.folder / "home")
    config = (there.folder / "home/.config/verderer/config.toml").read_text()
    token = config.partition('token = "')[2].partition('"')[0]
    cli.environment |= {"VERDERER_URL": url, "VERDERER_TOKEN": token}
    assert "succeeded" in cli("watch", cli.submit(there.folder, WIDE))
    wait_for(lambda: "database.direct_url" in role.said, 60, "it says what to set")
    assert "a pooler stands before the database" in role.said


def test_news_is_sent_without_touching_how_others_commit(there: Outside) -> None:
    with pooler.pooling(pooler.find(), there.folder, there.dsn, size=1) as pooled:
        assert asyncio.run(commits_with_after_news(there.dsn, pooled)) == "on"


async def commits_with_after_news(dsn: str, pooled: str) -> str:
    """Send news through the only session that there is; how the next client of it commits."""
    db = await Database.open(pooled, size=1)
    wakeups, heard = Wakeups(db), asyncio.Event()
    listener, client = await asyncpg.connect(dsn), await asyncpg.connect(pooled)
    try:
        await listener.add_listener("verderer", lambda *_: heard.set())
        await wakeups.start()
        wakeups.wake(["something"])
        async with asyncio.timeout(30):
            await heard.wait()
        return str(await client.fetchval("SHOW synchronous_commit"))
    finally:
        await wakeups.stop()
        await client.close()
        await listener.close()
        await db.close()


def leads(one: Role) -> bool:
    return '"lease":"placement"' in one.said
