"""Times, bytes and amounts in words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from verderer.web.formats import Formats, browser
from verderer.web.language import Catalogues
from verderer.web.pages.door import local_path

ENGLISH = Formats(Catalogues.load().get("en"))
CHINESE = Formats(Catalogues.load().get("zh_Hans"))
NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "english", "chinese"),
    [
        (0.25, "250 ms", "250 毫秒"),
        (14.84, "14.8 s", "14.8 秒"),
        (200, "3 min 20 s", "3 分 20 秒"),
        (3600, "1 h", "1 小时"),
        (22_320, "6 h 12 min", "6 小时 12 分"),
        (270_000, "3 d 3 h", "3 天 3 小时"),
    ],
)
def test_span(seconds: float, english: str, chinese: str) -> None:
    assert ENGLISH.span(seconds) == english
    assert CHINESE.span(seconds) == chinese


@pytest.mark.parametrize(
    ("ago", "text"),
    [
        (timedelta(seconds=2), "just now"),
        (timedelta(seconds=59), "59 s ago"),
        (timedelta(minutes=12), "12 min ago"),
        (timedelta(hours=30), "30 h ago"),
        (timedelta(days=5), "5 d ago"),
        (timedelta(days=60), "2026-03-02"),
    ],
)
def test_ago(ago: timedelta, text: str) -> None:
    assert ENGLISH.ago(NOW - ago, NOW) == text


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0 B"), (1023, "1,023 B"), (1536, "1.5 KiB"), (5 * 2**40, "5 TiB")]
)
def test_size(size: int, text: str) -> None:
    assert ENGLISH.size(size) == text


def test_asked_names_accelerators_first() -> None:
    requests = {"memory": 4 * 2**30, "cpu": 1500, "nvidia.com/gpu": 8000, "x.org/y": 1000}
    assert ENGLISH.asked(requests) == "8 NVIDIA GPUs · 1 x.org/y · 1.5 cores · 4 GiB memory"


def test_browsers_by_name() -> None:
    agent = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/140.0 Safari/537.36"
    assert browser(agent) == "Chrome · Linux"
    assert browser("") == "–"


@pytest.mark.parametrize("text", ["//x", "/\\x", "https://x", "x", "", "/a\nb", "\\/x"])
def test_only_our_own_paths_are_led_back_to(text: str) -> None:
    assert local_path(text) == ""
    assert local_path("/runs?q=state:failed") == "/runs?q=state:failed"
