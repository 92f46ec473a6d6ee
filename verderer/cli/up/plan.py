"""Which processes this product has, in which order they start, and how each is known ready."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from verderer.cli.configuration import CONFIG_VARIABLE, known_settings
from verderer.cli.up.role import COLOURS_VARIABLE, Answers, Exits, RoleSpec, Says
from verderer.settings import Settings

FIRST_LOGIN = "first-login"

_DATABASE_STOPS_WITHIN_S = 40.0


def environment(
    settings: Settings,
    *,
    base: Mapping[str, str],
    config: Path | None,
    flags: Mapping[str, object],
    text: bool,
    colours: bool,
) -> dict[str, str]:
    """The environment of every role: flags travel here, since a command line is public."""
    known = known_settings()
    given = {known[key].variable: str(value) for key, value in flags.items() if value is not None}
    if config is not None:
        given[CONFIG_VARIABLE] = str(config.expanduser().absolute())
    if settings.local_cluster.enabled is None:
        given[known["local_cluster.enabled"].variable] = "true"
    return {
        **base,
        **given,
        known["data_dir"].variable: str(settings.data_dir),
        known["log.format"].variable: "text" if text else "json",
        "PYTHONUNBUFFERED": "1",
        **({COLOURS_VARIABLE: "1"} if colours else {}),
    }


def stages(
    settings: Settings, environment: Mapping[str, str], *, agent: bool
) -> list[list[RoleSpec]]:
    """The processes, grouped by what must be ready before them."""

    def role(name: str, *words: str) -> tuple[str, ...]:
        # -P: a module in the folder that we happen to start in must not take a library's place.
        return (sys.executable, "-P", "-m", "verderer.cli.main", name, *words)

    first_login = str(settings.data_dir / FIRST_LOGIN)
    database = RoleSpec(
        name="postgres",
        argv=role("postgres"),
        ready=Says(),
        environment=environment,
        stop_within_s=_DATABASE_STOPS_WITHIN_S,
    )
    # Nobody else uses a database of our own.
    post = ("--post",) if settings.database.url is None else ()
    migrate = RoleSpec(
        name="migrate",
        argv=role("migrate", *post, "--first-login", first_login),
        ready=Exits(),
        environment=environment,
        early=True,
    )
    server = RoleSpec(
        name="server",
        argv=role("server"),
        ready=Answers(f"{settings.local_url}/readyz"),
        environment=environment,
        early=True,
        stop_within_s=settings.server.stop_within_s + 5.0,
    )
    scheduler = RoleSpec(
        name="scheduler", argv=role("scheduler"), environment=environment, early=True
    )
    local_agent = RoleSpec(name="agent", argv=role("agent"), environment=environment, early=True)
    return [
        *([[database]] if settings.database.url is None else []),
        [migrate],
        [server, scheduler],
        *([[local_agent]] if agent and settings.local_cluster.enabled is not False else []),
    ]
