"""/metrics: for Prometheus; what this process counts, and the platform's state."""

from __future__ import annotations

import hmac
from collections.abc import Iterator
from typing import Any

from litestar import Request, Response, get
from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from verderer.api.auth import ContextArg
from verderer.api.credentials import bearer_of
from verderer.core.errors import NotFound
from verderer.core.model.cluster import OFFLINE_AFTER_S
from verderer.store.views.gauges import PlatformGauges, platform_gauges
from verderer.telemetry import metrics
from verderer.usecases.authenticate import refused


@get(
    "/metrics",
    opt={"public": "`metrics.token` decides who may scrape; `metrics.enabled` whether anybody"},
    include_in_schema=False,
)
async def metrics_page(request: Request[Any, Any, Any], context: ContextArg) -> Response[bytes]:
    """Everything in Prometheus' format.

    Raises:
        NotFound: it is switched off.
        NotAuthenticated: a token is wanted, and this is not it.
    """
    state = request.app.state
    if not state.metrics_enabled:
        raise NotFound("metrics are switched off")
    wanted: str = state.metrics_token
    if wanted and not hmac.compare_digest(bearer_of(request.scope["headers"]), wanted):
        raise refused(given=True)
    async with context.db.reading() as tx:
        found = await platform_gauges(tx)
    registry = CollectorRegistry()
    registry.register(_Platform(found))
    own, kind = metrics.render()
    whole, _ = metrics.render(registry=registry)
    return Response(own + whole, media_type=kind)


class _Platform(Collector):
    """Turns what was read into families."""

    def __init__(self, found: PlatformGauges) -> None:
        self._found = found

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Give each family once."""
        runs = GaugeMetricFamily("verderer_runs", "Runs by state.", labels=["state"])
        for state, n in self._found.runs.items():
            runs.add_metric([state], n)
        yield runs
        up = GaugeMetricFamily(
            "verderer_cluster_up", "1 while the cluster is heard.", labels=["cluster", "kind"]
        )
        for name, kind, enabled, silent in self._found.clusters:
            heard = enabled and silent is not None and silent < OFFLINE_AFTER_S
            up.add_metric([name, kind], float(heard))
        yield up
        labels = ["cluster", "resource"]
        all_ = GaugeMetricFamily(
            "verderer_cluster_allocatable",
            "What a cluster can give: bytes, or thousandths of a unit.",
            labels=labels,
        )
        taken = GaugeMetricFamily(
            "verderer_cluster_reserved", "What is promised out of it.", labels=labels
        )
        for name, resource, allocatable, reserved in self._found.capacity:
            all_.add_metric([name, resource], allocatable)
            taken.add_metric([name, resource], reserved)
        yield all_
        yield taken
        led = GaugeMetricFamily("verderer_scheduler_led", "1 while a scheduler leads.")
        led.add_metric([], float(self._found.led))
        yield led
