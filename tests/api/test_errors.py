"""Problem details: every error says what, where and what helps, and nothing it should not."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import httpx2
import pytest
from litestar import Litestar, get

import verderer
from tests.rig.people import Cast
from verderer.api.app import MAX_BODY, build_app
from verderer.api.codes import CODES
from verderer.api.errors import STATUS, translate
from verderer.api.paging import write_cursor
from verderer.core import errors
from verderer.core.errors import (
    Conflict,
    Fault,
    IllegalMove,
    Invalid,
    NotAllowed,
    NotAuthenticated,
    NotFound,
    Problem,
    Refusal,
    TooLarge,
    TooMany,
    VerdererError,
)
from verderer.usecases.context import Context
from verderer.wire.problems import error_of

PLACE = Problem(message="bad", field="steps[2].cpu", line=7, column=3, hint="try 1")


@pytest.mark.parametrize(
    ("error", "status"),
    [
        pytest.param(NotAuthenticated("m", hint="h"), 401, id="nobody"),
        pytest.param(NotAllowed("m", hint="h"), 403, id="somebody else may"),
        pytest.param(NotFound("m", hint="h"), 404, id="not there"),
        pytest.param(Conflict("m", hint="h"), 409, id="not now"),
        pytest.param(IllegalMove("m", hint="h"), 409, id="not in this state"),
        pytest.param(TooLarge("m", hint="h"), 413, id="too large"),
        pytest.param(Invalid("m", problems=[PLACE], hint="h"), 422, id="malformed"),
        pytest.param(TooMany("m", retry_after_s=1.5, hint="h"), 429, id="too often"),
        pytest.param(Refusal("m", hint="h"), 400, id="refused"),
        pytest.param(Conflict("m", hint="h", code="last_admin"), 409, id="a code of its own"),
    ],
)
def test_a_refusal_is_told_whole_and_our_client_reads_it_back(error: Refusal, status: int) -> None:
    answer = translate(error, lambda: "unused")
    assert answer.status == answer.body.status == status
    assert answer.body.type == f"/problems/{error.code}"
    assert (answer.body.code, answer.body.detail, answer.body.hint) == (error.code, "m", "h")
    assert not answer.body.incident
    back = error_of(
        status,
        answer.encoded(),
        content_type="application/problem+json",
        retry_after=answer.headers.get("Retry-After", ""),
    )
    assert (back.message, back.hint) == ("m", "h")
    if isinstance(error, Invalid):
        assert isinstance(back, Invalid)
        assert back.problems == (PLACE,)
    if isinstance(error, TooMany):
        assert isinstance(back, TooMany)
        assert back.retry_after_s == 1.5
        assert answer.headers["Retry-After"] == "2"


@pytest.mark.parametrize(
    ("error", "status"),
    [
        pytest.param(Fault("host db7 refused secret", hint="see db7"), 503, id="a fault"),
        pytest.param(KeyError("secret"), 500, id="a mistake of ours"),
        pytest.param(RecursionError("secret"), 500, id="a recursion of ours"),
    ],
)
def test_what_broke_stands_in_the_log_alone(error: Exception, status: int) -> None:
    answer = translate(error, lambda: "0123")
    assert answer.status == status
    assert answer.body.incident == "0123"
    for secret in (b"secret", b"db7"):
        assert secret not in answer.encoded()


def test_every_class_of_error_has_a_status_and_its_code_is_explained() -> None:
    classes = [
        c
        for c in vars(errors).values()
        if isinstance(c, type) and issubclass(c, VerdererError) and c is not VerdererError
    ]
    for one in classes:
        assert any(issubclass(one, kind) for kind, _ in STATUS), one
        assert one.code in CODES, one


def codes_in(path: Path) -> set[str]:
    """Codes that a file gives to errors: `code="…"` of a call, `code = "…"` of a class."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        given = isinstance(node, ast.keyword) and node.arg == "code"
        owned = isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "code"
        value = getattr(node, "value", None) if given or owned else None
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            found.add(value.value)
    return found


# Before anybody can ask anything; and the root of the tree, which nobody raises.
NOT_FOR_CLIENTS = {"invalid_objects_config", "error", "no_room"}


def test_every_code_that_can_reach_a_client_is_explained() -> None:
    house = Path(verderer.__file__).parent
    rooms = [house / room for room in ("api", "core", "objects", "usecases", "web")]
    files = [f for room in rooms for f in room.rglob("*.py") if "mlflow" not in f.parts]
    files += [house / "store" / "database.py", *(house / "store" / "tables").rglob("*.py")]
    used = {code: f.name for f in files for code in codes_in(f) if code.islower()}  # else MLflow's
    missing = {c: f for c, f in used.items() if c not in CODES and c not in NOT_FOR_CLIENTS}
    assert not missing, "explain these in api/codes.py"


def test_codes_are_documented_in_words() -> None:
    page = (Path(verderer.__file__).parents[1] / "docs" / "api.md").read_text(encoding="utf-8")
    for code, known in CODES.items():
        assert f"| `{code}` | {known.status} |" in page


@pytest.mark.parametrize(
    ("body", "status", "places"),
    [
        pytest.param(b"", 422, [("", "a body is required")], id="nothing"),
        pytest.param(b"{}", 422, [("name", "is required")], id="a field is missing"),
        pytest.param(b'{"name": 5}', 422, [("name", "Expected `str`, got `int`")], id="a type"),
        pytest.param(b'{"name": "a", "z": 1}', 422, [("z", "is not known here")], id="one more"),
        pytest.param(b"[]", 422, [("", "Expected `object`, got `array`")], id="a list"),
        pytest.param(b"{", 400, [], id="half a document"),
        pytest.param(b'{"name": NaN}', 400, [], id="not a number"),
        pytest.param(b"\xff\xfe", 400, [], id="not UTF-8"),
        pytest.param(b"[" * 100_000, 400, [], id="nested without end"),
        pytest.param(b'{"name":' * 100_000, 400, [], id="objects without end"),
        pytest.param(b"9" * 100_000, 400, [], id="a huge number"),
        pytest.param(b" " * (MAX_BODY + 1), 413, [], id="too many bytes"),
    ],
)
async def test_a_bad_body_is_told_by_field(
    client: httpx2.AsyncClient,
    cast: Cast,
    body: bytes,
    status: int,
    places: list[tuple[str, str]],
) -> None:
    answer = await client.post("/api/v1/projects", content=body, headers=cast.root.bearer)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    found = [(p.get("field", ""), p["message"]) for p in answer.json().get("problems", [])]
    assert found == places


@pytest.mark.parametrize(
    ("query", "field"),
    [
        pytest.param("limit=0", "limit", id="no items"),
        pytest.param("limit=201", "limit", id="too many items"),
        pytest.param("limit=x", "limit", id="not a number"),
        pytest.param("limit=" + "9" * 5000, "limit", id="a huge number"),
        pytest.param("after=%21", "after", id="not a cursor"),
        pytest.param("after=" + "a" * 2000, "after", id="a long cursor"),
        pytest.param("after=bnVsbA", "after", id="a cursor of nothing"),
        pytest.param("after=" + write_cursor(7), "after", id="a cursor of another list"),
        pytest.param("after=" + write_cursor("a\x00"), "after", id="a NUL inside"),
    ],
)
async def test_a_bad_query_is_told_by_field(
    client: httpx2.AsyncClient, cast: Cast, query: str, field: str
) -> None:
    answer = await client.get(f"/api/v1/projects?{query}", headers=cast.root.bearer)
    assert answer.status_code == 422, answer.text
    assert [p["field"] for p in answer.json()["problems"]] == [field]


@pytest.mark.parametrize(
    "path", ["/api/v1/projects/%00", "/api/v1/users/a%00b", "/api/v1/me?x=%00"]
)
async def test_a_nul_character_in_an_address_is_refused(
    client: httpx2.AsyncClient, cast: Cast, path: str
) -> None:
    answer = await client.get(path, headers=cast.root.bearer)
    assert (answer.status_code, answer.json()["code"]) == (400, "malformed")


@get("/breaks", opt={"public": "a test"})
async def breaks() -> str:
    raise RuntimeError("the password is hunter2")


@get("/down", opt={"public": "a test"})
async def down() -> str:
    raise Fault("PostgreSQL at db7 is away", retry_after_s=3.2)


async def test_a_mistake_of_ours_becomes_an_incident(ctx: Context) -> None:
    extra: list[Any] = [breaks, down]
    app: Litestar = build_app(context=ctx, objects=None, grants=None, extra_handlers=extra)  # type: ignore[arg-type]
    transport = httpx2.ASGITransport(app=app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://x") as client:
        answer = await client.get("/breaks")
        assert answer.status_code == 500
        assert "hunter2" not in answer.text
        assert len(answer.json()["incident"]) == 16
        away = await client.get("/down")
        assert away.status_code == 503
        assert away.headers["retry-after"] == "4"
        assert "db7" not in away.text


async def test_unknown_addresses_and_methods_are_problems_too(client: httpx2.AsyncClient) -> None:
    nowhere = await client.get("/nowhere")
    assert (nowhere.status_code, nowhere.json()["code"]) == (404, "not_found")
    wrong = await client.delete("/healthz")
    assert (wrong.status_code, wrong.json()["code"]) == (405, "method_not_allowed")
    assert "GET" in wrong.headers["allow"]


async def test_every_code_is_explained_at_its_address(client: httpx2.AsyncClient) -> None:
    for code, known in CODES.items():
        answer = await client.get(f"/problems/{code}")
        assert answer.json()["title"] == known.title
    assert (await client.get("/problems/nonsense")).status_code == 404
