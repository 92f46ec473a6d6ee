"""What people do in the console, done in a real browser."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.browser.conftest import Look, Open, Served
from verderer.usecases.context import Context


def test_keys_lead_everywhere(open_page: Open) -> None:
    page = open_page()
    page.keyboard.press("g")
    page.keyboard.press("r")
    page.wait_for_url("**/runs")
    page.keyboard.press("/")
    expect(page.locator("#q")).to_be_focused()
    page.keyboard.press("Escape")
    page.locator("#q").blur()
    page.keyboard.press("g")
    page.keyboard.press("c")
    page.wait_for_url("**/clusters")
    page.keyboard.press("?")
    expect(page.locator("#help")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#help")).to_be_hidden()
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url("**/clusters/proj-a-gpu")


def test_every_control_is_reached_by_tab_and_shows_it(open_page: Open) -> None:
    page = open_page()
    page.goto("/runs")
    seen = set()
    for _ in range(40):
        page.keyboard.press("Tab")
        name, outline = page.evaluate(
            """() => {
                const e = document.activeElement;
                const shown = (e.matches("a.whole") && e.closest("tr")) || e;
                return [e.outerHTML.slice(0, 80), getComputedStyle(shown).outlineStyle];
            }"""
        )
        assert outline != "none", name
        seen.add(name)
    assert len(seen) > 20


def test_the_list_is_filtered_as_one_types(open_page: Open) -> None:
    page = open_page()
    page.goto("/runs")
    page.fill("#q", "state:failed")
    page.wait_for_url("**q=state%3Afailed**")
    states = page.locator("#live tbody .state")
    expect(states.first).to_have_text("failed")
    assert set(states.all_inner_texts()) == {"failed"}
    page.fill("#q", "nothing-like-this")
    expect(page.locator("#live h2")).to_have_text("No run matches")
    page.go_back()
    expect(page.locator("#live tbody .state").first).to_have_text("failed")


def test_a_list_goes_on_and_comes_back(open_page: Open) -> None:
    page = open_page()
    page.goto("/runs")
    first = page.locator("#live a.whole").first.get_attribute("href")
    page.click("text=Next page")
    page.wait_for_url("**before=**")
    assert page.locator("#live a.whole").first.get_attribute("href") != first
    page.click("text=First page")
    expect(page.locator("#live a.whole").first).to_have_attribute("href", first or "")


def test_columns_are_chosen_and_kept_in_the_address(open_page: Open) -> None:
    page = open_page()
    page.goto("/runs")
    page.click("summary:has-text('Columns')")
    page.check("form[data-columns] input[value=id]")
    page.click("form[data-columns] button")
    page.wait_for_url("**columns=**id**")
    expect(page.locator("th", has_text=re.compile("^Run$"))).to_be_visible()


def test_a_step_is_selected_in_the_graph(served: Served, open_page: Open) -> None:
    page = open_page()
    page.goto(served.run("digits"))
    page.click(".node:has-text('baseline')")
    page.wait_for_url("**step=3**")
    expect(page.locator("#panel h2").first).to_have_text("baseline")
    expect(page.locator('.node[aria-current="true"]')).to_contain_text("baseline")
    expect(page.locator('[data-log="name"]')).to_have_text("baseline")
    expect(page.locator(".line .gap").first).to_contain_text("the disk was full")
    page.go_back()
    expect(page.locator("#panel h2").first).not_to_have_text("baseline")


def test_a_hundred_thousand_lines_scroll(served: Served, open_page: Open) -> None:
    page = open_page()
    page.goto(served.run("digits") + "?step=2")
    expect(page.locator('[data-log="lines"]')).to_have_text("100,000 lines")
    view = page.locator('[data-log="view"]')
    expect(page.locator('.line[data-n="0"]')).to_be_visible()
    assert page.locator(".line").count() <= 1_000
    view.evaluate("(v) => { v.scrollTop = v.scrollHeight / 2; }")
    expect(page.locator('.line[data-n="50000"]')).to_be_attached()
    view.press("End")
    expect(page.locator('.line[data-n="99999"]')).to_be_visible()
    assert page.locator(".line").count() <= 6_200


def test_output_is_searched_and_errors_are_found(served: Served, open_page: Open) -> None:
    page = open_page()
    page.goto(served.run("nightly-eval") + "?step=2")
    # What failed shows its end first.
    expect(page.locator(".line", has_text="ValueError: Found input")).to_be_visible()
    page.fill('[data-log="find"]', "epoch 14 ")
    page.press('[data-log="find"]', "Enter")
    expect(page.locator(".line.here")).to_contain_text("epoch 14 ")
    expect(page.locator('[data-log="hits"]')).to_have_text("1 / 1")
    page.click('[data-log="error"]')
    expect(page.locator(".line.here")).to_contain_text("Traceback")
    page.click('[data-log="times"]')
    expect(page.locator(".line.here .t")).to_be_visible()


def test_news_reach_an_open_page(served: Served, open_page: Open) -> None:
    page = open_page()
    page.goto(served.run("llm-finetune"))
    expect(page.locator("h1 + .state")).to_have_text("running")
    run = served.runs["llm-finetune"]

    async def finish(context: Context) -> None:
        async with context.db.transaction() as tx:
            await tx.execute(
                "UPDATE runs SET state = 'failed', open = 0, ended_at = now() WHERE id = $1", run
            )
        context.wakeups.wake([f"run:{run}"])

    served.do(finish)
    expect(page.locator("h1 + .state")).to_have_text("failed", timeout=5_000)


def test_a_pipeline_is_written_judged_and_submitted(served: Served, open_page: Open) -> None:
    page = open_page("ana@example.org")
    page.goto("/runs/new")
    expect(page.locator(".preview .node")).to_have_count(2)
    area = page.locator("#document")
    text = area.input_value()
    area.fill(text.replace("needs: [greet]", "needs: [gret]"))
    expect(page.locator(".problems")).to_contain_text("greet")
    expect(page.locator("[data-gutter] b")).to_have_text("9")
    page.click("[data-line]")
    expect(area).to_be_focused()
    area.fill(text)
    page.fill("#p-who", "forest")
    page.select_option("#project", "demo")
    page.click("#verdict button.primary")
    page.wait_for_url(re.compile(r"/runs/[0-9a-z]{13}$"))
    expect(page.locator("h1")).to_have_text("hello")
    expect(page.locator("#panel")).to_contain_text("Just queued")


def test_cancelling_asks_first(served: Served, open_page: Open) -> None:
    page = open_page()
    page.goto(served.run("lr-sweep"))
    page.click("text=Cancel")
    dialog = page.locator("#confirm")
    expect(dialog).to_contain_text("89 steps that are not over end")
    dialog.locator("button[value=no]").click()
    expect(page.locator("h1 + .state")).to_have_text("running")
    page.click("text=Cancel")
    dialog.locator("#confirm-yes").click()
    expect(page.locator("h1 + .state")).to_have_text("cancelling")


def test_the_side_opens_on_a_phone(open_page: Open) -> None:
    page = open_page(look=Look(width=390, height=844))
    expect(page.locator("#side")).to_be_hidden()
    page.click("[data-burger]")
    expect(page.locator("#side")).to_be_visible()
    page.click("#side >> text=Clusters")
    page.wait_for_url("**/clusters")
    expect(page.locator("#side")).to_be_hidden()


def test_an_id_is_copied(served: Served, open_page: Open) -> None:
    page = open_page()
    page.goto(served.run("digits"))
    page.click(".run-meta [data-copy]")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert served.run("digits").endswith(copied)
