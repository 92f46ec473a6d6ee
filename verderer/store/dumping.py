"""Carries a whole database out and in, by PostgreSQL's own programs."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Final
from urllib.parse import unquote, urlsplit, urlunsplit

import asyncpg

from verderer.core.errors import Conflict, Fault
from verderer.store.connecting import NOT_CONNECTED, not_connected
from verderer.store.embedded.binaries import wheel_folder
from verderer.store.migrate import migrations

_EMPTY: Final = """
    SELECT NOT EXISTS (SELECT FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
                        WHERE c.relkind IN ('r', 'p', 'S')
                          AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast'))
"""
_APPLIED: Final = "SELECT name FROM schema_migrations ORDER BY number"
# Made by whoever runs the server, for which rights are needed that we do not have.
_NOT_OURS: Final = re.compile(r"\bEXTENSION\b")
_WORDS: Final = 1_000


async def server_major(dsn: str) -> int:
    """Of the server that answers there: 15, 16, …"""
    return int(await _ask(dsn, "SELECT current_setting('server_version_num')::int / 10000"))


async def is_empty(dsn: str) -> bool:
    """Whether nobody ever made a table there."""
    return bool(await _ask(dsn, _EMPTY))


async def applied(dsn: str) -> list[str]:
    """Names of the migrations that the database has had.

    Raises:
        Conflict: it has none: it is not a database of ours.
    """
    try:
        connection = await asyncpg.connect(dsn, timeout=15)
    except NOT_CONNECTED as e:
        raise not_connected(e, dsn) from e
    try:
        return [row["name"] for row in await connection.fetch(_APPLIED)]
    except asyncpg.UndefinedTableError as e:
        raise Conflict("the database holds no Verderer", hint="Check database.url.") from e
    finally:
        await connection.close()


def known_migrations() -> set[str]:
    """Names of those that this release has."""
    return {migration.name for migration in migrations()}


def find_program(name: str, major: int, given: Path | None, *, dsn: str) -> str:
    """The oldest `pg_dump` or `pg_restore` here that is not older than version `major`.

    A newer program than need be writes and says things that an older server does not take. The
    programs that came with the package know no TLS, so they are left out where `dsn` asks for it.

    Raises:
        Fault: there is none.
    """
    places = _places(name, given, tls=_wants_tls(dsn))
    found = [(version, path) for path in places if (version := _version(path))]
    fit = sorted((version, path) for version, path in found if version >= major)
    if not fit:
        seen = ", ".join(sorted({str(version) for version, _ in found})) or "none"
        raise Fault(
            f"no {name} of PostgreSQL {major} or later is here (found: {seen})",
            hint=f"Install the client programs of PostgreSQL {major}, or set postgres.bin.",
        )
    return fit[0][1]


def _wants_tls(dsn: str) -> bool:
    return any(f"sslmode={mode}" in urlsplit(dsn).query for mode in ("require", "verify"))


def _places(name: str, given: Path | None, *, tls: bool) -> Iterator[str]:
    folders = [*([given] if given else []), *sorted(Path("/usr/lib/postgresql").glob("*/bin"))]
    if not tls:
        with suppress(Fault):
            folders.append(wheel_folder())
    for folder in folders:
        if (folder / name).is_file():
            yield str(folder / name)
    if found := shutil.which(name):
        yield found


def _version(path: str) -> int:
    try:
        said = subprocess.run(
            [path, "--version"], capture_output=True, text=True, check=False, timeout=30
        )
    except OSError:
        return 0
    found = re.search(r"\(PostgreSQL\) (\d+)", said.stdout)
    return int(found.group(1)) if found else 0


async def dump(dsn: str, to: Path, *, program: str) -> None:
    """Write everything to one file, as it stood at one instant; nobody is kept from working."""
    flags = ["--format=custom", "--no-owner", "--no-privileges", f"--file={to}"]
    await _run([program, *flags, "--dbname", _bare(dsn)], dsn)


async def load(dsn: str, source: Path, *, program: str) -> None:
    """Put everything into an empty database, all of it or nothing.

    Raises:
        Fault: what the program said when it gave up.
    """
    listed = await _run([program, "--list", str(source)])
    lines = [line for line in listed.splitlines() if not _NOT_OURS.search(line)]
    flags = ["--no-owner", "--no-privileges", "--single-transaction", "--exit-on-error"]
    with NamedTemporaryFile("w", prefix="verderer-", suffix=".list") as wanted:
        wanted.write("\n".join(lines) + "\n")
        wanted.flush()
        flags += ["--use-list", wanted.name, "--dbname", _bare(dsn)]
        await _run([program, *flags, str(source)], dsn)


async def _run(command: list[str], dsn: str = "") -> str:
    """Run to the end; the password travels in the environment, which nobody else can read."""
    password = {"PGPASSWORD": unquote(urlsplit(dsn).password or "")} if dsn else {}
    process = await asyncio.create_subprocess_exec(
        *command,
        env=os.environ | password,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    said, complained = await process.communicate()
    if process.returncode:
        words = complained.decode(errors="replace").strip()[:_WORDS]
        raise Fault(f"{Path(command[0]).name} ended with {process.returncode}: {words}")
    return said.decode()


def _bare(dsn: str) -> str:
    """The address without the password."""
    parts = urlsplit(dsn)
    user, at, place = parts.netloc.rpartition("@")
    return urlunsplit(parts._replace(netloc=f"{user.partition(':')[0]}{at}{place}"))


async def _ask(dsn: str, query: str) -> int:
    try:
        connection = await asyncpg.connect(dsn, timeout=15)
    except NOT_CONNECTED as e:
        raise not_connected(e, dsn) from e
    try:
        return int(await connection.fetchval(query))
    finally:
        await connection.close()
