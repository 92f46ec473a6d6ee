"""The tracking API over the test's database, with and without a socket."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.api.mlflow.rig import Tracking, make_tracking, serving
from tests.rig.people import Cast
from verderer.usecases.context import Context


@pytest.fixture
def tracking(ctx: Context, cast: Cast, tmp_path: Path) -> Tracking:
    return make_tracking(ctx, cast, tmp_path / "objects")


@pytest.fixture
async def api(tracking: Tracking) -> AsyncIterator[httpx2.AsyncClient]:
    """Asks without a socket, as nobody."""
    transport = httpx2.ASGITransport(app=tracking.app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://verderer.test") as made:
        yield made


@pytest.fixture
async def server(tracking: Tracking) -> AsyncIterator[str]:
    """The address of a real server."""
    async with serving(tracking.app) as url:
        yield url


@pytest.fixture
def as_user(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, str], Any]]:
    """Make MLflow's client of somebody: give the tracking URI and the token."""
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    monkeypatch.setenv("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")

    def become(uri: str, token: str) -> Any:
        import mlflow

        monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", token)
        mlflow.set_tracking_uri(uri)
        mlflow.tracking.fluent._active_experiment_id = None
        return mlflow.MlflowClient(uri)

    yield become
    import mlflow

    # `set_experiment` leaves it for child processes.
    os.environ.pop("MLFLOW_EXPERIMENT_ID", None)

    while mlflow.active_run():
        mlflow.end_run()
    mlflow.tracking.fluent._active_experiment_id = None
    mlflow.set_tracking_uri("")
