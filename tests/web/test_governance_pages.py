"""Governance click by click: a group made, looked at ahead, granted, asked for and decided."""

from __future__ import annotations

import re

from tests.web.conftest import Client, form_token

GROUP = {
    "name": "rg-b",
    "title": "B's own <TPUs>",
    "cluster": "proj-b-tpu",
    "quota": "google.com/tpu: 8\ncpu = 64",
    "labels": "team: proj-b",
    "order": "fair",
}


async def send(client: Client, path: str, data: dict[str, str], page: str = "") -> str:
    token = await form_token(client, page or path)
    answer = await client.post(path, data={"_form": token, **data})
    assert answer.status_code < 500, answer.text
    return answer.text


async def test_a_resource_group_from_its_form_to_a_grant(admin: Client) -> None:
    made = await send(admin, "/governance/groups/new", GROUP)
    assert "B&#39;s own &lt;TPUs&gt;" in made
    assert "team: proj-b" in made
    assert "No project group of yours." in made
    given = await send(
        admin,
        "/governance/groups/rg-b/grants",
        {"team": "default", "kind": "optional", "until": "2099-03-31"},
        page="/governance/groups/rg-b",
    )
    assert "2099" in given
    edit = "/governance/groups/rg-b/edit"
    version = re.search(r'name="version" value="(\d+)"', (await admin.get(edit)).text)
    assert version is not None
    smaller = {**GROUP, "quota": "google.com/tpu: 4", "version": version[1]}
    seen = await send(admin, edit, smaller | {"what": "preview"})
    assert "This is what it would do:" in seen
    assert re.search(r"8.{0,40}→.{0,40}4", seen)
    assert "8" in (await admin.get("/governance/groups/rg-b")).text
    saved = await send(admin, edit, smaller | {"what": "save"})
    assert "google.com/tpu" in saved or "TPU" in saved
    late = await send(admin, edit, smaller | {"what": "save"})
    assert "was changed meanwhile" in late
    taken = await send(
        admin,
        "/governance/groups/rg-b/grants",
        {"team": "default", "what": "take"},
        page="/governance/groups/rg-b",
    )
    assert "No project group of yours." in taken
    gone = await send(
        admin,
        "/governance/groups/rg-b/retire",
        {"typed": "rg-b"},
        page="/governance/groups/rg-b",
    )
    assert "rg-b" not in gone


async def test_what_is_wrong_is_said_at_its_field_and_nothing_is_lost(admin: Client) -> None:
    odd = {**GROUP, "quota": "cpu: many\nwhat is this", "title": "kept as it was"}
    page = await send(admin, "/governance/groups/new", odd)
    assert "<code>quota</code>" in page
    assert "kept as it was" in page
    page = await send(admin, "/governance/groups/new", {**GROUP, "quota": "cpu: many"})
    assert "<code>quota.cpu</code>" in page
    page = await send(admin, "/governance/groups/new", {**GROUP, "cluster": "elsewhere"})
    assert "there is no cluster elsewhere" in page


async def test_access_is_asked_for_and_approved_with_a_note(admin: Client) -> None:
    await send(admin, "/governance/groups/new", {**GROUP, "labels": ""})
    project = (await admin.get("/projects/demo")).text
    assert "/governance/approvals?project=demo&amp;group=rg-b" in project
    asked = await send(
        admin,
        "/governance/approvals",
        {"project": "demo", "group": "rg-b", "reason": "a sweep <b>", "quota": "", "until": ""},
    )
    assert "a sweep &lt;b&gt;" in asked
    assert "1 request waits for a decision." in (await admin.get("/governance")).text
    assert "default asks for access to rg-b" in (await admin.get("/")).text
    number = re.search(r"/governance/approvals/(\d+)", asked)
    assert number is not None
    done = await send(
        admin,
        f"/governance/approvals/{number[1]}",
        {"what": "approved", "note": "until the paper is out"},
        page="/governance/approvals",
    )
    assert "until the paper is out" in done
    assert "optional" in (await admin.get("/projects/demo")).text


async def test_a_team_with_a_member_and_a_project(admin: Client) -> None:
    made = await send(admin, "/governance/teams", {"name": "vision", "title": "Seeing"})
    assert "Seeing" in made
    page = "/governance/teams/vision"
    assert "demo" in await send(admin, page, {"what": "move", "project": "demo"})
    body = {"what": "member", "email": "ana@example.org", "role": "admin"}
    assert "ana@example.org" in await send(admin, page, body)
    assert "Move its projects" not in await send(admin, page, {"what": "remove", **body})
    assert "projects belong to vision" in await send(admin, page, {"what": "delete"})
