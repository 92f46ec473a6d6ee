"""MLflow's own client, unmodified, against a real server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.api.mlflow.rig import Tracking, in_thread


async def test_the_fluent_interface_works_from_begin_to_end(
    tracking: Tracking, server: str, as_user: Callable[[str, str], Any]
) -> None:
    def work() -> None:
        import mlflow

        client = as_user(f"{server}/mlflow", tracking.cast.member.token)
        mlflow.set_experiment("first")
        with mlflow.start_run(run_name="try") as run:
            mlflow.log_param("lr", 0.1)
            mlflow.log_params({"depth": 3, "kind": "tree"})
            for step in range(5):
                mlflow.log_metric("loss", 1 / (step + 1), step=step)
            mlflow.log_metrics({"acc": 0.5, "auc": 0.75}, step=2)
            mlflow.set_tags({"team": "forest"})
            mlflow.log_text("hello", "notes/hello.txt")
            mlflow.log_dict({"a": 1}, "config.json")
        found = client.get_run(run.info.run_id)
        assert found.info.status == "FINISHED"
        assert found.info.run_name == "try"
        assert found.data.params == {"lr": "0.1", "depth": "3", "kind": "tree"}
        assert found.data.metrics == {"loss": 0.2, "acc": 0.5, "auc": 0.75}
        assert found.data.tags["team"] == "forest"
        assert [m.step for m in client.get_metric_history(run.info.run_id, "loss")] == list(
            range(5)
        )
        assert [f.path for f in client.list_artifacts(run.info.run_id)] == [
            "config.json",
            "notes",
        ]
        assert mlflow.artifacts.load_text(f"{found.info.artifact_uri}/notes/hello.txt") == "hello"
        runs = mlflow.search_runs(
            experiment_names=["first"], filter_string="metrics.acc > 0.4", output_format="list"
        )
        assert [r.info.run_id for r in runs] == [run.info.run_id]

    await in_thread(work)
