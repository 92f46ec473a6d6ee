"""Counters, gauges and histograms of this process, and their page for Prometheus.

A room names its metrics at the top of a module; the names get the product's prefix here.
"""

from __future__ import annotations

from collections.abc import Sequence

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    PlatformCollector,
    ProcessCollector,
)
from prometheus_client.exposition import choose_encoder

PREFIX = "verderer"

REGISTRY = CollectorRegistry(auto_describe=True)
"""Everything that this process counts. Several server workers count each on its own."""
ProcessCollector(registry=REGISTRY)
PlatformCollector(registry=REGISTRY)

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Bounds for a duration of anything between a statement and a slow request."""


def counter(name: str, about: str, labels: Sequence[str] = ()) -> Counter:
    """A number that only grows; `name` ends in `_total` and names its unit, e.g. `bytes_total`."""
    return Counter(name, about, labels, namespace=PREFIX, registry=REGISTRY)


def gauge(name: str, about: str, labels: Sequence[str] = ()) -> Gauge:
    """A number that goes up and down."""
    return Gauge(name, about, labels, namespace=PREFIX, registry=REGISTRY)


def histogram(
    name: str, about: str, labels: Sequence[str] = (), *, bounds: Sequence[float] = SECONDS
) -> Histogram:
    """A distribution; by default of seconds, and then `name` ends in `_seconds`."""
    return Histogram(name, about, labels, namespace=PREFIX, registry=REGISTRY, buckets=bounds)


def render(accept: str = "", *, registry: CollectorRegistry | None = None) -> tuple[bytes, str]:
    """The page and its content type, in the newest format that the `Accept` header allows."""
    encode, content_type = choose_encoder(accept)
    return encode(REGISTRY if registry is None else registry), content_type
