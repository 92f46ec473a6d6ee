"""/metrics: what a scraper sees, and who may scrape."""

from __future__ import annotations

from pathlib import Path

import pytest
from httpx2 import ASGITransport, AsyncClient

from tests.usecases.world import World
from verderer.cli.serving import application
from verderer.settings import MetricsSettings, ObjectSettings, Secret, SecuritySettings, Settings
from verderer.store.database import Database


def settings(folder: Path, metrics: MetricsSettings) -> Settings:
    return Settings(
        data_dir=folder,
        objects=ObjectSettings(url=str(folder / "objects")),
        security=SecuritySettings(secret_key=Secret("k" * 32)),
        metrics=metrics,
    )


async def test_runs_clusters_and_capacity_are_there(database: Database, tmp_path: Path) -> None:
    world = await World.make(database, local={"cpu": 4000})
    await world.submit("metadata: {name: a}\nsteps:\n- {name: a, command: [x]}\n")
    async with (
        application(settings(tmp_path, MetricsSettings()), world.ctx) as app,
        AsyncClient(transport=ASGITransport(app), base_url="http://127.0.0.1:8642") as client,
    ):
        text = (await client.get("/metrics")).text
    assert 'verderer_runs{state="queued"} 1.0' in text
    assert 'verderer_cluster_up{cluster="local",kind="local"} 1.0' in text
    assert 'verderer_cluster_allocatable{cluster="local",resource="cpu"} 4000.0' in text
    assert "verderer_scheduler_led 0.0" in text
    assert "process_resident_memory_bytes" in text


@pytest.mark.parametrize(
    ("metrics", "bearer", "status"),
    [
        pytest.param(MetricsSettings(), "", 200, id="open by default"),
        pytest.param(MetricsSettings(enabled=False), "", 404, id="switched off"),
        pytest.param(MetricsSettings(token=Secret("t" * 20)), "", 401, id="a token is wanted"),
        pytest.param(MetricsSettings(token=Secret("t" * 20)), "no", 401, id="not that one"),
        pytest.param(MetricsSettings(token=Secret("t" * 20)), "t" * 20, 200, id="the token"),
    ],
)
async def test_who_may_scrape(
    database: Database, tmp_path: Path, metrics: MetricsSettings, bearer: str, status: int
) -> None:
    world = await World.make(database)
    async with (
        application(settings(tmp_path, metrics), world.ctx) as app,
        AsyncClient(transport=ASGITransport(app), base_url="http://127.0.0.1:8642") as client,
    ):
        headers = {"Authorization": f"Bearer {bearer}"} if bearer else {}
        assert (await client.get("/metrics", headers=headers)).status_code == status
