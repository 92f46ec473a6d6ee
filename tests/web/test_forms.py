"""What is sent: logging in and out, forms of other sites, submitting, cancelling, retrying."""

from __future__ import annotations

import re

import pytest

from tests.web.conftest import Client, Site, form_token, log_in
from verderer.core.credentials import SESSION_COOKIE

HELLO = """\
metadata: {name: hello}
parameters: {who: world}
steps:
  - name: greet
    command: [echo, "hello ${{ params.who }}"]
"""


async def test_a_wrong_password_says_so_and_keeps_the_address(anybody: Client) -> None:
    token = await form_token(anybody, "/login")
    answer = await anybody.post(
        "/login", data={"_form": token, "email": "ana@example.org", "password": "wrong"}
    )
    assert answer.status_code == 401
    assert "E-mail address or password is wrong." in answer.text
    assert 'value="ana@example.org"' in answer.text


async def test_the_session_cookie_is_out_of_reach_for_scripts(anybody: Client) -> None:
    token = await form_token(anybody, "/login")
    answer = await anybody.post(
        "/login",
        data={"_form": token, "email": "ana@example.org", "password": "forest-of-dean-1217"},
        follow_redirects=False,
    )
    cookie = next(c for c in answer.headers.get_list("set-cookie") if SESSION_COOKIE in c)
    assert "HttpOnly" in cookie
    assert "samesite=lax" in cookie.lower()


@pytest.mark.parametrize("next_", ["https://evil.example", "//evil.example", "/\\evil.example"])
async def test_the_login_leads_nowhere_else(anybody: Client, next_: str) -> None:
    token = await form_token(anybody, "/login")
    data = {"_form": token, "email": "ana@example.org", "password": "forest-of-dean-1217"}
    answer = await anybody.post("/login", data=data | {"next": next_}, follow_redirects=False)
    assert answer.headers["location"] == "/"


async def test_the_login_leads_back_to_where_one_wanted_to_go(anybody: Client, site: Site) -> None:
    first = await anybody.get(site.run("digits"), follow_redirects=False)
    page = await anybody.get(first.headers["location"])
    assert f'value="{site.run("digits")}"' in page.text


@pytest.mark.parametrize(
    "path", ["/logout", "/preferences", "/runs/new", "/settings/tokens", "/projects"]
)
async def test_a_form_without_our_token_is_refused(admin: Client, path: str) -> None:
    answer = await admin.post(path, data={"name": "x"})
    assert answer.status_code == 403
    assert "The form has expired" in answer.text


async def test_a_token_of_somebody_else_is_refused(anybody: Client) -> None:
    stale = await form_token(anybody, "/login")
    await log_in(anybody, "ana@example.org")
    assert (await anybody.post("/logout", data={"_form": stale})).status_code == 403


async def test_what_another_site_sends_is_refused(admin: Client) -> None:
    token = await form_token(admin, "/")
    answer = await admin.post(
        "/logout", data={"_form": token}, headers={"sec-fetch-site": "cross-site"}
    )
    assert answer.status_code == 403


async def test_logging_out_ends_the_session(ana: Client) -> None:
    token = await form_token(ana, "/")
    session = ana.cookies.get(SESSION_COOKIE)
    await ana.post("/logout", data={"_form": token})
    ana.cookies.set(SESSION_COOKIE, session or "")
    assert (await ana.get("/", follow_redirects=False)).status_code == 303


async def test_a_one_time_password_opens_only_the_page_that_replaces_it(
    anybody: Client, site: Site
) -> None:
    async with site.context.db.transaction() as tx:
        await tx.execute("UPDATE users SET must_change = true WHERE email = 'wei@example.org'")
    token = await form_token(anybody, "/login")
    data = {"_form": token, "email": "wei@example.org", "password": "forest-of-dean-1217"}
    answer = await anybody.post("/login", data=data, follow_redirects=False)
    assert answer.headers["location"] == "/password"
    assert (await anybody.get("/runs", follow_redirects=False)).headers["location"] == "/password"
    token = await form_token(anybody, "/password")
    new = "much-longer-oak-4711"
    data = {"_form": token, "old": "forest-of-dean-1217", "new": new, "again": new + "x"}
    assert (await anybody.post("/password", data=data)).status_code == 422
    data["again"] = new
    done = await anybody.post("/password", data=data, follow_redirects=False)
    assert done.headers["location"] == "/"
    assert (await anybody.get("/")).status_code == 200


async def test_theme_and_language_are_remembered(admin: Client) -> None:
    token = await form_token(admin, "/")
    await admin.post("/preferences", data={"_form": token, "theme": "dark", "back": "/runs"})
    await admin.post("/preferences", data={"_form": token, "language": "zh_Hans"})
    text = (await admin.get("/")).text
    assert 'data-theme="dark"' in text
    assert 'lang="zh-Hans"' in text
    assert "总览" in text


async def test_the_chosen_project_narrows_lists(admin: Client) -> None:
    token = await form_token(admin, "/")
    await admin.post("/preferences", data={"_form": token, "project": "llm"})
    text = (await admin.get("/runs")).text
    assert "llm-finetune" in text
    assert "lr-sweep" not in text


async def test_a_document_is_judged_as_it_is_typed(ana: Client) -> None:
    token = await form_token(ana, "/runs/new")
    headers = {"hx-request": "true", "hx-target": "verdict", "x-form-token": token}
    broken = HELLO.replace("command", "comand")
    answer = await ana.post("/runs/new/check", data={"document": broken}, headers=headers)
    assert answer.status_code == 200
    assert answer.text.lstrip().startswith('<div id="verdict"')
    assert "5:" in answer.text
    assert "command" in answer.text
    good = await ana.post("/runs/new/check", data={"document": HELLO}, headers=headers)
    assert "This is what will run" in good.text
    assert 'value="world"' in good.text


async def test_a_run_is_submitted_once_however_often_the_button_is_pressed(
    ana: Client, site: Site
) -> None:
    page = (await ana.get("/runs/new")).text
    token = await form_token(ana, "/runs/new")
    key = re.search(r'name="key" value="([^"]+)"', page)
    assert key
    data = {"_form": token, "document": HELLO, "project": "demo", "p.who": "wood", "key": key[1]}
    first = await ana.post("/runs/new", data=data, follow_redirects=False)
    again = await ana.post("/runs/new", data=data, follow_redirects=False)
    assert first.status_code == 303, first.text
    assert first.headers["location"] == again.headers["location"]
    yaml = (await ana.get(first.headers["location"] + "/yaml")).text
    assert "wood" in yaml


async def test_what_is_wrong_when_it_is_sent_is_said_beside_the_document(ana: Client) -> None:
    token = await form_token(ana, "/runs/new")
    data = {"_form": token, "document": HELLO, "project": "llm"}
    answer = await ana.post("/runs/new", data=data)
    assert answer.status_code == 404
    assert "hello ${{ params.who }}" in answer.text


async def test_a_clone_begins_with_the_document_of_the_run(ana: Client, site: Site) -> None:
    text = (await ana.get(f"/runs/new?clone={site.run('digits')[6:]}")).text
    assert "Handwritten digits" in text
    assert 'value="30"' in text


async def test_a_run_can_be_cancelled_and_retried(ana: Client, site: Site) -> None:
    token = await form_token(ana, "/runs")
    sweep, failed = site.run("lr-sweep"), site.run("nightly-eval")
    assert (await ana.post(sweep + "/cancel", data={"_form": token})).status_code == 200
    assert "cancelling" in (await ana.get(sweep)).text
    assert (await ana.post(failed + "/retry", data={"_form": token})).status_code == 200
    assert "Cancel" in (await ana.get(failed)).text
    refused = await ana.post(site.run("digits") + "/cancel", data={"_form": token})
    assert refused.status_code == 409


async def test_a_token_is_shown_once(ana: Client) -> None:
    token = await form_token(ana, "/settings")
    data = {"_form": token, "name": "laptop", "days": "30"}
    made = await ana.post("/settings/tokens", data=data)
    assert "vrd_u_" in made.text
    later = (await ana.get("/settings")).text
    assert "laptop" in later
    assert not re.search(r"vrd_u_[\w-]{20}", later)


async def test_a_platform_admin_makes_people_and_projects(admin: Client) -> None:
    token = await form_token(admin, "/projects")
    made = await admin.post("/projects", data={"_form": token, "name": "forest", "title": "F"})
    assert made.status_code == 200
    person = {"_form": token, "email": "li@example.org", "name": "Li"}
    assert (
        "One-time password of li@example.org"
        in (await admin.post("/settings/users", data=person)).text
    )
    member = {"_form": token, "email": "li@example.org", "role": "member"}
    assert "li@example.org" in (await admin.post("/projects/forest/members", data=member)).text
