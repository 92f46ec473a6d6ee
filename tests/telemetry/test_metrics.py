"""The metrics page."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry

from verderer.telemetry import metrics


@pytest.fixture(autouse=True)
def _own_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "REGISTRY", CollectorRegistry())


def test_names_get_the_products_prefix_and_labels() -> None:
    metrics.counter("claims_total", "Claims.", ["result"]).labels("won").inc(3)
    page, content_type = metrics.render()
    assert b'verderer_claims_total{result="won"} 3.0' in page
    assert content_type.startswith("text/plain")


def test_a_histogram_counts_in_seconds() -> None:
    metrics.histogram("round_seconds", "Rounds.").observe(0.02)
    page, _ = metrics.render()
    assert b'verderer_round_seconds_bucket{le="0.01"} 0.0' in page
    assert b'verderer_round_seconds_bucket{le="0.025"} 1.0' in page


def test_a_gauge_goes_down_too() -> None:
    queued = metrics.gauge("queued", "Queued steps.")
    queued.inc(5)
    queued.dec(2)
    assert b"verderer_queued 3.0" in metrics.render()[0]


def test_one_name_belongs_to_one_metric() -> None:
    metrics.counter("claims_total", "Claims.")
    with pytest.raises(ValueError, match="Duplicated"):
        metrics.counter("claims_total", "Claims.")


def test_a_scraper_gets_the_format_that_it_asks_for() -> None:
    page, content_type = metrics.render("application/openmetrics-text; version=1.0.0")
    assert content_type.startswith("application/openmetrics-text")
    assert page.endswith(b"# EOF\n")
