"""Every page at two widths, in light and dark, in both languages: it fits and can be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.browser.conftest import Look, Open, Served

CONTRAST = (Path(__file__).parent / "contrast.js").read_text(encoding="utf-8")
PATHS = [
    "/",
    "/runs",
    "/runs?q=zzz",
    "/runs/new",
    "/clusters",
    "/clusters/local",
    "/clusters/proj-b-tpu",
    "/projects",
    "/projects/demo",
    "/settings",
    "/settings/users",
]
TABS = ["", "/steps", "/metrics", "/artifacts", "/yaml", "/events"]
RUNS = ["lr-sweep", "nightly-eval", "llm-finetune", "pretrain-tpu"]


NAMELESS = """() => {
  const controls = "button, a[href], input:not([type=hidden]), select, textarea, summary";
  const named = (e) => e.textContent.trim() || e.getAttribute("aria-label") || e.title
    || (e.labels && e.labels.length) || e.getAttribute("aria-labelledby");
  return [...document.querySelectorAll(controls)]
    .filter((e) => e.checkVisibility() && !e.closest("[hidden]") && !named(e))
    .map((e) => e.outerHTML.slice(0, 120));
}"""


@pytest.mark.parametrize("width", [1440, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("locale", ["en-GB", "zh-CN"])
def test_pages_fit_and_can_be_read(
    served: Served, open_page: Open, width: int, scheme: str, locale: str
) -> None:
    page = open_page(look=Look(width=width, scheme=scheme, locale=locale))
    digits = [served.run("digits") + tab for tab in TABS]
    others = [served.run(name) for name in RUNS]
    wrong = []
    for path in (*PATHS, *digits, *others):
        page.goto(path)
        page.wait_for_load_state("load")
        if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
            wrong.append(f"{path} is wider than the screen")
        wrong += [f"{path}: {text}" for text in page.evaluate(CONTRAST)]
        for name in page.evaluate(NAMELESS):
            wrong.append(f"{path}: nothing says what {name} is")
    assert wrong == []


def test_the_theme_can_be_chosen_against_the_system(open_page: Open) -> None:
    page = open_page(look=Look(scheme="light"))
    before = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.click('summary[aria-label="Theme"]')
    page.click('button[name="theme"][value="dark"]')
    page.wait_for_load_state("load")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != before
    page.reload()
    assert page.get_attribute("html", "data-theme") == "dark"


def test_nothing_moves_for_those_who_asked_for_that(served: Served, open_page: Open) -> None:
    page = open_page()
    page.emulate_media(reduced_motion="reduce")
    page.goto(served.run("lr-sweep"))
    names = page.evaluate(
        "[...document.querySelectorAll('.pulse')].map((e) => getComputedStyle(e).animationName)"
    )
    assert names
    assert set(names) == {"none"}
