"""Clusters → Add, and what an admin can do to a cluster."""

from __future__ import annotations

import re

import pytest

from tests.web.conftest import Client, Site, browser, form_token, log_in, make_admin
from verderer.core.credentials import hash_token
from verderer.core.model.actor import Actor, ActorKind
from verderer.store.views.clusters import get_cluster

SYSTEM = Actor(kind=ActorKind.SYSTEM, name="tests", platform_admin=True)


async def state(site: Site, cluster: str) -> str:
    async with site.context.db.reading() as tx:
        found = await get_cluster(tx, SYSTEM.scope, cluster)
    return found.cluster.state if found else "gone"


async def send(client: Client, path: str, **fields: str) -> tuple[int, str]:
    fields["_form"] = await form_token(client, "/clusters/add")
    answer = await client.post(path, data=fields, follow_redirects=False)
    return answer.status_code, answer.text


async def test_an_instance_without_clusters_leads_to_the_page(bare: Site) -> None:
    await make_admin(bare)
    async with browser(bare) as client:
        await log_in(client, "admin@example.org")
        empty = (await client.get("/clusters")).text.partition("No cluster is connected")[2]
        assert 'href="/clusters/add"' in empty


@pytest.mark.parametrize(
    ("kind", "begins"),
    [
        ("kubernetes", "verderer agent install --kubernetes --cluster gpu-east --server"),
        ("slurm", "verderer agent join --kind slurm --server"),
        ("local", "verderer agent join --kind local --server"),
    ],
)
async def test_the_command_is_shown_once_and_its_token_opens_the_cluster(
    admin: Client, site: Site, kind: str, begins: str
) -> None:
    status, page = await send(admin, "/clusters/add", id="gpu-east", kind=kind)
    assert status == 200
    assert begins in page
    (token,) = set(re.findall(r"vrd_j_[A-Za-z0-9_-]+", page))
    async with site.context.db.reading() as tx:
        known = await tx.fetchval("SELECT token_hash FROM join_tokens")
    assert known == hash_token(token)
    assert 'data-live="/clusters/gpu-east/live"' in page, "the page follows the agent"
    assert await state(site, "gpu-east") == "joining"
    assert token not in (await admin.get("/clusters/gpu-east")).text


async def test_what_cannot_be_a_cluster_is_said_beside_what_was_typed(admin: Client) -> None:
    for fields, said in (
        ({"id": "Not a name", "kind": "slurm"}, "Not a name"),
        ({"id": "add", "kind": "slurm"}, "is the name of a page"),
        ({"id": "x", "kind": "nomad"}, "must be one of"),
    ):
        status, page = await send(admin, "/clusters/add", **fields)
        assert 400 <= status < 500
        assert said in page
        assert "vrd_j_" not in page


async def test_a_member_neither_sees_nor_sends_it(ana: Client) -> None:
    assert 'href="/clusters/add"' not in (await ana.get("/clusters")).text
    assert (await ana.get("/clusters/add")).status_code == 403
    fields = {"_form": await form_token(ana, "/runs/new"), "id": "x", "kind": "slurm"}
    assert (await ana.post("/clusters/add", data=fields)).status_code == 403
    answer = await ana.post("/clusters/local/change", data=fields | {"what": "disable"})
    assert answer.status_code == 403


async def test_a_cluster_goes_when_its_id_was_typed(admin: Client, site: Site) -> None:
    await send(admin, "/clusters/add", id="gpu-east", kind="slurm")
    for what in ("remove", "lost"):
        status, _ = await send(admin, "/clusters/gpu-east/change", what=what, typed="gpu-west")
        assert status == 422
        assert await state(site, "gpu-east") == "joining"
    status, _ = await send(admin, "/clusters/gpu-east/change", what="revoke")
    assert (status, await state(site, "gpu-east")) == (303, "never")
    status, _ = await send(admin, "/clusters/gpu-east/change", what="disable")
    assert (status, await state(site, "gpu-east")) == (303, "disabled")
    status, _ = await send(admin, "/clusters/gpu-east/change", what="enable")
    assert (status, await state(site, "gpu-east")) == (303, "never")
    status, _ = await send(admin, "/clusters/gpu-east/change", what="remove", typed="gpu-east")
    assert (status, await state(site, "gpu-east")) == (303, "gone")
