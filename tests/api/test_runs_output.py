"""Output of steps, what a run is doing right now, and what it left: over a real socket."""

from __future__ import annotations

import asyncio
import io
import json
import zipfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
import uvicorn

from tests.api.platform import CHAIN, ONE, Platform
from tests.usecases.world import OK, failed
from verderer.api.runs import log_follow
from verderer.core.model.attempt import AttemptKey, End, EndCause
from verderer.core.model.ids import parse_run_id
from verderer.objects.logs import Gap


@pytest.fixture
async def live(platform: Platform) -> AsyncIterator[httpx2.AsyncClient]:
    """A client whose answers come as they are sent, as `member`."""
    config = uvicorn.Config(
        platform.app, host="127.0.0.1", port=0, lifespan="off", log_config=None, ws="none"
    )
    config.timeout_graceful_shutdown = 1
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve())
    async with asyncio.timeout(10):
        while not server.started:
            await asyncio.sleep(0.005)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        async with httpx2.AsyncClient(
            base_url=f"http://127.0.0.1:{port}/api/v1", headers=platform.cast.member.bearer
        ) as client:
            yield client
    finally:
        server.should_exit = True
        await serving


@asynccontextmanager
async def following(
    live: httpx2.AsyncClient, path: str, **query: Any
) -> AsyncIterator[AsyncIterator[str]]:
    async with live.stream("GET", path, params=query) as answer:
        assert answer.status_code == 200
        yield answer.aiter_lines()


async def next_line(lines: AsyncIterator[str]) -> str:
    async with asyncio.timeout(5):
        return await anext(lines)


async def rest(lines: AsyncIterator[str]) -> list[str]:
    async with asyncio.timeout(10):
        return [line async for line in lines]


async def started(platform: Platform, text: str = ONE) -> tuple[str, AttemptKey]:
    run = await platform.submit(text)
    return run, (await platform.start())[0]


async def text_of(platform: Platform, run: str, **query: Any) -> str:
    answer = await platform.ask(
        platform.cast.member, "GET", f"/runs/{run}/steps/0/logs", params=query
    )
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain")
    return answer.text


class TestText:
    async def test_a_log_is_what_the_program_wrote(self, platform: Platform) -> None:
        run, key = await started(platform)
        await platform.write_log(key, b"one\ntw", complete=False)
        await platform.write_log(key, b"o\n\x1b[31mthree", sequence=1, first_byte=6)
        assert await text_of(platform, run) == "one\ntwo\n\x1b[31mthree\n"

    async def test_no_output_is_an_empty_text(self, platform: Platform) -> None:
        run = await platform.submit()
        assert await text_of(platform, run) == ""

    async def test_missing_output_is_marked(self, platform: Platform) -> None:
        run, key = await started(platform)
        await platform.write_log(key, b"before\nafter\n", gaps=(Gap(7, 1234, "the disk was full"),))
        assert await text_of(platform, run) == (
            "before\n[verderer] 1,234 bytes of output are missing here: the disk was full\nafter\n"
        )

    async def test_a_lost_chunk_is_marked(self, platform: Platform) -> None:
        run, key = await started(platform)
        await platform.write_log(key, b"kept\n", complete=False)
        await platform.write_log(key, b"lost\n", sequence=1, first_byte=5)
        keys = [stored.key for stored in await platform.objects.list("logs/")]
        await platform.objects.delete(keys[-1])
        text = await text_of(platform, run)
        assert text.startswith("kept\n[verderer] 5 bytes")

    async def test_an_output_whose_end_never_came_says_so(self, platform: Platform) -> None:
        run, key = await started(platform)
        await platform.write_log(key, b"hello\n", complete=False)
        await platform.end(key, End(cause=EndCause.LOST))
        assert (await text_of(platform, run)).splitlines()[-1] == (
            "[verderer] the end of the output was never received"
        )

    async def test_only_the_end_or_only_what_is_searched(self, platform: Platform) -> None:
        run, key = await started(platform)
        lines = "".join(f"line {n} {'ODD' if n % 2 else 'even'}\n" for n in range(100))
        await platform.write_log(key, lines.encode())
        assert await text_of(platform, run, tail=2) == "line 98 even\nline 99 ODD\n"
        assert await text_of(platform, run, tail=0) == ""
        assert len((await text_of(platform, run, search="odd")).splitlines()) == 50
        assert await text_of(platform, run, search="odd", tail=1) == "line 99 ODD\n"

    async def test_lines_begin_with_their_time_when_asked(self, platform: Platform) -> None:
        run, key = await started(platform)
        await platform.write_log(key, b"hello\n")
        assert await text_of(platform, run, timestamps=True) == "2025-11-30T10:53:20.123Z hello\n"

    async def test_a_long_line_stays_one_line(self, platform: Platform) -> None:
        run, key = await started(platform)
        await platform.write_log(key, b"x" * 100_000 + b"\nend\n")
        assert await text_of(platform, run) == "x" * 100_000 + "\nend\n"

    async def test_binary_output_is_harmless(self, platform: Platform) -> None:
        run, key = await started(platform)
        await platform.write_log(key, bytes(range(256)) * 100)
        assert "�" in await text_of(platform, run)

    async def test_each_attempt_and_replica_has_its_own(self, platform: Platform) -> None:
        run, key = await started(platform)
        await platform.write_log(key, b"zero\n")
        await platform.write_log(key, b"one\n", replica=1)
        assert await text_of(platform, run, replica=1) == "one\n"
        assert await text_of(platform, run, attempt=1) == "zero\n"
        answer = await platform.ask(
            platform.cast.member, "GET", f"/runs/{run}/steps/0/logs", params={"attempt": 2}
        )
        assert answer.status_code == 404


async def test_pages_of_lines_give_every_line_once(platform: Platform) -> None:
    run, key = await started(platform)
    data = "".join(f"line {n}\n" for n in range(25)).encode()
    await platform.write_log(key, data, gaps=(Gap(7, 3, "why"),))
    items: list[dict[str, Any]] = []
    offset, pages = 0, 0
    while True:
        answer = await platform.ask(
            platform.cast.member,
            "GET",
            f"/runs/{run}/steps/only/logs",
            params={"offset": offset, "limit": 10},
            headers={"accept": "application/json"},
        )
        page = answer.json()
        items += page["items"]
        pages += 1
        if page["ended"]:
            break
        offset = page["next_offset"]
    assert pages == 3
    assert [i["text"] for i in items if "text" in i] == [f"line {n}" for n in range(25)]
    assert [(i["gap"], i["lost"]) for i in items if "gap" in i] == [("why", 3)]
    assert (page["attempt"], page["replicas"], page["complete"]) == (1, 1, True)


class TestFollow:
    async def test_lines_come_as_they_are_written_and_the_text_ends_with_the_attempt(
        self, platform: Platform, live: httpx2.AsyncClient
    ) -> None:
        run, key = await started(platform)
        async with following(live, f"/runs/{run}/steps/only/logs", follow=True) as lines:
            await platform.write_log(key, b"first\nsec", complete=False)
            assert await next_line(lines) == "first"
            await platform.write_log(key, b"ond\n", sequence=1, first_byte=9, complete=False)
            assert await next_line(lines) == "second"
            await platform.write_log(key, b"last", sequence=2, first_byte=13)
            await platform.end(key, OK)
            assert await rest(lines) == ["last"]

    async def test_following_begins_with_the_last_lines(
        self, platform: Platform, live: httpx2.AsyncClient
    ) -> None:
        run, key = await started(platform)
        await platform.write_log(key, b"a\nb\nc\n", complete=False)
        path = f"/runs/{run}/steps/only/logs"
        async with following(live, path, follow=True, tail=1) as lines:
            assert await next_line(lines) == "c"
            await platform.write_log(key, b"d\n", sequence=1, first_byte=6)
            await platform.end(key, OK)
            assert await rest(lines) == ["d"]

    async def test_following_waits_for_a_start_and_goes_on_with_the_next_attempt(
        self, platform: Platform, live: httpx2.AsyncClient
    ) -> None:
        run = await platform.submit(ONE + "    retries: {count: 1, backoff: 0s}\n")
        async with following(live, f"/runs/{run}/steps/only/logs", follow=True) as lines:
            first = (await platform.start())[0]
            await platform.write_log(first, b"try one\n")
            await platform.end(first, failed())
            assert await next_line(lines) == "try one"
            second = (await platform.start())[0]
            await platform.write_log(second, b"try two\n")
            await platform.end(second, OK)
            assert await rest(lines) == ["[verderer] attempt 2", "try two"]

    async def test_following_what_is_over_ends_at_once(
        self, platform: Platform, live: httpx2.AsyncClient
    ) -> None:
        run, key = await started(platform)
        await platform.write_log(key, b"done\n")
        await platform.end(key, OK)
        async with following(live, f"/runs/{run}/steps/only/logs", follow=True) as lines:
            assert await rest(lines) == ["done"]

    async def test_following_a_step_that_never_starts_ends_with_the_run(
        self, platform: Platform, live: httpx2.AsyncClient
    ) -> None:
        run = await platform.submit(CHAIN)
        async with following(live, f"/runs/{run}/steps/second/logs", follow=True) as lines:
            await platform.ask(platform.cast.member, "POST", f"/runs/{run}/cancel")
            assert await rest(lines) == []

    async def test_an_end_that_never_comes_is_not_waited_for_for_ever(
        self, platform: Platform, live: httpx2.AsyncClient
    ) -> None:
        run, key = await started(platform)
        await platform.write_log(key, b"half", complete=False)
        async with following(live, f"/runs/{run}/steps/only/logs", follow=True) as lines:
            await platform.end(key, End(cause=EndCause.LOST))
            assert await rest(lines) == [
                "half",
                "[verderer] the end of the output was never received",
            ]

    async def test_an_end_that_comes_late_is_waited_for(
        self, platform: Platform, live: httpx2.AsyncClient
    ) -> None:
        run, key = await started(platform)
        await platform.write_log(key, b"first\n", complete=False)
        async with following(live, f"/runs/{run}/steps/only/logs", follow=True) as lines:
            await platform.end(key, End(cause=EndCause.EXIT, exit_code=0))
            assert await next_line(lines) == "first"
            await asyncio.sleep(log_follow._LATE_S + 1)
            await platform.write_log(key, b"last\n", sequence=1, first_byte=6)
            assert await rest(lines) == ["last"]

    async def test_a_silent_cluster_keeps_nobody_waiting(
        self, platform: Platform, live: httpx2.AsyncClient
    ) -> None:
        run, key = await started(platform)
        await platform.write_log(key, b"first\n", complete=False)
        await platform.end(key, End(cause=EndCause.EXIT, exit_code=0))
        assert "is on its way" in await text_of(platform, run)
        async with platform.world.ctx.db.transaction() as tx:
            await tx.execute("UPDATE heartbeats SET seen_at = now() - interval '1 hour'")
        async with following(live, f"/runs/{run}/steps/only/logs", follow=True) as lines:
            assert await rest(lines) == [
                "first",
                "[verderer] the rest of the output is with cluster local, which is silent",
            ]

    async def test_who_leaves_the_project_hears_no_more(
        self, platform: Platform, live: httpx2.AsyncClient
    ) -> None:
        run, key = await started(platform)
        async with following(live, f"/runs/{run}/steps/only/logs", follow=True) as lines:
            await platform.write_log(key, b"before\n", complete=False)
            assert await next_line(lines) == "before"
            path = "/projects/ours/members/member@example.org"
            gone = await platform.ask(platform.cast.admin, "DELETE", path)
            assert gone.status_code == 204
            await platform.write_log(key, b"after\n", sequence=1, first_byte=7)
            assert await rest(lines) == ["[verderer] you may not read this any more"]


class TestWatch:
    async def events(self, lines: AsyncIterator[str]) -> AsyncIterator[tuple[str, Any]]:
        name = ""
        async for line in lines:
            if line.startswith("event: "):
                name = line.removeprefix("event: ")
            elif line.startswith("data: "):
                yield name, json.loads(line.removeprefix("data: "))

    async def test_a_watcher_is_told_everything_once_and_then_each_change(
        self, platform: Platform, live: httpx2.AsyncClient
    ) -> None:
        run = await platform.submit(CHAIN)
        async with following(live, f"/runs/{run}/watch") as lines:
            heard = self.events(lines)
            async with asyncio.timeout(15):
                name, steps = await anext(heard)
                assert name == "steps"
                assert [(s["name"], s["state"]) for s in steps] == [
                    ("first", "waiting"),
                    ("second", "waiting"),
                ]
                assert (await anext(heard))[1]["state"] == "queued"
                for step in ("first", "second"):
                    key = (await platform.start())[0]
                    name, steps = await anext(heard)
                    assert [(s["name"], s["state"]) for s in steps][-1] == (step, "running")
                    if step == "first":
                        assert (await anext(heard))[1]["state"] == "running"
                    await platform.end(key, OK)
                    _, steps = await anext(heard)
                    assert (step, "succeeded") in [(s["name"], s["state"]) for s in steps]
                    assert (await anext(heard))[0] == "run"
                assert await anext(heard) == ("end", {"state": "succeeded"})
                assert [event async for event in heard] == []

    async def test_a_reader_that_does_not_read_costs_no_memory_and_hears_the_truth(
        self, platform: Platform, live: httpx2.AsyncClient
    ) -> None:
        text = "metadata: {name: wide}\nsteps:\n  - name: s\n    command: [x]\n"
        text += "    matrix: {n: [" + ", ".join(str(n) for n in range(600)) + "]}\n"
        run = await platform.submit(text)
        number = parse_run_id(run)
        async with live.stream("GET", f"/runs/{run}/watch") as answer:
            for n in range(5):
                async with platform.world.ctx.db.transaction() as tx:
                    await tx.execute(
                        "UPDATE steps SET note = $2 WHERE run_id = $1", number, f"change {n}"
                    )
                platform.world.ctx.wakeups.wake([f"run:{number}"])
            await platform.ask(platform.cast.member, "POST", f"/runs/{run}/cancel")
            async with asyncio.timeout(20):
                states: dict[int, str] = {}
                async for name, data in self.events(answer.aiter_lines()):
                    if name == "steps":
                        states |= {s["index"]: s["state"] for s in data}
        assert len(states) == 600
        assert set(states.values()) == {"cancelled"}


class TestArtifacts:
    async def made(self, platform: Platform) -> str:
        run, key = await started(platform)
        base = f"artifacts/1/{run}/0/1"
        await platform.objects.put(f"{base}/model", b"0123456789")
        for name in ("a.txt", "deep/b%23.txt"):
            await platform.objects.put(f"{base}/report/{name}", name.encode())
        outputs = [("model", f"{base}/model", 10, 1, ""), ("report", f"{base}/report/", 20, 2, "")]
        await platform.end(key, OK, outputs=outputs)
        return run

    async def test_artifacts_are_listed_and_their_bytes_are_at_their_address(
        self, platform: Platform
    ) -> None:
        run = await self.made(platform)
        member = platform.cast.member
        items = (await platform.ask(member, "GET", f"/runs/{run}/artifacts")).json()["items"]
        assert [(i["name"], i["folder"], i["size"]) for i in items] == [
            ("model", False, 10),
            ("report", True, 20),
        ]
        url = items[0]["url"].removeprefix("/api/v1")
        whole = await platform.ask(member, "GET", url)
        assert whole.content == b"0123456789"
        assert whole.headers["content-disposition"].startswith("attachment")
        assert whole.headers["content-type"] == "application/octet-stream"
        part = await platform.ask(member, "GET", url, headers={"range": "bytes=2-4"})
        assert (part.status_code, part.content) == (206, b"234")
        beyond = await platform.ask(member, "GET", url, headers={"range": "bytes=99-"})
        assert (beyond.status_code, beyond.headers["content-range"]) == (416, "bytes */10")
        known = {"if-none-match": whole.headers["etag"]}
        assert (await platform.ask(member, "GET", url, headers=known)).status_code == 304

    async def test_files_of_a_folder_are_listed_with_addresses(self, platform: Platform) -> None:
        run = await self.made(platform)
        member = platform.cast.member
        path = f"/runs/{run}/artifacts/0/1/report"
        files = (await platform.ask(member, "GET", f"{path}/files")).json()["items"]
        assert [f["path"] for f in files] == ["a.txt", "deep/b%23.txt"]
        assert files[0]["url"].startswith("/objects/artifacts/")
        one = await platform.ask(member, "GET", f"{path}/content", params={"file": "deep/b%23.txt"})
        assert one.content == b"deep/b%23.txt"
        assert (await platform.ask(member, "GET", f"{path}/content")).status_code == 422

    async def test_a_folder_comes_as_one_zip(self, platform: Platform) -> None:
        run = await self.made(platform)
        path = f"/runs/{run}/artifacts/0/1"
        answer = await platform.ask(platform.cast.member, "GET", f"{path}/report/archive")
        assert answer.headers["content-type"] == "application/zip"
        assert answer.headers["content-disposition"].endswith("report.zip")
        with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
            assert archive.testzip() is None
            assert {one: archive.read(one) for one in archive.namelist()} == {
                "a.txt": b"a.txt",
                "deep/b%23.txt": b"deep/b%23.txt",
            }
        one = await platform.ask(platform.cast.member, "GET", f"{path}/model/archive")
        assert one.status_code == 422

    @pytest.mark.parametrize("file", ["../model", "/etc/passwd", "a.txt/..", "none", "a\\b"])
    async def test_nothing_outside_the_folder_is_reached(
        self, platform: Platform, file: str
    ) -> None:
        run = await self.made(platform)
        path = f"/runs/{run}/artifacts/0/1/report/content"
        answer = await platform.ask(platform.cast.member, "GET", path, params={"file": file})
        assert answer.status_code in (404, 422)
