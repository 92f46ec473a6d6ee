"""The log: one line per event, the same for our events and for libraries', without secrets."""

from __future__ import annotations

import io
import json
import logging
import os
from collections.abc import Iterator

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from verderer.telemetry import logs
from verderer.telemetry.redaction import MASK, redact, redact_text


@pytest.fixture(autouse=True)
def _put_back() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    structlog.reset_defaults()
    structlog.contextvars.clear_contextvars()
    logging.captureWarnings(capture=False)
    root.handlers[:] = handlers
    root.setLevel(level)


def lines(out: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in out.getvalue().splitlines()]


@pytest.fixture
def out() -> io.StringIO:
    return io.StringIO()


def test_an_event_says_who_when_and_how_grave(out: io.StringIO) -> None:
    logs.configure(role="server", stream=out)
    structlog.get_logger().info("placed", run=7, cluster="local")
    [line] = lines(out)
    assert line.pop("timestamp")
    assert line == {
        "event": "placed",
        "level": "info",
        "run": 7,
        "cluster": "local",
        "role": "server",
        "pid": os.getpid(),
    }


def test_the_role_cannot_be_taken_by_a_value(out: io.StringIO) -> None:
    logs.configure(role="server", stream=out)
    structlog.get_logger().info("x", role="agent")
    assert lines(out)[0]["role"] == "server"


def test_what_is_bound_to_the_task_is_in_every_line(out: io.StringIO) -> None:
    logs.configure(role="server", stream=out)
    with structlog.contextvars.bound_contextvars(project="vision"):
        structlog.get_logger().info("x")
    assert lines(out)[0]["project"] == "vision"


def test_below_the_level_nothing_is_written(out: io.StringIO) -> None:
    logs.configure(role="server", level="warning", stream=out)
    structlog.get_logger().info("quiet")
    logging.getLogger("library").info("quiet")
    structlog.get_logger().warning("loud")
    assert [line["event"] for line in lines(out)] == ["loud"]


def test_libraries_take_the_same_road(out: io.StringIO) -> None:
    logs.configure(role="server", stream=out)
    logging.getLogger("uvicorn.error").error("cannot bind %s", "vrd_u_abcdefghijkl")
    [line] = lines(out)
    assert line["event"] == f"cannot bind vrd_u_{MASK}"
    assert (line["logger"], line["level"]) == ("uvicorn.error", "error")


def test_a_second_set_up_replaces_the_first(out: io.StringIO) -> None:
    logs.configure(role="a", stream=io.StringIO())
    logs.configure(role="b", stream=out)
    logging.getLogger("library").warning("once")
    assert [line["role"] for line in lines(out)] == ["b"]


def test_requests_of_libraries_do_not_fill_the_log(out: io.StringIO) -> None:
    logs.configure(role="server", stream=out)
    for name in ("uvicorn.access", "httpx2"):
        logging.getLogger(name).info("GET / 200")
    assert not out.getvalue()


def test_an_exception_is_one_json_line(out: io.StringIO) -> None:
    logs.configure(role="server", stream=out)
    try:
        raise ValueError("password=hunter2")
    except ValueError:
        structlog.get_logger().exception("failed")
    [line] = lines(out)
    assert "ValueError" in str(line["exception"])
    assert "hunter2" not in out.getvalue()


@given(st.text())
def test_a_value_cannot_forge_a_line(text: str) -> None:
    out = io.StringIO()
    logs.configure(role="server", format="text", stream=out, colours=False)
    structlog.get_logger().info(text, value=text)
    written = out.getvalue()
    assert written.count("\n") == 1
    assert "\x1b" not in written


@given(
    st.dictionaries(
        st.text(),
        st.recursive(
            st.none() | st.booleans() | st.floats() | st.text() | st.binary() | st.integers(),
            lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        ),
    )
)
def test_any_value_is_written(values: dict[str, object]) -> None:
    out = io.StringIO()
    logs.configure(role="server", stream=out)
    structlog.get_logger().bind(**{f"k_{k}": v for k, v in values.items()}).info("x")
    assert len(lines(out)) == 1


@pytest.mark.parametrize(
    "key",
    [
        "token",
        "api_token",
        "tokens",
        "password",
        "newPassword",
        "AUTHORIZATION",
        "secret_key",
        "client-secret",
        "set-cookie",
        "credential",
        "access_key",
        "apiKey",
    ],
)
def test_a_value_is_masked_by_its_name(key: str) -> None:
    assert redact(None, "info", {key: "hunter2"}) == {key: MASK}
    assert redact(None, "info", {"x": [{key: "hunter2"}]}) == {"x": [{key: MASK}]}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("vrd_a_Zm9vYmFyYmF6", f"vrd_a_{MASK}", id="an agent's token"),
        pytest.param("see vrd_Zm9vYmFyYmF6.", f"see vrd_{MASK}.", id="a token in a sentence"),
        pytest.param("Bearer abcdefgh12", f"Bearer {MASK}", id="a header"),
        pytest.param(
            "postgresql://verderer:pw@db/x", f"postgresql://verderer:{MASK}@db/x", id="an address"
        ),
        pytest.param("/o?exp=1&signature=abc&x=1", f"/o?exp=1&signature={MASK}&x=1", id="a link"),
        pytest.param("eyJhbGci.eyJzdWIi.c2ln", MASK, id="a JWT"),
        pytest.param("run 12 of vrd_", "run 12 of vrd_", id="no secret at all"),
    ],
)
def test_a_value_is_masked_by_its_looks(text: str, shown: str) -> None:
    assert redact_text(text) == shown
    assert redact(None, "info", {"x": (text,)}) == {"x": [shown]}


@pytest.mark.parametrize("event", [{"tokens": 512}, {"password_age_s": 3.5}, {"token": None}])
def test_a_number_is_no_secret(event: dict[str, object]) -> None:
    assert redact(None, "info", dict(event)) == event
