"""Every page answers, says what it must, and nothing to those whom it does not concern."""

from __future__ import annotations

import html
import io
import re
import zipfile

import pytest

from tests.web.conftest import Client, Login, Site, browser, log_in, make_admin
from verderer.core.model.ids import run_id_text

PATHS = (
    "/",
    "/runs",
    "/runs?q=state:failed team:nlp",
    "/runs?q=zzz",
    "/runs?order=oldest&columns=id,labels",
    "/runs/new",
    "/clusters",
    "/clusters/local",
    "/clusters/proj-b-tpu",
    "/projects",
    "/projects/demo",
    "/governance",
    "/governance/groups/everything",
    "/governance/groups/everything/edit",
    "/governance/groups/new",
    "/governance/approvals",
    "/governance/teams",
    "/governance/teams/default",
    "/settings",
    "/settings/users",
    "/password",
)
TABS = ("", "/steps", "/metrics", "/artifacts", "/yaml", "/events")


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("language", ["en", "zh-CN"])
async def test_pages_answer_in_both_languages(admin: Client, path: str, language: str) -> None:
    answer = await admin.get(path, headers={"accept-language": language})
    assert answer.status_code == 200
    lang = "en" if language == "en" else "zh-Hans"
    assert f'<html lang="{lang}"' in answer.text
    assert "script-src 'self'" in answer.headers["content-security-policy"]


@pytest.mark.parametrize("tab", TABS)
@pytest.mark.parametrize("name", ["lr-sweep", "nightly-eval", "pretrain-tpu"])
async def test_every_view_of_a_run_answers(admin: Client, site: Site, name: str, tab: str) -> None:
    answer = await admin.get(site.run(name) + tab)
    assert answer.status_code == 200
    assert name in answer.text


@pytest.mark.parametrize("path", PATHS)
async def test_who_is_not_logged_in_is_sent_to_the_login(anybody: Client, path: str) -> None:
    answer = await anybody.get(path, follow_redirects=False)
    assert answer.status_code == 303
    assert answer.headers["location"].startswith("/login")


async def test_no_page_carries_inline_scripts_or_styles(admin: Client, site: Site) -> None:
    for path in (*PATHS, site.run("digits"), site.run("digits") + "/metrics"):
        text = (await admin.get(path)).text
        assert not re.search(r"<script(?![^>]*(src=|application/json))", text), path
        assert not re.search(r"\s(style|onclick|onload)=", text), path


async def test_a_waiting_step_says_why_with_numbers(admin: Client, site: Site) -> None:
    text = html.unescape((await admin.get(site.run("llm-finetune"))).text)
    assert "asks 8 NVIDIA GPUs; 5 of 40 are free" in text
    assert "3 more NVIDIA GPUs free would start it" in text
    assert "its agent has been silent for 4 min" in text
    assert "this cluster has none" in text


async def test_a_step_on_a_silent_cluster_is_unknown(admin: Client, site: Site) -> None:
    text = (await admin.get(site.run("pretrain-tpu"))).text
    assert "proj-b-tpu is silent, so nobody knows how this step is" in text


async def test_a_failed_step_is_selected_and_says_how_it_ended(admin: Client, site: Site) -> None:
    text = (await admin.get(site.run("nightly-eval"))).text
    assert "exited with code 1: ValueError" in text
    assert "Retry failed" in text


async def test_a_large_matrix_is_one_box(admin: Client, site: Site) -> None:
    text = (await admin.get(site.run("lr-sweep"))).text
    assert text.count('class="node ') == 3
    assert "198 instances of the matrix" in text


async def test_htmx_gets_the_block_that_it_asks_for(admin: Client, site: Site) -> None:
    headers = {"hx-request": "true", "hx-target": "live"}
    text = (await admin.get(site.run("digits"), headers=headers)).text
    assert text.lstrip().startswith('<div id="live"')
    assert "<html" not in text


async def test_members_see_their_projects_alone(ana: Client, site: Site) -> None:
    listed = (await ana.get("/runs")).text
    assert "lr-sweep" in listed
    assert "llm-finetune" not in listed
    for path in (site.run("llm-finetune"), site.run("llm-finetune") + "/yaml", "/projects/llm"):
        assert (await ana.get(path)).status_code == 404
    assert (await ana.get("/settings/users")).status_code == 403
    assert "llm" not in (await ana.get("/runs/export.csv")).text


async def test_lists_go_on_by_key(admin: Client) -> None:
    text = (await admin.get("/runs?q=digits")).text
    assert text.count('<a class="whole"') > 1
    assert "Next page" not in text


@pytest.mark.parametrize("kind", ["csv", "json"])
async def test_a_list_can_be_exported(admin: Client, site: Site, kind: str) -> None:
    answer = await admin.get(f"/runs/export.{kind}?q=state:running")
    assert answer.status_code == 200
    assert "attachment" in answer.headers["content-disposition"]
    assert run_id_text(site.runs["lr-sweep"]) in answer.text
    if kind == "json":
        assert {run["state"] for run in answer.json()} == {"running"}


@pytest.mark.parametrize(
    "path", ["/nope", "/runs/nope", "/clusters/nope", "/runs/new/nope", "/settings/x"]
)
async def test_nothing_is_there(admin: Client, path: str) -> None:
    answer = await admin.get(path)
    assert answer.status_code == 404
    assert "Nothing is here" in answer.text


async def test_unknown_addresses_below_the_api_are_not_pages(admin: Client) -> None:
    answer = await admin.get("/api/v1/nope")
    assert answer.status_code == 404
    assert "json" in answer.headers["content-type"]


async def test_an_artifact_is_downloaded_as_it_was_stored(ana: Client, site: Site) -> None:
    answer = await ana.get(site.run("digits") + "/artifacts/4/1/report.json")
    assert answer.status_code == 200
    assert answer.content == b'{"accuracy": 0.97}'
    assert "attachment" in answer.headers["content-disposition"]
    assert (await ana.get(site.run("digits") + "/artifacts/4/1/other")).status_code == 404


async def test_a_folder_is_downloaded_as_one_zip(ana: Client, site: Site) -> None:
    page = await ana.get(site.run("digits") + "/artifacts")
    assert "Download as ZIP" in page.text
    answer = await ana.get(site.run("digits") + "/artifacts/4/1/plots")
    assert answer.headers["content-type"] == "application/zip"
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        assert sorted(archive.namelist()) == ["by class/0.svg", "roc.svg"]


async def test_curves_come_with_the_steps_that_reported_them(ana: Client, site: Site) -> None:
    curves = (await ana.get(site.run("digits") + "/metrics/curves")).json()
    assert set(curves) == {"accuracy", "loss", "val_loss"}
    assert curves["loss"]["names"] == ["train", "baseline"]
    assert len(curves["loss"]["lines"][0]) == len(curves["loss"]["x"])


async def test_what_people_wrote_is_escaped(login: Login, site: Site) -> None:
    async with site.context.db.transaction() as tx:
        await tx.execute("UPDATE projects SET title = '<script>alert(1)</script>'")
    admin = await login("admin@example.org")
    text = (await admin.get("/projects")).text
    assert "<script>alert(1)" not in text
    assert "&lt;script&gt;alert(1)" in text


async def test_an_empty_instance_teaches_the_first_step(bare: Site) -> None:
    await make_admin(bare)
    async with browser(bare) as client:
        await log_in(client, "admin@example.org")
        for path in ("/", "/runs"):
            text = (await client.get(path)).text
            assert "verderer run pipeline.yaml" in text
            assert 'href="/runs/new"' in text
        assert "verderer up" in (await client.get("/clusters")).text
