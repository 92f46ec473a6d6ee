"""Experiments belong to exactly one project; how a client says which."""

from __future__ import annotations

import httpx2
import pytest

from tests.api.mlflow.ask import Asker
from tests.api.mlflow.rig import RUN_ID, Tracking, make_step
from tests.rig.people import SYSTEM
from verderer.core.model.actor import Role
from verderer.core.model.ids import run_id_text
from verderer.usecases.people.projects import put_member


async def join_both(tracking: Tracking) -> str:
    """Make the member one of both projects; return the token."""
    member = tracking.cast.member
    await put_member(tracking.ctx, SYSTEM, "theirs", email=member.email, role=Role.MEMBER)
    return member.token


async def project_of(tracking: Tracking, experiment: str) -> tuple[str, str]:
    async with tracking.ctx.db.reading() as tx:
        row = await tx.fetchrow(
            "SELECT p.name, e.name FROM tracking_experiments AS e "
            "JOIN projects AS p ON p.id = e.project_id WHERE e.id = $1",
            int(experiment),
        )
    return tuple(row.values())


async def test_the_only_project_need_not_be_named(
    tracking: Tracking, api: httpx2.AsyncClient
) -> None:
    member = Asker(api, tracking.cast.member.token)
    assert await project_of(tracking, await member.experiment("a")) == ("ours", "a")
    assert await project_of(tracking, await member.experiment("ours/b")) == ("ours", "b")
    assert await project_of(tracking, await member.experiment("team/c")) == ("ours", "team/c")
    found = await member.read("experiments/get-by-name", experiment_name="ours/a")
    assert found["experiment"]["name"] == "a"


async def test_of_several_projects_one_must_be_named(
    tracking: Tracking, api: httpx2.AsyncClient
) -> None:
    token = await join_both(tracking)
    both = Asker(api, token)
    for tail, body in (
        ("experiments/create", {"name": "a"}),
        ("runs/create", {"experiment_id": "0"}),
    ):
        answer = await both.post(tail, **body)
        assert answer.status_code == 400
        assert "verderer.project" in answer.json()["message"]
    tagged = await both.ok(
        "experiments/create", name="a", tags=[{"key": "verderer.project", "value": "theirs"}]
    )
    assert await project_of(tracking, tagged["experiment_id"]) == ("theirs", "a")
    assert await project_of(tracking, await both.experiment("ours/a")) == ("ours", "a")
    mounted = Asker(api, token, "/mlflow/theirs")
    assert await project_of(tracking, await mounted.experiment("b")) == ("theirs", "b")
    assert await project_of(tracking, await mounted.experiment("ours/b")) == ("theirs", "ours/b")


async def test_names_say_their_project_where_several_are_seen(
    tracking: Tracking, api: httpx2.AsyncClient
) -> None:
    token = await join_both(tracking)
    both = Asker(api, token)
    await both.experiment("ours/a")
    await both.experiment("theirs/a")
    await both.experiment("theirs/b")
    found = await both.ok("experiments/search", order_by=["name"])
    assert [e["name"] for e in found["experiments"]] == ["ours/a", "theirs/a", "theirs/b"]
    found = await both.ok("experiments/search", filter="name LIKE 'theirs/%'", order_by=["name"])
    assert [e["name"] for e in found["experiments"]] == ["theirs/a", "theirs/b"]
    within = Asker(api, token, "/mlflow/theirs")
    found = await within.ok("experiments/search", order_by=["name DESC"])
    assert [e["name"] for e in found["experiments"]] == ["b", "a"]
    one = await both.read("experiments/get-by-name", experiment_name="b")
    assert one["experiment"]["name"] == "theirs/b"
    answer = await both.get("experiments/get-by-name", experiment_name="a")
    assert (answer.status_code, answer.json()["error_code"]) == (400, "INVALID_PARAMETER_VALUE")


async def test_a_name_is_unique_in_its_project_even_when_deleted(
    tracking: Tracking, api: httpx2.AsyncClient
) -> None:
    member, stranger = (
        Asker(api, person.token) for person in (tracking.cast.member, tracking.cast.stranger)
    )
    made = await member.experiment("a")
    await stranger.experiment("a")
    answer = await member.post("experiments/create", name="a")
    assert (answer.status_code, answer.json()["error_code"]) == (400, "RESOURCE_ALREADY_EXISTS")
    await member.ok("experiments/delete", experiment_id=made)
    answer = await member.post("experiments/create", name="a")
    assert answer.json()["error_code"] == "RESOURCE_ALREADY_EXISTS"


async def test_an_experiment_does_not_move_to_another_project(
    tracking: Tracking, api: httpx2.AsyncClient
) -> None:
    both = Asker(api, await join_both(tracking))
    made = await both.experiment("ours/a")
    answer = await both.post("experiments/update", experiment_id=made, new_name="theirs/a")
    assert answer.status_code == 400
    await both.ok("experiments/update", experiment_id=made, new_name="ours/b")
    assert await project_of(tracking, made) == ("ours", "b")


async def test_a_project_may_be_called_as_a_part_of_the_address(
    tracking: Tracking, api: httpx2.AsyncClient
) -> None:
    from verderer.usecases.people.projects import create_project

    for name in ("api", "version", "mlflow"):
        await create_project(tracking.ctx, SYSTEM, name=name)
        root = Asker(api, tracking.cast.root.token, f"/mlflow/{name}")
        assert await project_of(tracking, await root.experiment("a")) == (name, "a")
        run = await root.run()
        await root.ok("runs/log-metric", run_id=run, key="m", value=1, timestamp=1)


async def test_a_steps_runs_are_tied_to_the_step(
    tracking: Tracking, api: httpx2.AsyncClient
) -> None:
    step = Asker(api, await make_step(tracking.ctx, pipeline="iris", step="fit"))
    spoof = [{"key": "verderer.run", "value": "x"}, {"key": "a", "value": "b"}]
    run = (await step.ok("runs/create", experiment_id="0", tags=spoof))["run"]
    tags = {t["key"]: t["value"] for t in run["data"]["tags"]}
    assert tags["verderer.run"] == run_id_text(RUN_ID)
    assert tags["verderer.step"] == "fit"
    assert tags["a"] == "b"
    experiment = run["info"]["experiment_id"]
    assert await project_of(tracking, experiment) == ("ours", "iris")
    named = await step.read("experiments/get-by-name", experiment_name="Default")
    assert named["experiment"]["experiment_id"] == experiment
    async with tracking.ctx.db.reading() as tx:
        row = await tx.fetchrow("SELECT run_id, step_idx, attempt FROM tracking_runs")
    assert tuple(row.values()) == (RUN_ID, 0, 1)
    found = await step.ok(
        "runs/search",
        experiment_ids=["0"],
        filter=f"tags.verderer.run = '{run_id_text(RUN_ID)}'",
    )
    assert len(found["runs"]) == 1


@pytest.mark.parametrize("key", ["verderer.run", "verderer.step"])
async def test_nobody_changes_which_step_a_run_belongs_to(
    tracking: Tracking, api: httpx2.AsyncClient, key: str
) -> None:
    step = Asker(api, await make_step(tracking.ctx))
    run = await step.run()
    for tail, body in (
        ("runs/set-tag", {"key": key, "value": "x"}),
        ("runs/delete-tag", {"key": key}),
        ("runs/log-batch", {"tags": [{"key": key, "value": "x"}]}),
    ):
        assert (await step.post(tail, run_id=run, **body)).status_code == 400


async def test_the_default_experiment_is_made_by_its_first_use_alone(
    tracking: Tracking, api: httpx2.AsyncClient
) -> None:
    reader, member = (
        Asker(api, person.token) for person in (tracking.cast.reader, tracking.cast.member)
    )
    assert (await reader.get("experiments/get", experiment_id="0")).status_code == 403
    assert (await reader.ok("runs/search", experiment_ids=["0"]))["runs"] == []
    made = await member.read("experiments/get", experiment_id="0")
    assert made["experiment"]["name"] == "Default"
    again = await reader.read("experiments/get", experiment_id="0")
    assert again == made
