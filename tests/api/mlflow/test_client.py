"""MLflow's own client, unmodified, against a real server."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.api.mlflow.rig import RUN_ID, Tracking, in_thread, make_step
from verderer.core.model.ids import run_id_text

Become = Callable[[str, str], Any]


async def test_the_fluent_interface_works_from_begin_to_end(
    tracking: Tracking, server: str, as_user: Become
) -> None:
    def work() -> None:
        import mlflow

        client = as_user(f"{server}/mlflow", tracking.cast.member.token)
        mlflow.set_experiment("first")
        with mlflow.start_run(run_name="try", description="words") as run:
            mlflow.log_param("lr", 0.1)
            mlflow.log_params({"depth": 3, "kind": "tree"})
            for step in range(5):
                mlflow.log_metric("loss", 1 / (step + 1), step=step)
            mlflow.log_metrics({"acc": 0.5, "auc": 0.75}, step=2)
            mlflow.set_tags({"team": "forest"})
            mlflow.log_text("hello", "notes/hello.txt")
            mlflow.log_dict({"a": 1}, "config.json")
            with mlflow.start_run(nested=True) as child:
                mlflow.log_metric("acc", 0.1)
        found = client.get_run(run.info.run_id)
        assert found.info.status == "FINISHED"
        assert found.info.end_time >= found.info.start_time
        assert found.info.run_name == "try"
        assert found.data.params == {"lr": "0.1", "depth": "3", "kind": "tree"}
        assert found.data.metrics == {"loss": 0.2, "acc": 0.5, "auc": 0.75}
        assert found.data.tags["team"] == "forest"
        history = client.get_metric_history(run.info.run_id, "loss")
        assert [m.step for m in history] == list(range(5))
        files = client.list_artifacts(run.info.run_id)
        assert [f.path for f in files] == ["config.json", "notes"]
        assert mlflow.artifacts.load_text(f"{found.info.artifact_uri}/notes/hello.txt") == "hello"
        runs = mlflow.search_runs(
            experiment_names=["first"], filter_string="metrics.acc > 0.4", output_format="list"
        )
        assert [r.info.run_id for r in runs] == [run.info.run_id]
        of_parent = client.search_runs(
            [found.info.experiment_id], f"tags.mlflow.parentRunId = '{run.info.run_id}'"
        )
        assert [r.info.run_id for r in of_parent] == [child.info.run_id]

    await in_thread(work)


async def test_a_run_that_fails_says_so(tracking: Tracking, server: str, as_user: Become) -> None:
    def work() -> None:
        import mlflow

        client = as_user(f"{server}/mlflow", tracking.cast.member.token)
        with pytest.raises(ZeroDivisionError), mlflow.start_run() as run:
            mlflow.log_metric("x", 1 / 0)
        assert client.get_run(run.info.run_id).info.status == "FAILED"

    await in_thread(work)


async def test_experiments_live_their_whole_life(
    tracking: Tracking, server: str, as_user: Become
) -> None:
    def work() -> None:
        from mlflow.entities import ViewType

        client = as_user(f"{server}/mlflow/ours", tracking.cast.member.token)
        made = client.create_experiment("first", tags={"team": "forest"})
        found = client.get_experiment(made)
        assert (found.name, found.tags, found.lifecycle_stage) == (
            "first",
            {"team": "forest"},
            "active",
        )
        assert found.artifact_location == f"mlflow-artifacts:/{made}"
        client.set_experiment_tag(made, "stage", "two")
        client.delete_experiment_tag(made, "team")
        client.rename_experiment(made, "second")
        assert client.get_experiment_by_name("first") is None
        assert client.get_experiment_by_name("second").tags == {"stage": "two"}
        client.create_experiment("third")
        names = [e.name for e in client.search_experiments(order_by=["name DESC"])]
        assert names == ["third", "second"]
        tagged = client.search_experiments(filter_string="tags.stage = 'two' AND name LIKE 'sec%'")
        assert [e.experiment_id for e in tagged] == [made]
        client.delete_experiment(made)
        assert [e.name for e in client.search_experiments()] == ["third"]
        deleted = client.search_experiments(view_type=ViewType.DELETED_ONLY)
        assert [e.name for e in deleted] == ["second"]
        client.restore_experiment(made)
        first = client.search_experiments(max_results=1, order_by=["name ASC"])
        second = client.search_experiments(
            max_results=1, order_by=["name ASC"], page_token=first.token
        )
        assert [e.name for e in (*first, *second)] == ["second", "third"]
        assert not second.token

    await in_thread(work)


async def test_errors_become_the_exceptions_that_users_know(
    tracking: Tracking, server: str, as_user: Become
) -> None:
    def work() -> None:
        from mlflow.exceptions import MlflowException, RestException

        client = as_user(f"{server}/mlflow", tracking.cast.member.token)
        made = client.create_experiment("a")
        run = client.create_run(made).info.run_id

        def code(call: Callable[..., Any], *args: Any, **kwargs: Any) -> str:
            with pytest.raises(MlflowException) as raised:
                call(*args, **kwargs)
            return str(raised.value.error_code)

        assert code(client.create_experiment, "a") == "RESOURCE_ALREADY_EXISTS"
        assert code(client.get_run, "0" * 32) == "RESOURCE_DOES_NOT_EXIST"
        assert code(client.get_experiment, "123") == "RESOURCE_DOES_NOT_EXIST"
        assert code(client.search_runs, [made], "what") == "INVALID_PARAMETER_VALUE"
        client.log_param(run, "p", 1)
        assert code(client.log_param, run, "p", 2) == "INVALID_PARAMETER_VALUE"
        assert code(client.delete_tag, run, "nope") == "RESOURCE_DOES_NOT_EXIST"
        as_user(f"{server}/mlflow", "vrd_u_wrong")
        with pytest.raises(RestException, match="UNAUTHENTICATED"):
            client.get_experiment(made)

    await in_thread(work)


async def test_nan_and_infinities_are_values_like_others(
    tracking: Tracking, server: str, as_user: Become
) -> None:
    def work() -> None:
        client = as_user(f"{server}/mlflow", tracking.cast.member.token)
        experiment = client.create_experiment("a")
        runs = {}
        for name, value in (
            ("nan", math.nan),
            ("high", math.inf),
            ("low", -math.inf),
            ("one", 1.0),
        ):
            runs[name] = client.create_run(experiment, run_name=name).info.run_id
            client.log_metric(runs[name], "m", value)
        client.create_run(experiment, run_name="none")
        assert math.isnan(client.get_run(runs["nan"]).data.metrics["m"])
        assert client.get_metric_history(runs["low"], "m")[0].value == -math.inf

        def found(filter_text: str = "", order: str = "start_time ASC") -> list[str]:
            return [
                r.info.run_name
                for r in client.search_runs([experiment], filter_text, order_by=[order])
            ]

        assert found("metrics.m > 0") == ["high", "one"]
        assert found("metrics.m <= 1") == ["low", "one"]
        assert found("metrics.m != 1") == ["nan", "high", "low"]
        assert found(order="metrics.m ASC") == ["low", "one", "high", "nan", "none"]
        assert found(order="metrics.m DESC") == ["high", "one", "low", "nan", "none"]

    await in_thread(work)


async def test_a_long_history_comes_back_in_pages_and_whole(
    tracking: Tracking, server: str, as_user: Become
) -> None:
    def work() -> None:
        import mlflow
        from mlflow.entities import Metric

        client = as_user(f"{server}/mlflow", tracking.cast.member.token)
        with mlflow.start_run() as active:
            run = active.info.run_id
        metrics = [Metric("loss", i / 7, 1_700_000_000_000 + i, i) for i in range(10_000)]
        for start in range(0, len(metrics), 1_000):
            client.log_batch(run, metrics=metrics[start : start + 1_000])
        history = client.get_metric_history(run, "loss")
        assert [(m.step, m.value, m.timestamp) for m in history] == [
            (m.step, m.value, m.timestamp) for m in metrics
        ]
        store = client._tracking_client.store
        page = store.get_metric_history(run, "loss", max_results=3_000)
        seen = list(page)
        while page.token:
            page = store.get_metric_history(run, "loss", max_results=3_000, page_token=page.token)
            seen += page
        assert [m.step for m in seen] == list(range(10_000))
        assert client.get_run(run).data.metrics == {"loss": metrics[-1].value}

    await in_thread(work)


SEARCHES = [
    ("metrics.acc > 0.5", ["b", "c"]),
    ("metrics.acc >= 0.5 and metrics.acc < 0.9", ["a", "b"]),
    ("metrics.acc != 0.5", ["b", "c"]),
    ("metrics.`val/acc` = 1", ["b"]),
    ("params.lr = '0.1'", ["a", "b"]),
    ("params.lr != '0.1'", ["c"]),
    ("params.\"long name\" LIKE 'x%'", ["c"]),
    ("params.extra IS NULL", ["a", "b"]),
    ("params.extra IS NOT NULL", ["c"]),
    ("tags.team = 'forest' and params.lr = '0.1'", ["a"]),
    ("tags.team ILIKE 'FOR%'", ["a"]),
    ("tags.team LIKE 'FOR%'", []),
    ("tags.team IS NULL", ["b", "c"]),
    ("attributes.status = 'FINISHED'", ["a"]),
    ("status != 'FINISHED'", ["b", "c"]),
    ("attributes.run_name IN ('a', 'c')", ["a", "c"]),
    ("run_name NOT IN ('a', 'c')", ["b"]),
    ("attributes.start_time > 1", ["b", "c"]),
    ("attributes.end_time = 9", ["a"]),
    ("user_id = 'ana'", ["b"]),
    ("artifact_uri LIKE 'mlflow-artifacts:/%/artifacts'", ["a", "b", "c"]),
    ("dataset.name = 'iris'", ["c"]),
    ("datasets.context = 'train'", ["c"]),
    ("dataset.digest LIKE 'd%' and datasets.context != 'train'", []),
    ("tags.q = 'it''s'", ["b"]),
    ("tags.q = 'x'' OR 1=1 --'", []),
]
ORDERS = [
    (["metrics.acc DESC"], ["c", "b", "a"]),
    (["metrics.`val/acc` DESC", "start_time"], ["b", "a", "c"]),
    (["params.lr DESC", "start_time DESC"], ["c", "b", "a"]),
    (["tags.team ASC", "attributes.run_name DESC"], ["a", "c", "b"]),
    (["attributes.end_time"], ["a", "c", "b"]),
    ([], ["c", "b", "a"]),
]


async def test_searches_mean_what_they_say(
    tracking: Tracking, server: str, as_user: Become
) -> None:
    def prepare(client: Any) -> str:
        from mlflow.entities import Dataset, DatasetInput, InputTag

        experiment = str(client.create_experiment("a"))
        runs = {
            name: client.create_run(
                experiment, start_time=at, run_name=name, tags={"mlflow.user": user}
            ).info.run_id
            for at, (name, user) in enumerate([("a", "bob"), ("b", "ana"), ("c", "bob")], 1)
        }
        for name, acc, lr in (("a", 0.5, 0.1), ("b", 0.7, 0.1), ("c", 0.9, 0.2)):
            client.log_metric(runs[name], "acc", acc)
            client.log_param(runs[name], "lr", lr)
        client.log_metric(runs["b"], "val/acc", 1)
        client.log_param(runs["c"], "long name", "xyz")
        client.log_param(runs["c"], "extra", "")
        client.set_tag(runs["a"], "team", "forest")
        client.set_tag(runs["b"], "q", "it's")
        client.set_terminated(runs["a"], "FINISHED", 9)
        given = DatasetInput(
            Dataset("iris", "d1", "local", "{}"), [InputTag("mlflow.data.context", "train")]
        )
        client.log_inputs(runs["c"], [given])
        client.log_inputs(runs["c"], [given])
        read = client.get_run(runs["c"]).inputs.dataset_inputs
        assert [(d.dataset.name, d.tags[0].value) for d in read] == [("iris", "train")]
        return experiment

    def work() -> None:
        client = as_user(f"{server}/mlflow", tracking.cast.member.token)
        experiment = prepare(client)
        for source, expected in SEARCHES:
            found = client.search_runs([experiment], source, order_by=["start_time"])
            assert [r.info.run_name for r in found] == expected, source
        for order, expected in ORDERS:
            found = client.search_runs([experiment], order_by=order)
            assert [r.info.run_name for r in found] == expected, order
        page = client.search_runs([experiment], max_results=2, order_by=["metrics.acc"])
        assert [r.info.run_name for r in page] == ["a", "b"]
        page = client.search_runs(
            [experiment], max_results=2, order_by=["metrics.acc"], page_token=page.token
        )
        assert [r.info.run_name for r in page] == ["c"]
        assert not page.token

    await in_thread(work)


async def test_logged_models_live_their_whole_life(
    tracking: Tracking, server: str, as_user: Become, tmp_path: Path
) -> None:
    def work() -> None:
        import mlflow
        from mlflow.entities import LoggedModelOutput, LoggedModelStatus

        client = as_user(f"{server}/mlflow", tracking.cast.member.token)
        mlflow.set_experiment("a")
        with mlflow.start_run() as run:
            model = mlflow.initialize_logged_model(
                name="tree", params={"depth": 3}, tags={"t": "1"}, source_run_id=run.info.run_id
            )
            (tmp_path / "model.bin").write_bytes(b"weights")
            client.log_model_artifact(model.model_id, str(tmp_path / "model.bin"))
            done = mlflow.finalize_logged_model(model.model_id, LoggedModelStatus.READY)
            mlflow.log_metric("acc", 0.9, step=3, model_id=model.model_id)
            client.log_outputs(run.info.run_id, [LoggedModelOutput(model.model_id, 3)])
        assert done.status == LoggedModelStatus.READY
        found = client.get_logged_model(model.model_id)
        assert (found.name, found.params, found.tags["t"]) == ("tree", {"depth": "3"}, "1")
        assert found.source_run_id == run.info.run_id
        assert [(m.key, m.value, m.step) for m in found.metrics] == [("acc", 0.9, 3)]
        outputs = client.get_run(run.info.run_id).outputs.model_outputs
        assert [(o.model_id, o.step) for o in outputs] == [(model.model_id, 3)]
        assert [f.path for f in client.list_logged_model_artifacts(model.model_id)] == ["model.bin"]
        many = {f"p{i}": i for i in range(250)}
        other = client.create_logged_model(run.info.experiment_id, name="other", params=many)
        assert len(other.params) == 250
        client.set_logged_model_tags(model.model_id, {"t": "2", "u": "3"})
        client.delete_logged_model_tag(model.model_id, "u")
        for source, expected in (
            ("name = 'tree'", ["tree"]),
            ("metrics.acc > 0.5", ["tree"]),
            ("params.depth = 3", ["tree"]),
            ("tags.t = '2'", ["tree"]),
            ("status = 'READY'", ["tree"]),
            ("name IN ('tree', 'other')", ["other", "tree"]),
            ("", ["other", "tree"]),
        ):
            models = client.search_logged_models([run.info.experiment_id], source)
            assert [m.name for m in models] == expected, source
        ordered = client.search_logged_models(
            [run.info.experiment_id], order_by=[{"field_name": "metrics.acc", "ascending": False}]
        )
        assert [m.name for m in ordered] == ["tree", "other"]
        client.delete_logged_model(model.model_id)
        left = client.search_logged_models([run.info.experiment_id])
        assert [m.name for m in left] == ["other"]

    await in_thread(work)


async def test_whole_folders_go_up_and_come_down(
    tracking: Tracking, server: str, as_user: Become, tmp_path: Path
) -> None:
    def work() -> None:
        import mlflow

        as_user(f"{server}/mlflow", tracking.cast.member.token)
        source = tmp_path / "source"
        for name in ("a.txt", "sub/b.bin", "sub/deep/c.txt", "empty"):
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes(b"" if name == "empty" else name.encode() * 1_000)
        with mlflow.start_run() as run:
            mlflow.log_artifacts(str(source), "all")
        down = Path(
            mlflow.artifacts.download_artifacts(
                run_id=run.info.run_id, artifact_path="all", dst_path=str(tmp_path / "down")
            )
        )
        files = {
            p.relative_to(down).as_posix(): p.read_bytes() for p in down.rglob("*") if p.is_file()
        }
        assert files == {
            p.relative_to(source).as_posix(): p.read_bytes()
            for p in source.rglob("*")
            if p.is_file()
        }

    await in_thread(work)


async def test_a_big_upload_falls_back_from_multipart(
    tracking: Tracking,
    server: str,
    as_user: Become,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MLFLOW_ENABLE_PROXY_MULTIPART_UPLOAD", "true")
    monkeypatch.setenv("MLFLOW_MULTIPART_UPLOAD_MINIMUM_FILE_SIZE", "1000")

    def work() -> None:
        import mlflow

        client = as_user(f"{server}/mlflow", tracking.cast.member.token)
        (tmp_path / "big").write_bytes(b"x" * 100_000)
        with mlflow.start_run() as run:
            mlflow.log_artifact(str(tmp_path / "big"))
        assert [f.file_size for f in client.list_artifacts(run.info.run_id)] == [100_000]

    await in_thread(work)


SCRIPT = """
import mlflow
with mlflow.start_run():
    mlflow.log_param("lr", 0.1)
    for i in range(3):
        mlflow.log_metric("loss", 1.0 / (i + 1), step=i)
    mlflow.log_text("hello", "hello.txt")
print(mlflow.last_active_run().info.run_id)
"""


async def test_a_steps_own_program_needs_nothing_but_its_environment(
    tracking: Tracking, server: str, tmp_path: Path
) -> None:
    token = await make_step(tracking.ctx, pipeline="iris", step="fit")
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "MLFLOW_TRACKING_URI": f"{server}/mlflow",
        "MLFLOW_TRACKING_TOKEN": token,
        "MLFLOW_DISABLE_TELEMETRY": "true",
    }

    def work() -> str:
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=90,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip().splitlines()[-1]

    uid = await in_thread(work)
    async with tracking.ctx.db.reading() as tx:
        row = await tx.fetchrow(
            "SELECT replace(r.uid::text, '-', '') AS uid, r.run_id, r.step_idx, r.attempt, "
            "r.status::text, e.name, t.value FROM tracking_runs AS r "
            "JOIN tracking_experiments AS e ON e.id = r.experiment_id "
            "JOIN tracking_tags AS t ON t.tracked_id = r.id AND t.key = 'verderer.run'"
        )
    assert row is not None
    assert tuple(row.values()) == (
        uid,
        RUN_ID,
        0,
        1,
        "FINISHED",
        "iris",
        run_id_text(RUN_ID),
    )
