"""Artifacts through the server: bytes go in and come out, and nothing leaves its run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import quote

import httpx2
import pytest

from tests.api.mlflow.ask import FILES, Asker
from tests.api.mlflow.rig import Tracking, serving
from tests.core.tracking.test_artifact_path import ATTACKS


@pytest.fixture
async def member(tracking: Tracking, api: httpx2.AsyncClient) -> Asker:
    return Asker(api, tracking.cast.member.token)


async def root_of(member: Asker) -> str:
    """The address of a new run's files."""
    made = await member.ok("runs/create", experiment_id="0")
    return str(made["run"]["info"]["artifact_uri"]).removeprefix("mlflow-artifacts:/")


NAMES = ["a.txt", "a b.txt", "größe.png", "100%.txt", "%41.txt", "日本/語.txt", "x:y.json", "a+b&c"]


@pytest.mark.parametrize("name", NAMES)
async def test_a_file_comes_back_under_the_name_it_was_given(member: Asker, name: str) -> None:
    root = await root_of(member)
    answer = await member.file("PUT", f"{root}/sub/{quote(name)}", b"x" * 10)
    assert answer.status_code == 200, answer.text
    found = await member.file("GET", f"{root}/sub/{quote(name)}")
    assert found.content == b"x" * 10
    run = root.split("/")[1]
    folder = "sub/" + name.rpartition("/")[0]
    listed = await member.read("artifacts/list", run_id=run, path=folder)
    assert listed["files"] == [{"path": f"sub/{name}", "is_dir": False, "file_size": 10}]


async def test_folders_are_listed_one_level_at_a_time(member: Asker) -> None:
    root = await root_of(member)
    for name in ("b.txt", "a/1.txt", "a/2.txt", "a/deep/er.txt", "ab.txt"):
        assert (await member.file("PUT", f"{root}/{name}", name.encode())).status_code == 200
    run = root.split("/")[1]
    listed = await member.read("artifacts/list", run_id=run)
    assert [(f["path"], f["is_dir"]) for f in listed["files"]] == [
        ("a", True),
        ("ab.txt", False),
        ("b.txt", False),
    ]
    assert listed["root_uri"] == f"mlflow-artifacts:/{root}"
    inside = await member.read("artifacts/list", run_id=run, path="a")
    assert [f["path"] for f in inside["files"]] == ["a/1.txt", "a/2.txt", "a/deep"]
    by_address = await member.client.get(
        FILES, params={"path": f"{root}/a"}, headers=member.headers
    )
    assert [f["path"] for f in by_address.json()["files"]] == ["1.txt", "2.txt", "deep"]
    assert (await member.read("artifacts/list", run_id=run, path="nothing"))["files"] == []


async def test_a_long_folder_is_listed_whole(tracking: Tracking, member: Asker) -> None:
    root = await root_of(member)
    experiment, run, _ = root.split("/")
    async with tracking.ctx.db.reading() as tx:
        project = await tx.fetchval("SELECT id FROM projects WHERE name = 'ours'")
    prefix = f"tracked/{project}/{experiment}/{run}"
    names = [f"big/{i:04d}" for i in range(1_200)] + [f"f{i:04d}" for i in range(1_100)]
    for start in range(0, len(names), 200):
        part = names[start : start + 200]
        await asyncio.gather(*(tracking.objects.put(f"{prefix}/{n}", b"1") for n in part))
    listed = await member.read("artifacts/list", run_id=run)
    assert len(listed["files"]) == 1_101
    assert listed["files"][0] == {"path": "big", "is_dir": True}
    answer = await member.file("DELETE", f"{root}/big")
    assert answer.status_code == 200
    assert len((await member.read("artifacts/list", run_id=run))["files"]) == 1_100


async def test_deleting_removes_a_file_a_folder_or_everything(
    tracking: Tracking, member: Asker
) -> None:
    root = await root_of(member)
    other = await root_of(member)
    for name in ("a", "d/1", "d/2", "e/1"):
        await member.file("PUT", f"{root}/{name}", b"1")
    await member.file("PUT", f"{other}/a", b"1")

    async def left() -> list[str]:
        return [one.key.rsplit("/", 2)[-1] for one in await tracking.objects.list("")]

    assert len(await left()) == 5
    assert (await member.file("DELETE", f"{root}/a")).status_code == 200
    assert (await member.file("GET", f"{root}/a")).status_code == 404
    assert (await member.file("DELETE", f"{root}/d")).status_code == 200
    assert len(await left()) == 2
    assert (await member.file("DELETE", f"{root}/")).status_code == 200
    assert len(await left()) == 1
    async with tracking.ctx.db.reading() as tx:
        rows = await tx.fetch(
            "SELECT detail FROM audit WHERE action = 'tracked_artifacts.deleted' ORDER BY seq"
        )
    assert [row["detail"] for row in rows] == [
        {"path": "a", "files": 1},
        {"path": "d", "files": 2},
        {"path": "", "files": 1},
    ]


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
async def test_no_attack_reaches_anything(tracking: Tracking, member: Asker, method: str) -> None:
    """As it is and encoded: over the wire a client may write it either way."""
    root = await root_of(member)
    victim = await root_of(member)
    await member.file("PUT", f"{victim}/secret.txt", b"gold")
    before = await tracking.objects.list("")
    for path in (str(attack.values[0]) for attack in ATTACKS):
        for written in {quote(path, safe="/%"), quote(path, safe="/"), quote(path, safe="")}:
            if "/../" in f"/{written}/" or "/./" in f"/{written}/":
                continue  # the client itself would resolve it; the next test sends it as it is
            body = b"x" if method == "PUT" else None
            answer = await member.file(method, f"{root}/{written}", body)
            assert answer.status_code in (400, 404), (written, answer.text)
            assert b"gold" not in answer.content
        listed = await member.get("artifacts/list", run_id=root.split("/")[1], path=path)
        assert listed.status_code == 400, path
    assert await tracking.objects.list("") == before


async def raw_request(url: str, request: bytes) -> bytes:
    """Send bytes that no client would, and read the answer."""
    host, _, port = url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(request)
    await writer.drain()
    async with asyncio.timeout(10):
        answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return answer


RAW = ["../other/artifacts/secret.txt", "./../x", "a/../../../x", "..%2f..%2fx",
       "%2e%2e/%2e%2e/x", "..%c0%af..%c0%afetc", "%00", "a%0d%0ab", "a/%2e%2e/b"]  # fmt: skip


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
async def test_raw_bytes_on_the_wire_reach_nothing(
    tracking: Tracking, member: Asker, method: str
) -> None:
    root = await root_of(member)
    victim = await root_of(member)
    await member.file("PUT", f"{victim}/secret.txt", b"gold")
    before = await tracking.objects.list("")
    async with serving(tracking.app) as url:
        for tail in RAW:
            request = (
                f"{method} {FILES}/{root}/{tail} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                f"Authorization: {member.headers['authorization']}\r\nContent-Length: 1\r\n"
                "Connection: close\r\n\r\nx"
            )
            answer = await raw_request(url, request.encode())
            assert int(answer.split()[1]) in (400, 404), tail
            assert b"gold" not in answer
    assert await tracking.objects.list("") == before


async def test_a_file_does_not_stand_where_a_folder_is(member: Asker) -> None:
    root = await root_of(member)
    await member.file("PUT", f"{root}/a/b", b"1")
    answer = await member.file("PUT", f"{root}/a", b"1")
    assert answer.status_code in (200, 400)  # an object store has no folders, a directory has
    assert (await member.file("GET", f"{root}/a/b")).content == b"1"


async def test_an_upload_that_breaks_off_leaves_nothing(tracking: Tracking, member: Asker) -> None:
    root = await root_of(member)
    await member.file("PUT", f"{root}/a", b"before")
    async with serving(tracking.app) as url:
        token = member.headers["authorization"]
        host, _, port = url.removeprefix("http://").partition(":")
        _, writer = await asyncio.open_connection(host, int(port))
        head = f"PUT {FILES}/{root}/a HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: {token}\r\n"
        writer.write(f"{head}Content-Length: 1000000\r\n\r\n".encode() + b"x" * 1000)
        await writer.drain()
        writer.close()
        await writer.wait_closed()
    assert (await member.file("GET", f"{root}/a")).content == b"before"


async def test_a_large_file_streams_both_ways(tracking: Tracking, member: Asker) -> None:
    root = await root_of(member)
    chunk = bytes(range(256)) * 4096

    async def body() -> AsyncIterator[bytes]:
        for _ in range(20):
            yield chunk

    url = f"{FILES}/{root}/big.bin"
    answer = await member.client.put(url, content=body(), headers=member.headers)
    assert answer.status_code == 200
    stored = next(p for p in Path(tracking.folder).rglob("big.bin"))
    assert stored.stat().st_size == 20 * len(chunk)
    found = await member.file("GET", f"{root}/big.bin")
    assert found.content == chunk * 20
    assert found.headers["content-disposition"].startswith("attachment")
    part = await member.client.get(url, headers=member.headers | {"range": "bytes=1-3"})
    assert (part.status_code, part.content) == (206, b"\x01\x02\x03")
    beyond = await member.client.get(url, headers=member.headers | {"range": "bytes=999999999-"})
    assert beyond.status_code == 416


async def test_multipart_and_presigned_are_answered_so_that_clients_fall_back(
    member: Asker,
) -> None:
    root = await root_of(member)
    base = "/mlflow/api/2.0/mlflow-artifacts"
    for verb in ("create", "complete", "abort"):
        answer = await member.client.post(
            f"{base}/mpu/{verb}/{root}", json={"path": "x"}, headers=member.headers
        )
        assert (answer.status_code, answer.json()["error_code"]) == (501, "NOT_IMPLEMENTED")
        assert answer.json()["message"].startswith("Multipart upload is not supported")
    answer = await member.client.get(f"{base}/presigned/{root}/x", headers=member.headers)
    assert answer.status_code == 501


async def test_files_of_deleted_runs_can_be_read_and_not_written(member: Asker) -> None:
    root = await root_of(member)
    await member.file("PUT", f"{root}/a", b"1")
    await member.ok("runs/delete", run_id=root.split("/")[1])
    assert (await member.file("GET", f"{root}/a")).content == b"1"
    assert (await member.file("PUT", f"{root}/a", b"2")).status_code == 400
    assert (await member.file("DELETE", f"{root}/a")).status_code == 400
