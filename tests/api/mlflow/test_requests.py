"""Requests by hand: errors as MLflow's clients expect them, odd JSON, limits, the audit."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx2
import pytest

from tests.api.mlflow.ask import API, Asker, bearer
from tests.api.mlflow.rig import Tracking


@pytest.fixture
async def member(tracking: Tracking, api: httpx2.AsyncClient) -> Asker:
    return Asker(api, tracking.cast.member.token)


async def raw(member: Asker, tail: str, body: bytes) -> httpx2.Response:
    return await member.client.post(
        f"{API}/{tail}",
        content=body,
        headers=member.headers | {"content-type": "application/json"},
    )


WRONG, GONE = "INVALID_PARAMETER_VALUE", "RESOURCE_DOES_NOT_EXIST"
NOWHERE = "ENDPOINT_NOT_FOUND"
METRIC = {"key": "m", "value": 1.0, "timestamp": 1}


@pytest.mark.parametrize(
    ("tail", "body", "code"),
    [
        pytest.param("runs/log-metric", {**METRIC, "run_id": "0" * 32}, GONE, id="no such run"),
        pytest.param(
            "runs/log-metric", {**METRIC, "run_id": "nonsense"}, GONE, id="what cannot be a run"
        ),
        pytest.param("runs/log-metric", METRIC, WRONG, id="no run at all"),
        pytest.param("runs/log-metric", {"key": "m", "value": 1.0}, WRONG, id="no time"),
        pytest.param("runs/log-metric", {"key": "m", "timestamp": 1}, WRONG, id="no value"),
        pytest.param("runs/log-metric", {**METRIC, "value": None}, WRONG, id="a null"),
        pytest.param("runs/log-metric", {**METRIC, "value": True}, WRONG, id="a truth"),
        pytest.param("runs/log-metric", {**METRIC, "value": "x"}, WRONG, id="a word"),
        pytest.param(
            "runs/log-metric", {**METRIC, "timestamp": -1}, WRONG, id="a time before all time"
        ),
        pytest.param("runs/log-metric", {**METRIC, "step": 1 << 63}, WRONG, id="a step of 65 bits"),
        pytest.param("runs/log-metric", {**METRIC, "key": "../m"}, WRONG, id="a key that climbs"),
        pytest.param("runs/log-metric", {**METRIC, "key": "m" * 251}, WRONG, id="a long key"),
        pytest.param("runs/log-batch", {"metrics": [METRIC] * 1001}, WRONG, id="1001 metrics"),
        pytest.param(
            "runs/log-batch",
            {"params": [{"key": f"p{i}", "value": ""} for i in range(101)]},
            WRONG,
            id="101 parameters",
        ),
        pytest.param(
            "runs/log-batch",
            {"tags": [{"key": f"t{i}", "value": ""} for i in range(101)]},
            WRONG,
            id="101 tags",
        ),
        pytest.param(
            "runs/log-batch",
            {"metrics": [METRIC] * 950, "params": [{"key": f"p{i}"} for i in range(51)]},
            WRONG,
            id="1001 of all",
        ),
        pytest.param(
            "runs/log-batch",
            {"params": [{"key": "a"}, {"key": "a"}]},
            WRONG,
            id="a parameter twice",
        ),
        pytest.param("runs/log-batch", {"metrics": "x"}, WRONG, id="a text for a list"),
        pytest.param("runs/update", {"status": "DONE"}, WRONG, id="an unknown status"),
        pytest.param("runs/delete-tag", {"key": "nope"}, GONE, id="no such tag"),
        pytest.param("experiments/create", {"name": ""}, WRONG, id="no name"),
        pytest.param(
            "experiments/create",
            {"name": "x", "artifact_location": "file:///etc"},
            WRONG,
            id="a place of one's own for artifacts",
        ),
        pytest.param("experiments/delete", {"experiment_id": "123"}, GONE, id="no such experiment"),
        pytest.param("experiments/delete", {"experiment_id": "x"}, WRONG, id="what cannot be one"),
        pytest.param(
            "runs/search",
            {"experiment_ids": ["1"], "filter": "x"},
            WRONG,
            id="a filter that is none",
        ),
        pytest.param(
            "runs/search",
            {"experiment_ids": ["1"], "max_results": 50_001},
            WRONG,
            id="a page too long",
        ),
        pytest.param(
            "runs/search",
            {"experiment_ids": ["1"], "page_token": "x"},
            WRONG,
            id="a page token that is none",
        ),
        pytest.param(
            "logged-models/search",
            {"experiment_ids": ["1"], "order_by": [{"field_name": "params.x"}]},
            WRONG,
            id="an order that is none",
        ),
        pytest.param("traces/search", {}, NOWHERE, id="what we do not have"),
        pytest.param("runs/frobnicate", {}, NOWHERE, id="what nobody has"),
    ],
)
async def test_a_wrong_request_is_refused_in_mlflows_words(
    member: Asker, tail: str, body: dict[str, Any], code: str
) -> None:
    if tail.startswith("runs/") and "run_id" not in body and body is not METRIC:
        body = {**body, "run_id": await member.run()}
    answer = await member.post(tail, **body)
    assert answer.json()["error_code"] == code, answer.text
    assert answer.status_code == (400 if code == WRONG else 404)
    assert answer.json()["message"]


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"{", id="half of it"),
        pytest.param(b"[1, 2]", id="a list"),
        pytest.param(b"\xff\xfe", id="no text"),
        pytest.param(b"[" * 100_000, id="nested"),
        pytest.param(b'{"run_id": NaN', id="half of it with a NaN"),
        pytest.param(b'{"key": "\\ud800"}', id="half a letter"),
    ],
)
@pytest.mark.parametrize("tail", ["runs/log-batch", "runs/create", "experiments/search"])
async def test_what_is_no_json_is_refused(member: Asker, tail: str, body: bytes) -> None:
    answer = await raw(member, tail, body)
    assert (answer.status_code, answer.json()["error_code"]) == (400, "INVALID_PARAMETER_VALUE")


async def test_a_body_without_end_is_refused(member: Asker) -> None:
    for tail in ("runs/log-batch", "runs/create"):
        answer = await raw(member, tail, b" " * (8 * 1024 * 1024 + 1))
        assert answer.status_code == 413


async def test_integers_may_be_texts_and_nan_may_be_bare(member: Asker) -> None:
    run = await member.run()
    body = (
        f'{{"run_id": "{run}", "metrics": ['
        '{"key": "a", "value": "NaN", "timestamp": "1", "step": "1"},'
        '{"key": "a", "value": NaN, "timestamp": 2, "step": 2.0},'
        '{"key": "a", "value": -Infinity, "timestamp": 3, "step": 3},'
        '{"key": "a", "value": "Infinity", "timestamp": 4, "step": 4}]}'
    )
    assert (await raw(member, "runs/log-batch", body.encode())).status_code == 200
    found = await member.read("metrics/get-history", run_id=run, metric_key="a")
    assert [(m["step"], m["value"]) for m in found["metrics"]] == [
        (1, "NaN"),
        (2, "NaN"),
        (3, "-Infinity"),
        (4, "Infinity"),
    ]


async def test_a_parameter_never_changes(member: Asker) -> None:
    run = await member.run()
    for _ in range(2):
        await member.ok("runs/log-parameter", run_id=run, key="lr", value="0.1")
    answer = await member.post("runs/log-parameter", run_id=run, key="lr", value="0.2")
    assert answer.status_code == 400
    assert "Changing param values is not allowed" in answer.json()["message"]
    batch = await member.post(
        "runs/log-batch",
        run_id=run,
        metrics=[METRIC],
        params=[{"key": "lr", "value": "0.3"}, {"key": "new", "value": "1"}],
        tags=[{"key": "t", "value": "1"}],
    )
    assert batch.status_code == 400
    data = (await member.read("runs/get", run_id=run))["run"]["data"]
    assert data["params"] == [{"key": "lr", "value": "0.1"}]
    assert data["metrics"] == []


async def test_a_deleted_run_takes_nothing_until_it_is_restored(member: Asker) -> None:
    run = await member.run()
    for _ in range(2):
        await member.ok("runs/delete", run_id=run)
    answer = await member.post("runs/log-metric", run_id=run, **METRIC)
    assert (answer.status_code, answer.json()["error_code"]) == (400, "INVALID_PARAMETER_VALUE")
    await member.ok("runs/restore", run_id=run)
    await member.ok("runs/log-metric", run_id=run, **METRIC)


async def test_an_experiment_goes_and_comes_with_its_runs(member: Asker) -> None:
    experiment = await member.experiment()
    run = await member.run(experiment)
    await member.ok("experiments/delete", experiment_id=experiment)
    stage = (await member.read("runs/get", run_id=run))["run"]["info"]["lifecycle_stage"]
    assert stage == "deleted"
    answer = await member.post("runs/create", experiment_id=experiment)
    assert answer.json()["error_code"] == "INVALID_PARAMETER_VALUE"
    assert (await member.post("experiments/delete", experiment_id=experiment)).status_code == 404
    answer = await member.post("experiments/update", experiment_id=experiment, new_name="x")
    assert (answer.status_code, answer.json()["error_code"]) == (400, "INVALID_STATE")
    await member.ok("experiments/restore", experiment_id=experiment)
    stage = (await member.read("runs/get", run_id=run))["run"]["info"]["lifecycle_stage"]
    assert stage == "active"


async def test_the_audit_tells_of_runs_and_not_of_metrics(
    tracking: Tracking, member: Asker
) -> None:
    experiment = await member.experiment("e")
    run = await member.run(experiment)
    await member.ok("runs/log-metric", run_id=run, **METRIC)
    for _ in range(2):
        await member.ok("runs/update", run_id=run, status="FINISHED", end_time=5)
    await member.ok("runs/delete", run_id=run)
    await member.ok("runs/restore", run_id=run)
    await member.ok("experiments/update", experiment_id=experiment, new_name="f")
    await member.ok("experiments/delete", experiment_id=experiment)
    async with tracking.ctx.db.reading() as tx:
        rows = await tx.fetch(
            "SELECT action, actor, object FROM audit WHERE object ~ '^(experiment|tracked_run):' "
            "ORDER BY seq"
        )
    assert [row["action"] for row in rows] == [
        "experiment.created",
        "tracked_run.created",
        "tracked_run.finished",
        "tracked_run.deleted",
        "tracked_run.restored",
        "experiment.renamed",
        "experiment.deleted",
    ]
    assert {row["actor"] for row in rows} == {"user:member@example.org"}
    assert {row["object"] for row in rows} == {f"experiment:{experiment}", f"tracked_run:{run}"}


async def test_the_name_of_a_run_and_its_tag_stay_the_same(member: Asker) -> None:
    run = await member.run(run_name="first")

    async def names() -> set[str]:
        found = (await member.read("runs/get", run_id=run))["run"]
        tags = {t["key"]: t["value"] for t in found["data"]["tags"]}
        return {found["info"]["run_name"], tags["mlflow.runName"]}

    assert await names() == {"first"}
    await member.ok("runs/update", run_id=run, run_name="second")
    assert await names() == {"second"}
    await member.ok("runs/set-tag", run_id=run, key="mlflow.runName", value="third")
    assert await names() == {"third"}
    made = await member.ok(
        "runs/create", experiment_id="0", tags=[{"key": "mlflow.runName", "value": "tagged"}]
    )
    assert made["run"]["info"]["run_name"] == "tagged"
    answer = await member.post(
        "runs/create",
        experiment_id="0",
        run_name="a",
        tags=[{"key": "mlflow.runName", "value": "b"}],
    )
    assert answer.status_code == 400


async def test_writers_of_one_run_at_once_lose_nothing(member: Asker) -> None:
    run = await member.run()

    async def write(worker: int) -> None:
        for i in range(5):
            step = worker * 100 + i
            keys = ["a", "b", f"own-{worker}"]
            metrics = [
                {"key": key, "value": step, "timestamp": step, "step": step}
                for key in (keys if worker % 2 else reversed(keys))
            ]
            await member.ok("runs/log-batch", run_id=run, metrics=metrics)

    await asyncio.gather(*(write(worker) for worker in range(8)))
    data = (await member.read("runs/get", run_id=run))["run"]["data"]
    latest = {m["key"]: m["step"] for m in data["metrics"]}
    assert latest["a"] == latest["b"] == 704
    assert latest["own-3"] == 304
    found = await member.read("metrics/get-history", run_id=run, metric_key="a")
    assert len({m["step"] for m in found["metrics"]}) == len(found["metrics"]) == 40


async def test_a_batch_that_is_sent_again_is_there_once(member: Asker) -> None:
    run = await member.run()
    metrics = [{"key": "m", "value": "NaN" if i % 2 else i, "timestamp": i} for i in range(200)]
    for _ in range(2):
        await member.ok("runs/log-batch", run_id=run, metrics=metrics)
    found = await member.read("metrics/get-history", run_id=run, metric_key="m")
    assert len(found["metrics"]) == 200


async def test_the_history_of_models_grows_as_older_clients_expect(member: Asker) -> None:
    run = await member.run()
    model = {"artifact_path": "a", "flavors": {}, "utc_time_created": "x", "run_id": run}
    for path in ("a", "b"):
        document = json.dumps(model | {"artifact_path": path})
        await member.ok("runs/log-model", run_id=run, model_json=document)
    for wrong in ("", "x", "[]", '{"artifact_path": "a"}'):
        answer = await member.post("runs/log-model", run_id=run, model_json=wrong)
        assert answer.status_code == 400
    tags = (await member.read("runs/get", run_id=run))["run"]["data"]["tags"]
    history = next(t["value"] for t in tags if t["key"] == "mlflow.log-model.history")
    assert [one["artifact_path"] for one in json.loads(history)] == ["a", "b"]


async def test_the_server_tells_what_it_is(api: httpx2.AsyncClient) -> None:
    for base in ("/mlflow", "/mlflow/ours"):
        assert (await api.get(f"{base}/health")).text == "OK"
        assert (await api.get(f"{base}/version")).text.startswith("3.")
        info = await api.get(f"{base}/api/3.0/mlflow/server-info")
        assert info.json()["multipart_uploads_enabled"] is False
        assert (await api.get(f"{base}/nothing")).status_code == 404


@pytest.mark.parametrize("prefix", ["/mlflow/api/3.0", "/mlflow/ajax-api/2.0"])
async def test_the_other_addresses_of_the_api_lead_to_the_same(
    tracking: Tracking, api: httpx2.AsyncClient, prefix: str
) -> None:
    headers = bearer(tracking.cast.member.token)
    answer = await api.post(
        f"{prefix}/mlflow/experiments/create", json={"name": "a"}, headers=headers
    )
    assert answer.status_code == 200
    made = await api.post(
        f"{prefix}/mlflow/runs/create", json={"experiment_id": "0"}, headers=headers
    )
    run = made.json()["run"]["info"]["run_id"]
    metric = json.dumps({"run_id": run, **METRIC})
    answer = await api.post(f"{prefix}/mlflow/runs/log-metric", content=metric, headers=headers)
    assert answer.json() == {}


async def test_an_address_that_only_looks_like_one_is_none(
    tracking: Tracking, api: httpx2.AsyncClient
) -> None:
    headers = bearer(tracking.cast.member.token)
    for path in ("/mlflow/apis/2.0/mlflow/experiments/search", "/mlflow/api/9.9/mlflow/runs/get"):
        method = "POST" if path.endswith("search") else "GET"
        answer = await api.request(method, path, headers=headers)
        assert (answer.status_code, answer.json()["error_code"]) == (404, "ENDPOINT_NOT_FOUND")
    answer = await api.get("/mlflow/api/2.0/mlflow/runs/log-batch", headers=headers)
    assert (answer.status_code, answer.json()["error_code"]) == (404, "ENDPOINT_NOT_FOUND")
