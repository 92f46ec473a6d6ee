"""Fixtures of every room. Nothing starts before a test asks for it."""

from __future__ import annotations

import re
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import structlog
from xdist.scheduler import LoadScopeScheduling

from tests.rig.folders import reachable_folder
from tests.rig.postgres import own_database
from tests.rig.rows import Rows
from verderer.store.database import Database
from verderer.store.embedded.launcher import EmbeddedPostgres, Launch

# A shared machine is slow when it likes: that says nothing about the code under test.
hypothesis.settings.register_profile(
    "shared-machine", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("shared-machine")


@pytest.fixture(autouse=True)
def own_log() -> Iterator[None]:
    """What is logged goes where pytest shows it for a failed test, never to a command's output.

    Undoes what a test before did to the process's log.
    """
    structlog.reset_defaults()
    structlog.configure(logger_factory=structlog.WriteLoggerFactory(sys.__stderr__))
    yield
    structlog.reset_defaults()


@pytest.fixture(scope="session")
def migrated() -> Iterator[tuple[str, Rows]]:
    """This process's database, at the newest schema, and the means to clean it."""
    with own_database() as dsn:
        rows = Rows(dsn)
        try:
            rows.migrate()
            yield dsn, rows
        finally:
            rows.close()


@pytest.fixture
def dsn(migrated: tuple[str, Rows]) -> str:
    """The address of a database that holds what migrations put there and nothing else.

    It is cleaned before the test, not after: what a failed test left can be looked at.
    """
    address, rows = migrated
    rows.clean()
    return address


@pytest.fixture
async def database(dsn: str) -> AsyncIterator[Database]:
    """The same, opened."""
    opened = await Database.open(dsn, application="tests")
    try:
        yield opened
    finally:
        await opened.close()


@pytest.fixture
def folder() -> Iterator[Path]:
    """A temporary folder with a short path that the database's own user can reach too."""
    with reachable_folder() as made:
        yield made


@pytest.fixture
def start_postgres() -> Iterator[Callable[[Path, Mapping[str, str]], EmbeddedPostgres]]:
    """Start a server of the test's own, for tests that kill it or need other settings."""
    with ExitStack() as servers:

        def start(state: Path, options: Mapping[str, str]) -> EmbeddedPostgres:
            return servers.enter_context(EmbeddedPostgres(state, Launch(options=options)))

        yield start


class Grouped(LoadScopeScheduling):
    """Tests of one `xdist_group` go to one worker, the rest wherever there is room.

    xdist writes the group behind a test's id, where pytest 9.2 does not read it any more; so it
    is taken from the module that marks itself.
    """

    def _split_scope(self, nodeid: str) -> str:
        return _group_of(self.config.rootpath / nodeid.partition("::")[0]) or nodeid


@cache
def _group_of(module: Path) -> str:
    found = re.search(r'xdist_group\("(\w+)"\)', module.read_text(encoding="utf-8"))
    return found.group(1) if found else ""


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling:
    return Grouped(config, log)
