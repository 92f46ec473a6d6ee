"""Settings: where they come from, which wins, what is refused and how it is said."""

from __future__ import annotations

import copy
import pickle
import stat
from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verderer.cli.configuration import known_settings, load
from verderer.cli.data_folder import (
    FirstLogin,
    leave_first_login,
    make_data_folder,
    take_first_login,
    with_secret_key,
    write_private,
)
from verderer.cli.settings_reference import reference
from verderer.core.errors import Invalid, Refusal
from verderer.settings import Secret, SecuritySettings, Settings

GOOD_KEY = "q8Zr2mXv5Lw9Tt3Kc7Jd1Hn4Bf6Ys0Pa"


def toml(folder: Path, text: str, name: str = "verderer.toml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_defaults_need_no_source_at_all(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    settings = load(environ={})
    assert settings == Settings()
    assert settings.data_dir == tmp_path / ".local" / "share" / "verderer"
    assert settings.server.port == 8642
    assert settings.objects_url == str(settings.data_dir / "objects")


def test_a_flag_beats_the_environment_which_beats_the_file(tmp_path: Path) -> None:
    path = toml(tmp_path, "[server]\nhost = 'file'\nport = 1\nworkers = 3\n")
    settings = load(
        config=path,
        environ={"VERDERER_SERVER_HOST": "environment", "VERDERER_SERVER_PORT": "2"},
        flags={"server.port": 3, "server.host": None},
    )
    assert (settings.server.host, settings.server.port) == ("environment", 3)
    assert settings.server.workers == 3


@pytest.mark.parametrize("how", ["flag", "variable", "data folder"])
def test_the_file_is_found(how: str, tmp_path: Path) -> None:
    path = toml(tmp_path, "[log]\nlevel = 'debug'\n")
    environ = {"VERDERER_DATA_DIR": str(tmp_path)}
    if how == "variable":
        environ = {"VERDERER_CONFIG": str(path)}
    settings = load(config=path if how == "flag" else None, environ=environ)
    assert settings.log.level == "debug"


def test_a_file_that_was_named_must_exist(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="there is no settings file"):
        load(config=tmp_path / "missing.toml", environ={})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("[servr]\nport = 1", "did you mean server?", id="a group misspelt"),
        pytest.param("[server]\nprot = 1", "did you mean server.port?", id="a key misspelt"),
        pytest.param("[server]\nport = '80'", None, id="text is read as a number there too"),
        pytest.param(
            "[server]\nport = 'http'", "expected a whole number, not 'http'", id="not a number"
        ),
        pytest.param("[server]\nport = 80.5", "expected a whole number", id="a fraction"),
        pytest.param("[server]\nport = true", "expected a whole number", id="a truth"),
        pytest.param("[server]\nport = 0", "must be at least 1", id="too small"),
        pytest.param("[server]\nport = 70000", "must be at most 65535", id="too large"),
        pytest.param("[scheduler]\nlease_s = nan", "must be at least 0.5", id="no number"),
        pytest.param("[scheduler]\nlease_s = inf", "must be at most 60.0", id="for ever"),
        pytest.param("[server]\nhost = 1", "expected text, not 1", id="a number for text"),
        pytest.param(
            "[log]\nlevel = 'loud'", "expected one of debug, info", id="none of the choices"
        ),
        pytest.param(
            "[metrics]\nenabled = 'maybe'", "expected true or false, not 'maybe'", id="no truth"
        ),
        pytest.param("server = 5", "server in", id="a value where a group belongs"),
        pytest.param("[server\n", "cannot be read", id="no TOML"),
    ],
)
def test_a_file_that_is_not_understood_is_refused(
    text: str, said: str | None, tmp_path: Path
) -> None:
    path = toml(tmp_path, text)
    if said is None:
        load(config=path, environ={})
        return
    with pytest.raises(Invalid) as refused:
        load(config=path, environ={})
    assert said in refused.value.message
    assert str(path) in refused.value.message


def test_all_mistakes_are_told_at_once(tmp_path: Path) -> None:
    path = toml(tmp_path, "[server]\nport = 'x'\nhots = 'y'\n")
    with pytest.raises(Invalid) as refused:
        load(config=path, environ={"VERDERER_LOG_LEVEL": "loud"})
    assert {p.field for p in refused.value.problems} == {
        "server.port",
        "server.hots",
        "log.level",
    }
    assert "from VERDERER_LOG_LEVEL" in refused.value.message


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("VERDERER_SERVR_PORT", "VERDERER_SERVER_PORT"),
        ("VERDERER_DATABASE_URI", "VERDERER_DATABASE_URL"),
    ],
)
def test_a_misspelt_variable_is_refused(name: str, near: str) -> None:
    with pytest.raises(Invalid, match=f"did you mean {near}"):
        load(environ={name: "1"})


@pytest.mark.parametrize(
    "name",
    ["VERDERER_TOKEN", "VERDERER_SERVER", "VERDERER_TEST_DATABASE_URL", "VERDERER_RUN_ID", "PATH"],
)
def test_a_variable_that_is_not_for_us_is_left_alone(name: str) -> None:
    load(environ={name: "anything"})


def test_what_kubernetes_puts_into_every_pod_is_not_a_setting() -> None:
    settings = load(
        environ={
            "VERDERER_SERVER_PORT": "tcp://10.0.0.1:8642",
            "VERDERER_SERVER_SERVICE_HOST": "10.0.0.1",
            "VERDERER_SERVER_PORT_8642_TCP_ADDR": "10.0.0.1",
        }
    )
    assert settings.server.port == 8642


@pytest.mark.parametrize("unset", ["VERDERER_DATABASE_URL", "VERDERER_POSTGRES_PORT"])
def test_an_empty_variable_unsets(unset: str) -> None:
    assert load(environ={unset: ""}) == load(environ={})


def test_a_mistake_in_a_secret_does_not_show_it(tmp_path: Path) -> None:
    path = toml(tmp_path, "[database]\nurl = 31337\n")
    with pytest.raises(Invalid) as refused:
        load(config=path, environ={})
    assert "31337" not in str(refused.value.problems)
    assert "database.url" in refused.value.message


def test_paths_are_absolute_and_know_the_home(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert load(environ={"VERDERER_DATA_DIR": "~/x"}).data_dir == tmp_path / "x"
    assert load(environ={"VERDERER_DATA_DIR": "y"}).data_dir == tmp_path / "y"


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:8642"),
        ("0.0.0.0", "http://127.0.0.1:8642"),
        ("::", "http://[::1]:8642"),
        ("node7", "http://node7:8642"),
    ],
)
def test_this_machine_reaches_the_server_wherever_it_listens(host: str, url: str) -> None:
    assert load(environ={"VERDERER_SERVER_HOST": host}).agent_server_url == url


@given(st.text(min_size=1))
def test_a_secret_is_never_printed(text: str) -> None:
    secret = Secret(f"<<{text}>>")
    for shown in (repr(secret), str(secret), f"{secret}", f"{secret:>20}"):
        assert f"<<{text}>>" not in shown
    assert secret.reveal() == f"<<{text}>>"
    assert secret == Secret(f"<<{text}>>")
    assert secret != Secret("other")


def test_a_secret_is_not_written_by_pickle() -> None:
    with pytest.raises(TypeError):
        pickle.dumps(Secret("x"))
    with pytest.raises(TypeError):
        copy.copy(Secret("x"))


def test_the_redacted_dump_has_every_setting_and_no_secret() -> None:
    settings = load(
        environ={
            "VERDERER_DATABASE_URL": "postgresql://u:hunter2@db/v",
            "VERDERER_OBJECTS_SECRET_KEY": "hunter2",
            "VERDERER_SECURITY_SECRET_KEY": "hunter2",
            "VERDERER_METRICS_TOKEN": "hunter2",
        }
    )
    shown = settings.redacted()
    assert "hunter2" not in repr(shown)
    assert "hunter2" not in repr(settings)
    flat = {
        f"{group}.{name}" if isinstance(inner, dict) else group
        for group, inner in shown.items()
        for name in (inner if isinstance(inner, dict) else [group])
    }
    assert flat == set(known_settings())


def test_settings_do_not_change() -> None:
    with pytest.raises(FrozenInstanceError):
        load(environ={}).server.port = 1  # type: ignore[misc]


def test_every_setting_has_words_and_the_page_is_the_written_one() -> None:
    page = Path(__file__).parents[2] / "docs" / "reference" / "settings.md"
    assert page.read_text(encoding="utf-8") == reference(), (
        "run `python -m verderer.cli.settings_reference`"
    )
    for key in known_settings():
        assert f"### `{key}`\n\n" in reference()
        assert f"### `{key}`\n\n\n" not in reference(), f"{key} has no docstring"


class TestSecretKey:
    def test_it_is_made_once_and_kept_where_only_we_read(self, tmp_path: Path) -> None:
        settings = Settings(data_dir=tmp_path / "data")
        first = with_secret_key(settings).security.secret_key
        assert first is not None
        assert len(first.reveal()) >= 32
        assert with_secret_key(settings).security.secret_key == first
        assert stat.S_IMODE((tmp_path / "data" / "secret.key").stat().st_mode) == 0o600

    def test_a_shared_database_needs_a_shared_key(self, tmp_path: Path) -> None:
        settings = load(
            environ={"VERDERER_DATABASE_URL": "postgresql://db/v"}, flags={"data_dir": tmp_path}
        )
        with pytest.raises(Refusal, match=r"security\.secret_key is not set"):
            with_secret_key(settings)
        write_private(tmp_path / "secret.key", GOOD_KEY)
        assert with_secret_key(settings).security.secret_key == Secret(GOOD_KEY)

    def test_a_given_key_is_taken(self, tmp_path: Path) -> None:
        settings = Settings(
            data_dir=tmp_path, security=SecuritySettings(secret_key=Secret(GOOD_KEY))
        )
        assert with_secret_key(settings) == settings
        assert not (tmp_path / "secret.key").exists()

    @pytest.mark.parametrize(
        ("key", "said"),
        [
            pytest.param("", "has 0 characters", id="empty"),
            pytest.param("short", "has 5 characters", id="short"),
            pytest.param("a" * 40, "placeholder", id="one character"),
            pytest.param("changeme" * 8, "placeholder", id="changeme"),
            pytest.param("please-change-me-1234567890-abcdef", "placeholder", id="a template's"),
        ],
    )
    def test_a_weak_key_is_refused_and_not_shown(self, key: str, said: str, tmp_path: Path) -> None:
        settings = Settings(data_dir=tmp_path, security=SecuritySettings(secret_key=Secret(key)))
        with pytest.raises(Refusal, match=said) as refused:
            with_secret_key(settings)
        assert not key or key not in refused.value.message

    def test_a_key_that_others_can_read_is_refused(self, tmp_path: Path) -> None:
        path = tmp_path / "secret.key"
        path.write_text(GOOD_KEY)
        path.chmod(0o644)
        with pytest.raises(Refusal, match="can be read by others"):
            with_secret_key(Settings(data_dir=tmp_path))


def test_a_data_folder_that_exists_keeps_its_mode(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    make_data_folder(Settings(data_dir=tmp_path))
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o700


def test_a_file_made_by_another_process_first_is_kept(tmp_path: Path) -> None:
    write_private(tmp_path / "secret.key", "first", keep=True)
    write_private(tmp_path / "secret.key", "second", keep=True)
    assert (tmp_path / "secret.key").read_text() == "first\n"
    assert [p.name for p in tmp_path.iterdir()] == ["secret.key"]


def test_the_first_login_is_shown_once(tmp_path: Path) -> None:
    path = tmp_path / "first-login"
    leave_first_login(path, FirstLogin("admin@localhost", "once"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert take_first_login(path) == FirstLogin("admin@localhost", "once")
    assert take_first_login(path) is None
    assert "once" not in repr(FirstLogin("admin@localhost", "once"))
