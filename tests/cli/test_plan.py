"""Which processes `up` runs, and what it tells them."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from verderer.cli.configuration import load
from verderer.cli.up import plan
from verderer.cli.up.command import Up, up
from verderer.cli.up.role import RoleSpec
from verderer.core.errors import Refusal
from verderer.settings import Settings


def planned(settings: Settings, *, agent: bool = True) -> list[list[RoleSpec]]:
    return plan.stages(settings, {}, agent=agent)


def names(stages: list[list[RoleSpec]]) -> list[list[str]]:
    return [[spec.name for spec in stage] for stage in stages]


def environment(flags: dict[str, object], *, config: Path | None = None) -> dict[str, str]:
    return plan.environment(
        load(environ={}, flags=flags),
        base={"PATH": "/bin"},
        config=config,
        flags=flags,
        text=True,
        colours=False,
    )


def test_everything_runs_on_one_machine_by_default() -> None:
    assert names(planned(Settings())) == [
        ["postgres"],
        ["migrate"],
        ["server", "scheduler"],
        ["agent"],
    ]


def test_with_a_database_elsewhere_none_is_started() -> None:
    settings = load(environ={"VERDERER_DATABASE_URL": "postgresql://db/v"})
    assert names(planned(settings))[0] == ["migrate"]


@pytest.mark.parametrize("how", ["flag", "setting"])
def test_the_local_cluster_can_be_left_out(how: str) -> None:
    given = {"VERDERER_LOCAL_CLUSTER_ENABLED": "false"} if how == "setting" else {}
    stages = planned(load(environ=given), agent=how != "flag")
    assert names(stages)[-1] == ["server", "scheduler"]


def test_no_flag_reaches_a_command_line_where_other_users_would_read_it() -> None:
    secret = "postgresql://u:hunter2@db/v"
    flags: dict[str, object] = {"database.url": secret}
    told = environment(flags)
    assert told["VERDERER_DATABASE_URL"] == secret
    stages = plan.stages(load(environ={}, flags=flags), told, agent=True)
    assert all("hunter2" not in word for stage in stages for spec in stage for word in spec.argv)


def test_roles_read_the_same_settings(tmp_path: Path) -> None:
    config = tmp_path / "own.toml"
    config.write_text("[server]\nport = 1234\n")
    flags: dict[str, object] = {"data_dir": tmp_path / "data", "server.host": "::1"}
    told = environment(flags, config=config)
    settings = load(environ=told)
    assert (settings.data_dir, settings.server.host) == (tmp_path / "data", "::1")
    assert settings.server.port == 1234
    assert settings.local_cluster.enabled
    assert settings.log.format == "text"
    assert told["PATH"] == "/bin"


def test_a_taken_port_is_told_before_anything_starts(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        flags: dict[str, object] = {
            "data_dir": tmp_path,
            "server.port": other.getsockname()[1],
        }
        with pytest.raises(Refusal, match="cannot listen on"):
            up(Up(settings=load(environ={}, flags=flags), config=None, flags=flags))
    assert not (tmp_path / "postgres").exists()
