"""Every route of runs, pipelines and clusters × every caller."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from tests.api.platform import CHAIN, ONE, Platform
from tests.usecases.world import OK
from verderer.api.docs import document
from verderer.api.workloads import workload_handlers
from verderer.core.model.ids import run_id_text

UNKNOWN = "0000000000000"
NO_SUCH = "no such run"
CALLERS = ("stranger", "member", "reader", "admin", "root")

# What `member` of the project gets; readers may only read, strangers find nothing.
OF_A_RUN: list[tuple[str, str, Any, int]] = [
    ("GET", "", None, 200),
    ("GET", "/steps", None, 200),
    ("GET", "/steps/only", None, 200),
    ("GET", "/steps/only/why", None, 200),
    ("GET", "/steps/only/logs", None, 200),
    ("GET", "/why", None, 200),
    ("GET", "/events", None, 200),
    ("GET", "/artifacts", None, 200),
    ("GET", "/artifacts/0/1/model/files", None, 200),
    ("GET", "/artifacts/0/1/model/content", None, 200),
    ("GET", "/artifacts/0/1/model/archive", None, 422),
    ("GET", "/watch", None, 200),
    ("POST", "/cancel", None, 409),
    ("POST", "/retry", {}, 409),
    ("POST", "/clone", {}, 201),
]


def of_the_rest(cluster: str) -> list[tuple[str, str, Any, dict[str, int]]]:
    submit = {"pipeline": ONE, "project": "ours"}

    def everybody(status: int, **others: int) -> dict[str, int]:
        return dict.fromkeys(CALLERS, status) | others

    return [
        ("POST", "/runs", submit, everybody(201, stranger=404, reader=403)),
        (
            "POST",
            "/runs/batch",
            {"runs": [submit]},
            everybody(200, reader=403),
        ),
        ("GET", "/runs", None, everybody(200)),
        ("POST", "/pipelines/validate", {"pipeline": ONE}, everybody(200)),
        ("GET", "/clusters", None, everybody(200)),
        ("GET", f"/clusters/{cluster}", None, everybody(200)),
        ("POST", f"/clusters/{cluster}/disable", None, everybody(403, root=200)),
        ("POST", f"/clusters/{cluster}/enable", None, everybody(403, root=200)),
        ("POST", "/clusters", {"id": "fresh", "kind": "slurm"}, everybody(403, root=201)),
        ("POST", "/clusters/fresh/lost", None, everybody(403, root=200)),
        ("DELETE", "/clusters/fresh/agent", None, everybody(403, root=204)),
        ("DELETE", "/clusters/fresh/agent", None, everybody(403, root=404)),
        ("DELETE", "/clusters/fresh", None, everybody(403, root=204)),
    ]


async def finished_run(platform: Platform) -> str:
    run = await platform.submit(ONE)
    key = (await platform.start())[0]
    await platform.write_log(key, b"the secret of ours\n")
    where = "artifacts/1/x/0/1/model"
    await platform.objects.put(where, b"weights")
    await platform.end(key, OK, outputs=[("model", where, 7, 1, "")])
    return run


async def test_a_run_is_reached_by_its_project_alone(platform: Platform) -> None:
    run = await finished_run(platform)
    for method, path, body, status in OF_A_RUN:
        for name in CALLERS:
            person = getattr(platform.cast, name)
            answer = await platform.ask(person, method, f"/runs/{run}{path}", body)
            expected = status
            if name == "stranger":
                expected = 404
            elif name == "reader" and method == "POST":
                expected = 403
            assert answer.status_code == expected, f"{name} {method} {path}: {answer.text}"
            if name == "stranger":
                assert "secret" not in answer.text
                assert "ours" not in answer.text


async def test_a_run_of_others_and_no_run_look_the_same(platform: Platform) -> None:
    run = await finished_run(platform)
    for method, path, body, _ in OF_A_RUN:
        for text in (UNKNOWN, "x", "zzzzzzzzzzzzz", run.upper() + "x"):
            theirs = await platform.ask(platform.cast.stranger, method, f"/runs/{run}{path}", body)
            none = await platform.ask(platform.cast.stranger, method, f"/runs/{text}{path}", body)
            assert (theirs.status_code, theirs.json()) == (none.status_code, none.json()), path
            assert NO_SUCH in theirs.json()["detail"]


async def test_the_other_routes_answer_each_caller_as_they_should(platform: Platform) -> None:
    for method, path, body, expected in of_the_rest("local"):
        for name in CALLERS:
            answer = await platform.ask(getattr(platform.cast, name), method, path, body)
            assert answer.status_code == expected[name], f"{name} {method} {path}: {answer.text}"
    batch = {"runs": [{"pipeline": ONE, "project": "ours"}]}
    answer = await platform.ask(platform.cast.stranger, "POST", "/runs/batch", batch)
    assert answer.json()["items"][0]["status"] == 404


async def test_nobody_and_agents_get_nothing(platform: Platform) -> None:
    run = await finished_run(platform)
    routes = [(m, f"/runs/{run}{p}", b) for m, p, b, _ in OF_A_RUN]
    routes += [(m, p, b) for m, p, b, _ in of_the_rest("local")]
    agent = {"authorization": f"Bearer {platform.cast.agent}"}
    for method, path, body in routes:
        for headers, status in (({}, 401), (agent, 403)):
            answer = await platform.client.request(
                method, f"/api/v1{path}", json=body, headers=headers
            )
            assert answer.status_code == status, f"{method} {path}"


async def test_lists_hold_nothing_of_others(platform: Platform) -> None:
    run = await finished_run(platform)
    stranger = platform.cast.stranger
    for query in ({}, {"q": run}, {"name": "one"}, {"cluster": "local"}, {"state": "succeeded"}):
        answer = await platform.ask(stranger, "GET", "/runs", params=query)
        assert answer.json()["items"] == [], query
    await platform.submit(CHAIN)
    await platform.start()
    seen = await platform.ask(stranger, "GET", "/clusters/local")
    assert seen.json()["live"] == []
    own = await platform.ask(platform.cast.member, "GET", "/clusters/local")
    assert [one["step"] for one in own.json()["live"]] == ["first"]


async def test_a_key_of_one_project_gives_nothing_to_another(platform: Platform) -> None:
    key = {"Idempotency-Key": "same"}
    body = {"pipeline": ONE}
    ours = await platform.ask(
        platform.cast.member, "POST", "/runs", body | {"project": "ours"}, headers=key
    )
    theirs = await platform.ask(
        platform.cast.stranger, "POST", "/runs", body | {"project": "theirs"}, headers=key
    )
    assert (ours.status_code, theirs.status_code) == (201, 201)
    assert ours.json()["id"] != theirs.json()["id"]


def test_these_tables_ask_every_route(platform: Platform) -> None:
    def shape(path: str) -> str:
        path = re.sub(r"/runs/\{[^}]*\}", "/runs/*", path)
        path = re.sub(r"(steps|artifacts|clusters)/[^/]+", r"\1/*", path)
        return re.sub(r"artifacts/\*/[^/]+/[^/]+", "artifacts/*", path)

    asked = {f"{m} {shape('/runs/{run}' + p)}" for m, p, _, _ in OF_A_RUN}
    asked |= {f"{m} {shape(p)}" for m, p, _, _ in of_the_rest("local")}
    routes = {
        f"{method} {shape(path)}"
        for router in workload_handlers()
        for handler in router.route_handler_method_map.items()  # type: ignore[union-attr]
        for path in [handler[0].removeprefix("/api/v1")]
        for method, one in handler[1].items()
        if method != "OPTIONS" and "public" not in getattr(one, "opt", {})
    }
    assert routes == asked


def test_the_document_describes_every_route_with_examples(platform: Platform) -> None:
    drawn = document(platform.app)
    OpenAPIV31SpecValidator(drawn).validate()
    for path in ("/api/v1/runs", "/api/v1/runs/batch", "/api/v1/pipelines/validate"):
        body = drawn["paths"][path]["post"]["requestBody"]["content"]["application/json"]
        assert body["schema"]["examples"], path
    for path, item in drawn["paths"].items():
        for operation in item.values():
            assert operation.get("summary"), path
    query = {p["name"] for p in drawn["paths"]["/api/v1/runs"]["get"]["parameters"]}
    assert query == {
        "state",
        "project",
        "name",
        "actor",
        "cluster",
        "label",
        "q",
        "order",
        "limit",
        "after",
    }
    assert json.dumps(drawn).count("Idempotency-Key") >= 3


@pytest.mark.parametrize("run", [1, (1 << 63) - 1])
async def test_any_number_written_as_an_id_is_only_not_found(platform: Platform, run: int) -> None:
    answer = await platform.ask(platform.cast.root, "GET", f"/runs/{run_id_text(run)}")
    assert answer.status_code == 404
