"""Nothing of a project is readable or writable from outside it, whatever is asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import httpx2
import pytest

from tests.api.mlflow.ask import Asker
from tests.api.mlflow.rig import RUN_ID, Tracking, make_step
from verderer.api.gate import all_handlers
from verderer.core.access import Action

SECRET = "silver-otter"


@dataclass(frozen=True)
class Treasure:
    """What a member of `ours` made; nobody else may learn of it."""

    experiment: str
    run: str
    model: str


async def hoard(asker: Asker) -> Treasure:
    experiment = await asker.experiment(SECRET)
    run = await asker.run(experiment, run_name=SECRET, tags=[{"key": "t", "value": SECRET}])
    await asker.ok("runs/log-parameter", run_id=run, key="p", value=SECRET)
    await asker.ok("runs/log-metric", run_id=run, key="m", value=0.5, timestamp=1)
    model = await asker.ok("logged-models", experiment_id=experiment, name=SECRET)
    answer = await asker.file("PUT", f"{experiment}/{run}/artifacts/{SECRET}.txt", b"gold")
    assert answer.status_code == 200
    return Treasure(experiment, run, model["model"]["info"]["model_id"])


Ask = tuple[str, str, dict[str, Any] | None]


def asks(t: Treasure) -> list[Ask]:
    """Every endpoint, asked for what is in another project."""
    run, experiment, model = {"run_id": t.run}, {"experiment_id": t.experiment}, t.model
    root = f"mlflow-artifacts/artifacts/{t.experiment}/{t.run}/artifacts"
    kv = {"key": "k", "value": "v"}
    return [
        ("GET", f"mlflow/experiments/get?experiment_id={t.experiment}", None),
        ("GET", f"mlflow/experiments/get-by-name?experiment_name={SECRET}", None),
        ("GET", f"mlflow/experiments/get-by-name?experiment_name=ours/{SECRET}", None),
        ("POST", "mlflow/experiments/update", experiment | {"new_name": "x"}),
        ("POST", "mlflow/experiments/delete", experiment),
        ("POST", "mlflow/experiments/restore", experiment),
        ("POST", "mlflow/experiments/set-experiment-tag", experiment | kv),
        ("POST", "mlflow/experiments/delete-experiment-tag", experiment | {"key": "k"}),
        ("POST", "mlflow/runs/create", experiment),
        ("POST", "mlflow/runs/update", run | {"status": "FAILED"}),
        ("GET", f"mlflow/runs/get?run_id={t.run}", None),
        ("POST", "mlflow/runs/delete", run),
        ("POST", "mlflow/runs/restore", run),
        ("POST", "mlflow/runs/log-parameter", run | kv),
        ("POST", "mlflow/runs/set-tag", run | kv),
        ("POST", "mlflow/runs/delete-tag", run | {"key": "t"}),
        ("POST", "mlflow/runs/log-metric", run | {"key": "m", "value": 1.0, "timestamp": 2}),
        ("POST", "mlflow/runs/log-batch", run | {"params": [kv]}),
        ("POST", "mlflow/runs/log-inputs", run | {"datasets": []}),
        ("POST", "mlflow/runs/outputs", run | {"models": [{"model_id": model}]}),
        (
            "POST",
            "mlflow/runs/log-model",
            run
            | {
                "model_json": '{"artifact_path":"a","flavors":{},"utc_time_created":"","run_id":""}'
            },
        ),
        ("GET", f"mlflow/metrics/get-history?run_id={t.run}&metric_key=m", None),
        ("GET", f"mlflow/metrics/get-history-bulk-interval?run_ids={t.run}&metric_key=m", None),
        ("GET", f"mlflow/artifacts/list?run_id={t.run}", None),
        ("POST", "mlflow/logged-models", experiment | {"name": "x"}),
        ("GET", f"mlflow/logged-models/{model}", None),
        ("GET", f"mlflow/logged-models/{model}?allow_deleted=true", None),
        ("PATCH", f"mlflow/logged-models/{model}", {"status": "LOGGED_MODEL_READY"}),
        ("DELETE", f"mlflow/logged-models/{model}", None),
        ("POST", f"mlflow/logged-models/{model}/params", {"params": [kv]}),
        ("PATCH", f"mlflow/logged-models/{model}/tags", {"tags": [kv]}),
        ("DELETE", f"mlflow/logged-models/{model}/tags/k", None),
        ("GET", f"mlflow/logged-models/{model}/artifacts/directories", None),
        ("GET", f"mlflow-artifacts/artifacts?path={t.experiment}/{t.run}/artifacts", None),
        ("GET", f"{root}/{SECRET}.txt", None),
        ("PUT", f"{root}/new.txt", {}),
        ("DELETE", f"{root}/{SECRET}.txt", None),
        ("DELETE", f"{root}/", None),
    ]


SEARCHES: list[tuple[str, str, Any]] = [
    ("POST", "mlflow/experiments/search", lambda t: {"view_type": "ALL"}),
    ("POST", "mlflow/experiments/search", lambda t: {"filter": f"name = '{SECRET}'"}),
    (
        "POST",
        "mlflow/runs/search",
        lambda t: {"experiment_ids": [t.experiment], "run_view_type": "ALL"},
    ),
    ("POST", "mlflow/logged-models/search", lambda t: {"experiment_ids": [t.experiment]}),
    ("POST", "mlflow/experiments/search-datasets", lambda t: {"experiment_ids": [t.experiment]}),
    ("GET", "mlflow/metrics/get-history-bulk?metric_key=m&run_id={run}", lambda t: None),
    ("GET", "mlflow/experiments/search", lambda t: None),
]


async def state(tracking: Tracking) -> list[Any]:
    """Every row of `ours`, to see that nothing changed."""
    tables = ("experiments", "runs", "tags", "params", "series", "points", "models", "run_models",
              "model_tags", "model_params", "experiment_tags", "inputs")  # fmt: skip
    async with tracking.ctx.db.reading() as tx:
        return [
            await tx.fetch(f"SELECT * FROM tracking_{table} ORDER BY 1, 2") for table in tables
        ] + [await tracking.objects.list("")]


@pytest.mark.parametrize("base", ["/mlflow", "/mlflow/theirs", "/mlflow/ours"])
@pytest.mark.parametrize("who", ["stranger", "a step of theirs"])
async def test_a_stranger_finds_and_changes_nothing(
    tracking: Tracking, api: httpx2.AsyncClient, base: str, who: str
) -> None:
    treasure = await hoard(Asker(api, tracking.cast.member.token))
    token = tracking.cast.stranger.token
    if who == "a step of theirs":
        token = await make_step(tracking.ctx, project="theirs")
    before = await state(tracking)
    headers = {"authorization": f"Bearer {token}"}
    for method, tail, body in asks(treasure):
        answer = await api.request(method, f"{base}/api/2.0/{tail}", json=body, headers=headers)
        assert answer.status_code == 404, f"{method} {tail}: {answer.text}"
        code = answer.json()["error_code"]
        assert code == "RESOURCE_DOES_NOT_EXIST", f"{method} {tail}: {answer.text}"
    for method, tail, body in SEARCHES:
        answer = await api.request(
            method,
            f"{base}/api/2.0/{tail.format(run=treasure.run)}",
            json=body(treasure),
            headers=headers,
        )
        assert answer.status_code == (404 if base.endswith("ours") else 200), answer.text
        assert SECRET not in answer.text
        assert treasure.run not in answer.text
        assert treasure.experiment not in answer.text
    assert await state(tracking) == before


async def test_what_is_foreign_and_what_is_not_there_are_answered_alike(
    tracking: Tracking, api: httpx2.AsyncClient
) -> None:
    treasure = await hoard(Asker(api, tracking.cast.member.token))
    stranger = Asker(api, tracking.cast.stranger.token)
    nothing = "0" * 32
    foreign = await stranger.get("runs/get", run_id=treasure.run)
    missing = await stranger.get("runs/get", run_id=nothing)
    assert foreign.text.replace(treasure.run, nothing) == missing.text


async def test_a_token_that_may_only_read_changes_nothing(
    tracking: Tracking, api: httpx2.AsyncClient
) -> None:
    treasure = await hoard(Asker(api, tracking.cast.member.token))
    before = await state(tracking)
    headers = {"authorization": f"Bearer {tracking.cast.reader.token}"}
    for method, tail, body in asks(treasure):
        answer = await api.request(method, f"/mlflow/api/2.0/{tail}", json=body, headers=headers)
        expected = {200, 404} if method == "GET" else {403}
        assert answer.status_code in expected, f"{method} {tail}: {answer.text}"
        if method != "GET":
            assert answer.json()["error_code"] == "PERMISSION_DENIED"
    assert await state(tracking) == before


async def test_an_agent_and_nobody_are_refused(tracking: Tracking, api: httpx2.AsyncClient) -> None:
    treasure = await hoard(Asker(api, tracking.cast.member.token))
    agent = {"authorization": f"Bearer {tracking.cast.agent}"}
    for method, tail, body in asks(treasure):
        url = f"/mlflow/api/2.0/{tail}"
        refused = await api.request(method, url, json=body, headers=agent)
        assert refused.status_code == 403, url
        nobody = await api.request(method, url, json=body)
        assert nobody.status_code == 401, url
        assert nobody.json()["error_code"] == "UNAUTHENTICATED"


async def test_the_token_of_an_attempt_that_is_over_is_refused(
    tracking: Tracking, api: httpx2.AsyncClient
) -> None:
    step = Asker(api, await make_step(tracking.ctx))
    await step.run()
    async with tracking.ctx.db.transaction() as tx:
        await tx.execute(
            "UPDATE attempts SET state = 'succeeded', ended_at = now(), cause = 'exit' "
            "WHERE step_id = $1",
            RUN_ID,
        )
    tracking.ctx.known.heard("auth")
    for _ in range(100):
        answer = await step.post("runs/create", experiment_id="0")
        if answer.status_code == 401:
            break
    else:
        pytest.fail("the token still works")


async def test_models_of_another_project_are_no_inputs(
    tracking: Tracking, api: httpx2.AsyncClient
) -> None:
    treasure = await hoard(Asker(api, tracking.cast.member.token))
    stranger = Asker(api, tracking.cast.stranger.token)
    run = await stranger.run()
    for tail, body in (
        ("runs/outputs", {"models": [{"model_id": treasure.model}]}),
        ("runs/log-inputs", {"models": [{"model_id": treasure.model}]}),
        (
            "runs/log-batch",
            {"metrics": [{"key": "m", "value": 1, "timestamp": 1, "model_id": treasure.model}]},
        ),
    ):
        answer = await stranger.post(tail, run_id=run, **body)
        assert answer.status_code == 404, tail
    own = await stranger.experiment()
    answer = await stranger.post("logged-models", experiment_id=own, source_run_id=treasure.run)
    assert answer.status_code == 404


async def test_every_route_asks_for_what_it_does(tracking: Tracking) -> None:
    """A GET reads, a search reads, everything else writes; only the server's facts are public."""
    public = set()
    for path, handler in all_handlers(tracking.app):
        if not path.startswith("/mlflow"):
            continue
        methods = getattr(handler, "http_methods", {"POST"})
        if "public" in handler.opt:
            public.add(path)
            continue
        reads = methods == {"GET"} or path.endswith(
            ("/search", "/search-datasets", "/presigned-download-url")
        )
        expected = Action.TRACKING_READ if reads else Action.TRACKING_WRITE
        assert handler.opt["action"] is expected, path
    assert public == {
        "/mlflow/{word:str}",
        "/mlflow/{project:str}/{word:str}",
        "/mlflow/{api:str}/{version:str}/mlflow/server-info",
        "/mlflow/{project:str}/{api:str}/{version:str}/mlflow/server-info",
    }
