"""Pictures for the documentation, taken anew with `VERDERER_SCREENSHOTS=docs/images`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Look, Open, Served

FOLDER = os.environ.get("VERDERER_SCREENSHOTS", "")

pytestmark = pytest.mark.skipif(
    not FOLDER, reason="VERDERER_SCREENSHOTS does not name a folder for pictures"
)


@pytest.mark.parametrize(
    ("name", "run", "path", "look"),
    [
        ("console-overview", "", "/", Look()),
        ("console-run", "nightly-eval", "", Look()),
        ("console-waiting", "llm-finetune", "", Look(height=600)),
        ("console-metrics", "digits", "/metrics", Look(scheme="dark")),
        ("console-chinese", "lr-sweep", "", Look(locale="zh-CN")),
        ("console-new-run", "", "/runs/new", Look(height=760)),
        ("console-phone", "digits", "?step=2", Look(width=390, height=844, scheme="dark")),
    ],
)
def test_picture(
    served: Served, open_page: Open, name: str, run: str, path: str, look: Look
) -> None:
    page = open_page(look=look)
    page.goto(served.run(run) + path if run else path)
    if run and path != "/metrics":
        expect(page.locator("#panel h2").first).to_be_visible()
    if path == "/metrics":
        expect(page.locator(".u-over")).to_have_count(3)
    page.wait_for_load_state("networkidle") if path == "/runs/new" else page.wait_for_timeout(500)
    folder = Path(FOLDER)
    folder.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=folder / f"{name}.png", animations="disabled")
