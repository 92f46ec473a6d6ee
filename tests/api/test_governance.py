"""Every route of governance × every caller, and what the documents say."""

from __future__ import annotations

import re
from typing import Any

from tests.api.platform import ONE, Platform
from verderer.api.workloads import governance_handlers

CALLERS = ("stranger", "member", "reader", "admin", "root")
ASK = {"project": "ours", "resource_group": "fresh", "reason": "a sweep over the summer"}


def everybody(status: int, **others: int) -> dict[str, int]:
    return dict.fromkeys(CALLERS, status) | others


def for_root(status: int) -> dict[str, int]:
    return everybody(403, root=status)


TABLE: list[tuple[str, str, Any, dict[str, int]]] = [
    ("POST", "/resource-groups", {"name": "fresh"}, for_root(201)),
    ("GET", "/resource-groups", None, everybody(200)),
    ("GET", "/resource-groups/fresh", None, everybody(200)),
    ("POST", "/resource-groups/fresh/preview", {}, for_root(200)),
    ("PUT", "/resource-groups/fresh", {}, for_root(200)),
    ("PUT", "/resource-groups/fresh/grants/default", {"kind": "optional"}, for_root(200)),
    ("DELETE", "/resource-groups/fresh/grants/default", None, for_root(204)),
    ("GET", "/projects/ours/resource-groups", None, everybody(200, stranger=404)),
    (
        "POST",
        "/approvals",
        ASK,
        everybody(409, stranger=404, member=201, reader=403),
    ),
    ("GET", "/approvals", None, everybody(200)),
    ("POST", "/approvals/1/approve", {}, everybody(403, root=200)),
    ("POST", "/approvals/1/deny", {}, everybody(403, root=409)),
    ("POST", "/approvals/1/withdraw", {}, everybody(404, member=409, reader=403, root=409)),
    ("DELETE", "/resource-groups/fresh", None, for_root(204)),
    ("GET", "/project-groups", None, everybody(200)),
    ("POST", "/project-groups", {"name": "team"}, for_root(201)),
    ("GET", "/project-groups/team", None, everybody(404, root=200)),
    ("PUT", "/project-groups/team/members/{who}", {"role": "member"}, for_root(200)),
    ("GET", "/project-groups/team/members", None, everybody(404, root=200)),
    ("DELETE", "/project-groups/team/members/{who}", None, for_root(204)),
    ("PUT", "/project-groups/default/projects/ours", None, for_root(200)),
    ("DELETE", "/project-groups/team", None, for_root(204)),
]


async def test_each_caller_gets_what_the_table_says(platform: Platform) -> None:
    number = 0
    for method, path, body, expected in TABLE:
        for name in CALLERS:
            person = getattr(platform.cast, name)
            to = path.replace("{who}", platform.cast.member.email)
            to = to.replace("/approvals/1/", f"/approvals/{number}/")
            answer = await platform.ask(person, method, to, body)
            assert answer.status_code == expected[name], f"{name} {method} {to}: {answer.text}"
            if to == "/approvals" and answer.status_code == 201:
                number = answer.json()["id"]


async def test_nobody_and_agents_get_nothing(platform: Platform) -> None:
    agent = {"authorization": f"Bearer {platform.cast.agent}"}
    for method, path, body, _ in TABLE:
        for headers, status in (({}, 401), (agent, 403)):
            answer = await platform.client.request(
                method, f"/api/v1{path}", json=body, headers=headers
            )
            assert answer.status_code == status, f"{method} {path}"


def test_the_table_asks_every_route(platform: Platform) -> None:
    def shape(path: str) -> str:
        path = re.sub(r"\{[^}]*\}", "*", path)
        return re.sub(
            r"(resource-groups|project-groups|grants|members|projects|approvals)/[^/]+",
            r"\1/*",
            path,
        )

    asked = {f"{m} {shape(p)}" for m, p, _, _ in TABLE}
    routes = {
        f"{method} {shape(path.removeprefix('/api/v1'))}"
        for router in governance_handlers()
        for path, methods in router.route_handler_method_map.items()  # type: ignore[union-attr]
        for method in methods
        if method != "OPTIONS"
    }
    assert routes == asked


async def test_the_case_of_two_teams_and_a_common_group(platform: Platform) -> None:
    root, member, stranger = platform.cast.root, platform.cast.member, platform.cast.stranger

    async def done(method: str, path: str, body: Any = None) -> Any:
        answer = await platform.ask(root, method, path, body)
        assert answer.status_code < 300, answer.text
        return answer.json() if answer.content else None

    for team, project in (("b", "ours"), ("c", "theirs")):
        await done("POST", "/project-groups", {"name": team})
        await done("PUT", f"/project-groups/{team}/projects/{project}")
        body = {
            "name": f"rg-{team}",
            "clusters": ["local"],
            "labels": {"team": f"proj-{team}"},
            "quota": {"cpu": "2", "nvidia.com/gpu": "8"},
        }
        await done("POST", "/resource-groups", body)
        await done("PUT", f"/resource-groups/rg-{team}/grants/{team}", {"kind": "default"})
    await done("POST", "/resource-groups", {"name": "common"})

    def labelled(team: str) -> str:
        return ONE.replace("name: one", f"name: one, labels: {{team: proj-{team}}}")

    good = await platform.ask(member, "POST", "/runs", {"pipeline": labelled("b")})
    assert good.status_code == 201, good.text
    run = await platform.ask(member, "GET", f"/runs/{good.json()['id']}")
    assert run.json()["resource_group"] == "rg-b"
    for document, asked, code in (
        (labelled("c"), "", "label_policy"),
        (ONE, "", "label_policy"),
        (labelled("b"), "rg-c", "not_granted"),
        (labelled("b"), "common", "not_granted"),
    ):
        body = {"pipeline": document, "project": "ours", "resource_group": asked}
        answer = await platform.ask(member, "POST", "/runs", body)
        assert (answer.status_code, answer.json()["code"]) == (403, code), answer.text
        assert answer.json()["hint"]
    seen = await platform.ask(member, "GET", "/projects/ours/resource-groups")
    kinds = {one["name"]: one["kind"] for one in seen.json()["items"]}
    assert kinds == {"rg-b": "default", "rg-c": None, "common": None, "everything": None}
    asked = await platform.ask(member, "POST", "/approvals", ASK | {"resource_group": "common"})
    await done("POST", f"/approvals/{asked.json()['id']}/approve", {"note": "for now"})
    body = {"pipeline": ONE, "resource_group": "common"}
    assert (await platform.ask(member, "POST", "/runs", body)).status_code == 201
    theirs = await platform.ask(stranger, "GET", "/resource-groups/rg-b")
    assert theirs.json()["grants"] == [], "whom others' groups are granted to is theirs to know"
    assert (await platform.ask(stranger, "GET", "/approvals")).json()["items"] == []


async def test_what_is_wrong_is_named_field_by_field(platform: Platform) -> None:
    body = {
        "name": "odd",
        "quota": {"cpu": "-1", "bad name!": "1", "nvidia.com/gpu": "0.5"},
        "labels": {"team": "not a value"},
        "order": "random",
    }
    answer = await platform.ask(platform.cast.root, "POST", "/resource-groups", body)
    assert answer.status_code == 422
    fields = {problem["field"] for problem in answer.json()["problems"]}
    assert fields == {
        "quota.cpu", "quota.bad name!", "quota.nvidia.com/gpu", "labels.team", "order"
    }  # fmt: skip


async def test_a_role_in_a_group_counts_in_each_of_its_projects(platform: Platform) -> None:
    root, stranger = platform.cast.root, platform.cast.stranger
    assert (await platform.ask(stranger, "GET", "/projects/ours")).status_code == 404
    path = f"/project-groups/default/members/{stranger.email}"
    answer = await platform.ask(root, "PUT", path, {"role": "admin"})
    assert answer.status_code == 200, answer.text
    assert (await platform.ask(stranger, "GET", "/projects/ours")).status_code == 200
    member = f"/projects/ours/members/{stranger.email}"
    assert (await platform.ask(stranger, "PUT", member, {"role": "member"})).status_code == 200
    await platform.ask(root, "DELETE", path)
    assert (await platform.ask(stranger, "GET", "/projects/ours")).status_code == 200
    assert (await platform.ask(stranger, "PUT", member, {"role": "admin"})).status_code == 403
