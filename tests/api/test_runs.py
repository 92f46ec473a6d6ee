"""Submitting runs, looking at them and their parts, and changing them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.api.platform import CHAIN, HUGE, ONE, Platform
from tests.usecases.world import OK, failed
from verderer.core.model.attempt import AttemptState, End, EndCause
from verderer.core.model.ids import parse_run_id
from verderer.core.model.waiting import Pending, Waiting
from verderer.usecases.agents.receive_waits import receive_waits


async def test_a_run_is_made_and_found_at_its_address(platform: Platform) -> None:
    body = {"pipeline": CHAIN, "project": "ours", "parameters": {"epochs": 7}}
    made = await platform.ask(platform.cast.member, "POST", "/runs", body)
    assert made.status_code == 201
    run = made.json()
    assert len(run["id"]) == 13
    assert made.headers["location"] == f"/api/v1/runs/{run['id']}"
    assert run["url"].endswith(f"/runs/{run['id']}")
    found = await platform.ask(platform.cast.member, "GET", f"/runs/{run['id']}")
    shown = found.json()
    assert shown["state"] == "queued"
    assert shown["parameters"] == {"epochs": "7"}
    assert shown["labels"] == {"team": "vision"}
    assert shown["counts"] == {"waiting": 2}
    assert shown["pipeline"] == CHAIN
    assert shown["actor"] == "user:member@example.org"


async def test_an_unchanged_run_is_answered_with_304(platform: Platform) -> None:
    path = f"/runs/{await platform.submit()}"
    tag = (await platform.ask(platform.cast.member, "GET", path)).headers["etag"]
    again = await platform.ask(platform.cast.member, "GET", path, headers={"if-none-match": tag})
    assert again.status_code == 304
    await platform.start()
    changed = await platform.ask(platform.cast.member, "GET", path, headers={"if-none-match": tag})
    assert changed.status_code == 200
    assert changed.json()["counts"] == {"running": 1, "waiting": 1}


async def test_the_same_key_gives_the_same_run(platform: Platform) -> None:
    body = {"pipeline": ONE, "project": "ours"}
    key = {"Idempotency-Key": "build 17"}
    first = await platform.ask(platform.cast.member, "POST", "/runs", body, headers=key)
    again = await platform.ask(platform.cast.member, "POST", "/runs", body, headers=key)
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json()["id"] == again.json()["id"]
    other = await platform.ask(
        platform.cast.member, "POST", "/runs", body | {"pipeline": CHAIN}, headers=key
    )
    assert other.status_code == 409


@pytest.mark.parametrize(
    ("body", "field"),
    [
        pytest.param({"pipeline": ONE, "nodes": 3}, "nodes", id="an unknown member"),
        pytest.param({"project": "ours"}, "pipeline", id="no pipeline"),
        pytest.param({"pipeline": ONE, "parameters": {"x": None}}, "", id="a null parameter"),
        pytest.param({"pipeline": 17}, "pipeline", id="a pipeline that is no text"),
    ],
)
async def test_a_body_of_another_form_is_refused(
    platform: Platform, body: dict[str, Any], field: str
) -> None:
    answer = await platform.ask(platform.cast.member, "POST", "/runs", body)
    assert answer.status_code == 422
    assert field in str(answer.json()["problems"])


async def test_a_malformed_pipeline_is_refused_with_its_places(platform: Platform) -> None:
    text = "metadata: {name: x}\nsteps:\n  - name: a\n    comand: [x]\n"
    body = {"pipeline": text, "project": "ours"}
    answer = await platform.ask(platform.cast.member, "POST", "/runs", body)
    assert answer.status_code == 422
    places = answer.json()["problems"]
    assert any(p.get("line") == 4 and "command" in p.get("hint", "") for p in places)


async def test_a_lone_surrogate_in_a_pipeline_is_refused(platform: Platform) -> None:
    raw = b'{"project": "ours", "pipeline": "\\ud800"}'
    answer = await platform.ask(
        platform.cast.member,
        "POST",
        "/runs",
        content=raw,
        headers={"content-type": "application/json"},
    )
    assert answer.status_code in (400, 422)


async def test_a_batch_answers_each_run_in_its_place(platform: Platform) -> None:
    runs = [
        {"parameters": {"epochs": 1}},
        {"parameters": {"epoch": 1}},
        {"pipeline": ONE},
        {"pipeline": "nonsense"},
        {"pipeline": ONE, "project": "theirs"},
    ]
    body = {"pipeline": CHAIN, "project": "ours", "runs": runs}
    key = {"Idempotency-Key": "sweep"}
    answer = await platform.ask(platform.cast.member, "POST", "/runs/batch", body, headers=key)
    items = answer.json()["items"]
    assert [item["status"] for item in items] == [201, 422, 201, 422, 404]
    assert "epochs" in str(items[1]["problem"])
    assert items[2]["run"]["name"] == "one"
    again = await platform.ask(platform.cast.member, "POST", "/runs/batch", body, headers=key)
    assert [i["status"] for i in again.json()["items"]] == [200, 422, 200, 422, 404]
    assert again.json()["items"][0]["run"]["id"] == items[0]["run"]["id"]


@pytest.mark.parametrize(
    "runs",
    [
        pytest.param([], id="none"),
        pytest.param([{"pipeline": ONE}] * 1001, id="more than a thousand"),
        pytest.param([{"pipeline": ONE}, {}], id="one without a pipeline"),
    ],
)
async def test_a_batch_of_another_form_is_refused(
    platform: Platform, runs: list[dict[str, Any]]
) -> None:
    body = {"project": "ours", "runs": runs}
    answer = await platform.ask(platform.cast.member, "POST", "/runs/batch", body)
    assert answer.status_code == 422


async def test_a_thousand_runs_of_one_text_are_committed_at_once(platform: Platform) -> None:
    body = {"project": "ours", "runs": [{"pipeline": ONE}] * 1000}
    answer = await platform.ask(platform.cast.member, "POST", "/runs/batch", body)
    items = answer.json()["items"]
    assert {item["status"] for item in items} == {201}
    assert len({item["run"]["id"] for item in items}) == 1000


async def test_runs_are_listed_by_page_and_by_filter(platform: Platform) -> None:
    ids = [await platform.submit(ONE) for _ in range(5)]
    chain = await platform.submit()
    member = platform.cast.member

    async def listed(**query: Any) -> list[str]:
        found, after = [], ""
        while True:
            answer = await platform.ask(
                member, "GET", "/runs", params={"limit": 2, "after": after, **query}
            )
            assert answer.status_code == 200, answer.text
            page = answer.json()
            found += [run["id"] for run in page["items"]]
            if page["next"] is None:
                return found
            after = page["next"]

    everything = sorted([*ids, chain], key=parse_run_id, reverse=True)
    assert await listed() == everything
    assert await listed(order="oldest") == everything[::-1]
    assert await listed(name="chain") == [chain]
    assert await listed(label="team=vision") == [chain]
    assert await listed(q="CHA") == [chain]
    assert await listed(q=ids[0]) == [ids[0]]
    assert await listed(actor="member") == everything
    assert await listed(actor="nobody") == []
    assert await listed(project="ours", state="queued") == everything
    assert await listed(state=["failed", "running"]) == []
    assert await listed(cluster="local") == []
    await platform.start()
    assert len(await listed(cluster="local")) > 0


@pytest.mark.parametrize(
    ("query", "status"),
    [
        pytest.param({"state": "sleeping"}, 422, id="a state that there is not"),
        pytest.param({"label": "team"}, 422, id="a label without a value"),
        pytest.param({"order": "random"}, 422, id="another order"),
        pytest.param({"limit": 0}, 422, id="no items"),
        pytest.param({"after": "xyz"}, 422, id="a made-up cursor"),
        pytest.param({"project": "theirs"}, 404, id="a project of others"),
        pytest.param({"project": "nowhere"}, 404, id="a project that there is not"),
    ],
)
async def test_a_list_that_cannot_be_is_refused(
    platform: Platform, query: dict[str, Any], status: int
) -> None:
    answer = await platform.ask(platform.cast.member, "GET", "/runs", params=query)
    assert answer.status_code == status, answer.text


async def test_steps_are_read_by_name_and_by_index(platform: Platform) -> None:
    run = await platform.submit()
    member = platform.cast.member
    key = (await platform.start())[0]
    page = (await platform.ask(member, "GET", f"/runs/{run}/steps", params={"limit": 1})).json()
    assert [step["name"] for step in page["items"]] == ["first"]
    second = await platform.ask(member, "GET", f"/runs/{run}/steps", params={"after": page["next"]})
    assert [step["name"] for step in second.json()["items"]] == ["second"]
    await platform.end(key, failed(3))
    for name in ("first", "0"):
        step = (await platform.ask(member, "GET", f"/runs/{run}/steps/{name}")).json()
        assert step["state"] == "failed"
        assert step["requests"] == {}
        assert [a["exit_code"] for a in step["history"]] == [3]
        assert step["attempt"]["cause"] == "exit"
    for name in ("third", "2", "-1", "99999999999999999999", "%00"):
        answer = await platform.ask(member, "GET", f"/runs/{run}/steps/{name}")
        assert answer.status_code in (400, 404), name


async def test_what_was_done_is_listed_newest_first(platform: Platform) -> None:
    run = await platform.submit()
    await platform.ask(platform.cast.member, "POST", f"/runs/{run}/cancel")
    answer = await platform.ask(platform.cast.member, "GET", f"/runs/{run}/events")
    actions = [event["action"] for event in answer.json()["items"]]
    assert actions[-1] == "run.submitted"
    assert "run.cancelled" in actions


async def test_a_run_is_cancelled_retried_and_cloned(platform: Platform) -> None:
    member = platform.cast.member
    run = await platform.submit()
    early = await platform.ask(member, "POST", f"/runs/{run}/retry")
    assert (early.status_code, early.json()["code"]) == (409, "illegal_move")
    cancelled = await platform.ask(member, "POST", f"/runs/{run}/cancel")
    assert (cancelled.status_code, cancelled.json()["state"]) == (202, "cancelled")
    again = await platform.ask(member, "POST", f"/runs/{run}/cancel")
    assert again.status_code == 409
    retried = await platform.ask(member, "POST", f"/runs/{run}/retry", {"all": True})
    assert (retried.status_code, retried.json()["state"]) == (202, "queued")
    cloned = await platform.ask(member, "POST", f"/runs/{run}/clone", {"parameters": {"epochs": 9}})
    assert cloned.status_code == 201
    copy = (await platform.ask(member, "GET", f"/runs/{cloned.json()['id']}")).json()
    assert (copy["cloned_from"], copy["parameters"]) == (run, {"epochs": "9"})
    plain = await platform.ask(member, "POST", f"/runs/{run}/clone")
    assert plain.status_code == 201
    wrong = await platform.ask(member, "POST", f"/runs/{run}/clone", {"parameters": {"epoch": 1}})
    assert wrong.status_code == 422


async def test_nothing_is_retried_when_nothing_failed(platform: Platform) -> None:
    run = await platform.submit(ONE)
    await platform.end((await platform.start())[0], OK)
    answer = await platform.ask(platform.cast.member, "POST", f"/runs/{run}/retry", {})
    assert (answer.status_code, answer.json()["code"]) == (409, "conflict")


class TestWhy:
    async def why(self, platform: Platform, run: str) -> dict[str, dict[str, Any]]:
        answer = await platform.ask(platform.cast.member, "GET", f"/runs/{run}/why")
        assert answer.status_code == 200, answer.text
        found = {one["step"]: one for one in answer.json()["items"]}
        for name, one in found.items():
            alone = await platform.ask(platform.cast.member, "GET", f"/runs/{run}/steps/{name}/why")
            assert [r["code"] for r in alone.json()["reasons"]] == [
                r["code"] for r in one["reasons"]
            ]
        return found

    async def test_a_failure_is_told_with_what_lies_behind_it(self, platform: Platform) -> None:
        run = await platform.submit(ONE)
        key = (await platform.start())[0]
        await platform.write_log(key, b"epoch 1\ntorch.OutOfMemoryError: CUDA out of memory.\n")
        await platform.end(key, End(cause=EndCause.EXIT, exit_code=1))
        path = f"/runs/{run}/steps/only/why"
        ended = (await platform.ask(platform.cast.member, "GET", path)).json()["ended"]
        assert ended == {
            "attempt": 1,
            "message": "exited with code 1",
            "code": "gpu_memory",
            "behind": "the memory of its GPU was not enough",
            "change": "make the batch or the model smaller, or ask for a GPU with more memory",
        }

    async def test_a_failure_that_nothing_explains_is_left_at_that(
        self, platform: Platform
    ) -> None:
        run = await platform.submit(ONE)
        await platform.end((await platform.start())[0], End(cause=EndCause.EXIT, exit_code=3))
        path = f"/runs/{run}/steps/only/why"
        ended = (await platform.ask(platform.cast.member, "GET", path)).json()["ended"]
        assert ended == {"attempt": 1, "message": "exited with code 3"}

    async def test_a_new_run_waits_for_a_scheduler_when_there_is_none(
        self, platform: Platform
    ) -> None:
        run = await platform.submit()
        found = await self.why(platform, run)
        assert found["first"]["reasons"][0]["code"] == "no_scheduler"
        assert "verderer scheduler" in found["first"]["reasons"][0]["change"]
        assert found["second"]["reasons"][0]["code"] == "needs"
        assert found["second"]["reasons"][0]["others"] == ["first"]

    async def test_a_new_run_is_being_placed_while_a_scheduler_leads(
        self, platform: Platform
    ) -> None:
        await platform.world.lead()
        found = await self.why(platform, await platform.submit())
        assert [r["code"] for r in found["first"]["reasons"]] == ["placing"]

    async def test_what_cannot_be_placed_says_so_for_each_cluster_with_numbers(
        self, platform: Platform
    ) -> None:
        await platform.world.add_cluster("gpus", {"cpu": 8000, "nvidia.com/gpu": 4000})
        run = await platform.submit(HUGE)
        await platform.world.place()
        found = await self.why(platform, run)
        reasons = {r["cluster"]: r for r in found["big"]["reasons"]}
        assert reasons["local"]["code"] == "no_such_resource"
        assert reasons["gpus"]["code"] == "node_too_small"
        assert (reasons["gpus"]["asked"], reasons["gpus"]["total"]) == ("8", "4")
        assert reasons["gpus"]["never"] is True
        assert "4 nvidia.com/gpu" in reasons["gpus"]["message"]
        assert reasons["gpus"]["change"]

    async def test_a_pause_between_attempts_is_a_reason_with_its_seconds(
        self, platform: Platform
    ) -> None:
        text = ONE + "    retries: {count: 2, backoff: 60s}\n"
        run = await platform.submit(text)
        await platform.end((await platform.start())[0], failed())
        reason = (await self.why(platform, run))["only"]["reasons"][0]
        assert reason["code"] == "backoff"
        assert 50 < reason["seconds"] <= 60

    async def test_a_silent_cluster_is_why_nobody_knows(self, platform: Platform) -> None:
        run = await platform.submit(ONE)
        await platform.start()
        assert await self.why(platform, run) == {}
        async with platform.world.ctx.db.transaction() as tx:
            await tx.execute("UPDATE heartbeats SET seen_at = now() - interval '4 minutes'")
        found = await self.why(platform, run)
        assert found["only"]["state"] == "unknown"
        reason = found["only"]["reasons"][0]
        assert (reason["code"], reason["cluster"]) == ("offline", "local")
        assert 235 < reason["seconds"] < 260

    async def test_what_has_not_begun_on_its_cluster_is_explained_by_that(
        self, platform: Platform
    ) -> None:
        run = await platform.submit(ONE)
        await platform.world.place()
        found = await self.why(platform, run)
        assert found["only"]["state"] == "starting"
        assert found["only"]["reasons"][0]["code"] == "assigned"
        key = (await platform.world.orders())[0].key
        waits = Waiting(
            code=Pending.RESOURCES, message="0/2 nodes are available", numbers={"nodes": 2}
        )
        world = platform.world
        await receive_waits(
            world.ctx, world.agents["local"], epoch=world.epochs["local"], told={key: waits}
        )
        found = await self.why(platform, run)
        reason = found["only"]["reasons"][0]
        assert (reason["code"], reason["cluster"]) == ("resources", "local")
        assert (reason["message"], reason["numbers"]) == (waits.message, {"nodes": 2})
        assert found["only"]["nearest"] == reason["change"] == waits.change

    async def test_what_is_over_does_not_wait(self, platform: Platform) -> None:
        run = await platform.submit(ONE)
        await platform.end((await platform.start())[0], OK)
        assert await self.why(platform, run) == {}
        alone = await platform.ask(platform.cast.member, "GET", f"/runs/{run}/steps/only/why")
        assert (alone.json()["state"], alone.json()["reasons"]) == ("succeeded", [])


async def test_an_attempt_says_how_it_ended(platform: Platform) -> None:
    run = await platform.submit(ONE)
    key = (await platform.start())[0]
    await platform.world.report(key, AttemptState.RUNNING)
    await platform.end(key, End(cause=EndCause.OOM, message="more than 1Gi"))
    step = (await platform.ask(platform.cast.member, "GET", f"/runs/{run}/steps/0")).json()
    assert (step["attempt"]["cause"], step["attempt"]["message"]) == ("oom", "more than 1Gi")
