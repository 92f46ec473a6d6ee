"""Inputs and outputs over real HTTP."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.agent.fake_control_plane import CREDENTIAL, FakeControlPlane
from tests.agent.rig import until
from verderer.agent.files.inputs import InputUnavailable, fetch_inputs
from verderer.agent.files.outputs import OutputUnavailable, store_outputs
from verderer.agent.files.transfers import Granter, Transfers
from verderer.agent.session import open_session
from verderer.wire.agent import Grant, InputFile, OutputFile
from verderer.wire.client import AgentClient
from verderer.wire.object_client import ObjectClient


@pytest.fixture
async def transfers(plane: FakeControlPlane) -> AsyncIterator[Transfers]:
    async with AgentClient(plane.url, CREDENTIAL) as client, ObjectClient(plane.url) as objects:
        session = await open_session(client, version="t", kind="local")
        yield Transfers(Granter(session), objects, first_wait_s=0.01)


def source(path: str, key: str) -> InputFile:
    return InputFile(name="data", path=path, key=key)


def target(path: str, key: str = "out") -> OutputFile:
    return OutputFile(name="model", path=path, key=key)


def tree(root: Path) -> dict[str, bytes]:
    return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}


async def test_a_file_arrives_whole(
    plane: FakeControlPlane, transfers: Transfers, tmp_path: Path
) -> None:
    plane.objects["k"] = bytes(range(256)) * 20_000
    await fetch_inputs(transfers, str(tmp_path), [source("in/deep/x.bin", "k")])
    assert tree(tmp_path) == {"in/deep/x.bin": plane.objects["k"]}


async def test_a_folder_arrives_with_all_its_names(
    plane: FakeControlPlane, transfers: Transfers, tmp_path: Path
) -> None:
    plane.objects |= {"d/a": b"1", "d/sub/100%25.txt": b"2", "d/sub/é": b"3", "dd": b"no"}
    await fetch_inputs(transfers, str(tmp_path), [source("in", "d/")])
    assert tree(tmp_path) == {"in/a": b"1", "in/sub/100%.txt": b"2", "in/sub/é": b"3"}


async def test_a_folder_without_files_is_an_empty_folder(
    plane: FakeControlPlane, transfers: Transfers, tmp_path: Path
) -> None:
    await fetch_inputs(transfers, str(tmp_path), [source("in", "d/")])
    assert (tmp_path / "in").is_dir()


async def test_a_missing_input_is_named(
    plane: FakeControlPlane, transfers: Transfers, tmp_path: Path
) -> None:
    with pytest.raises(InputUnavailable, match="input 'data' is missing"):
        await fetch_inputs(transfers, str(tmp_path), [source("x", "nothing")])
    assert tree(tmp_path) == {}


@pytest.mark.parametrize("path", ["../x", "/tmp/x", "a/../../x", ""])
async def test_an_input_never_leaves_the_working_directory(
    plane: FakeControlPlane, transfers: Transfers, tmp_path: Path, path: str
) -> None:
    plane.objects["k"] = b"x"
    with pytest.raises(InputUnavailable, match="not a path inside"):
        await fetch_inputs(transfers, str(tmp_path), [source(path, "k")])


@pytest.mark.parametrize("key", ["d/../../x", "d/%2E%2E/x", "d/a%2Fb", "elsewhere"])
async def test_a_listing_never_leads_out(
    plane: FakeControlPlane,
    transfers: Transfers,
    tmp_path: Path,
    key: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def below(prefix: str) -> list[Grant]:
        return [Grant(key=key, url="/objects/x")]

    plane.objects["x"] = b"x"
    monkeypatch.setattr(transfers.granter, "below", below)
    work = tmp_path / "work"
    work.mkdir()
    with pytest.raises(InputUnavailable):
        await fetch_inputs(transfers, str(work), [source("in", "d/")])
    assert tree(tmp_path) == {}


async def test_two_inputs_in_each_others_way_are_refused(
    plane: FakeControlPlane, transfers: Transfers, tmp_path: Path
) -> None:
    plane.objects["k"] = b"x"
    with pytest.raises(InputUnavailable, match="cannot be a folder"):
        await fetch_inputs(transfers, str(tmp_path), [source("a", "k"), source("a/b", "k")])


async def test_an_outage_of_the_store_is_waited_out_in_both_directions(
    plane: FakeControlPlane, transfers: Transfers, tmp_path: Path
) -> None:
    plane.objects["k"] = b"content"
    plane.faults.fail["objects"] = 3
    plane.faults.fail["grants"] = 2
    await fetch_inputs(transfers, str(tmp_path), [source("x", "k")])
    plane.faults.fail["objects"] = 3
    plane.faults.lose_reply["objects"] = 2
    stored = await store_outputs(transfers, str(tmp_path), [target("x")])
    assert plane.objects["out"] == b"content"
    assert stored[0].size == 7


async def test_an_output_file_is_stored_with_size_and_digest(
    plane: FakeControlPlane, transfers: Transfers, tmp_path: Path
) -> None:
    content = bytes(range(256)) * 20_000
    (tmp_path / "m.bin").write_bytes(content)
    (stored,) = await store_outputs(transfers, str(tmp_path), [target("m.bin")])
    assert plane.objects["out"] == content
    assert (stored.name, stored.key, stored.size, stored.files) == ("model", "out", 5_120_000, 1)
    assert stored.sha256 == hashlib.sha256(content).hexdigest()


async def test_an_output_folder_is_stored_below_its_key_and_comes_back_the_same(
    plane: FakeControlPlane, transfers: Transfers, tmp_path: Path
) -> None:
    work = tmp_path / "work"
    for name in ("a", "sub/100%", "sub/é #1", "sub/deep/tab\t"):
        (work / "m" / name).parent.mkdir(parents=True, exist_ok=True)
        (work / "m" / name).write_text(name)
    (work / "m" / "latest").symlink_to("sub")
    (stored,) = await store_outputs(transfers, str(work), [target("m")])
    assert (stored.key, stored.files) == ("out/", 7)
    again = tmp_path / "again"
    again.mkdir()
    await fetch_inputs(transfers, str(again), [source("m", "out/")])
    expected = {name for name in tree(work) if not name.startswith("m/latest")}
    linked = {f"m/latest/{name[6:]}" for name in expected if name.startswith("m/sub/")}
    assert set(tree(again)) == expected | linked


async def test_a_missing_output_is_named(transfers: Transfers, tmp_path: Path) -> None:
    with pytest.raises(OutputUnavailable, match=r"output 'model' is missing.*'m\.bin'"):
        await store_outputs(transfers, str(tmp_path), [target("m.bin")])


async def test_an_output_that_leads_out_is_refused_and_nothing_of_it_is_stored(
    plane: FakeControlPlane, transfers: Transfers, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text("secret")
    work = tmp_path / "work"
    (work / "m").mkdir(parents=True)
    (work / "m" / "a").write_text("fine")
    (work / "m" / "x").symlink_to(tmp_path / "secret")
    for path in ("m", "m/x"):
        with pytest.raises(OutputUnavailable, match="leads out"):
            await store_outputs(transfers, str(work), [target(path)])
    assert b"secret" not in plane.objects.values()


async def test_a_folder_that_contains_itself_is_refused(
    transfers: Transfers, tmp_path: Path
) -> None:
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "again").symlink_to(".")
    with pytest.raises(OutputUnavailable, match="contains itself"):
        await store_outputs(transfers, str(tmp_path), [target("m")])


async def test_a_store_that_refuses_for_good_ends_the_waiting(
    plane: FakeControlPlane, transfers: Transfers, tmp_path: Path
) -> None:
    (tmp_path / "m").write_text("x")
    for status in (413, 403, 400):
        plane.refuse_objects = status
        with pytest.raises(OutputUnavailable, match="could not be stored"):
            await store_outputs(transfers, str(tmp_path), [target("m")])


async def test_addresses_wanted_at_the_same_time_are_asked_for_together(
    plane: FakeControlPlane, transfers: Transfers
) -> None:
    keys = [f"k{n}" for n in range(100)]
    found = await asyncio.gather(*(transfers.granter.grant("PUT", key) for key in keys))
    assert [granted.grant.key for granted in found] == keys
    assert plane.grant_requests == 1


async def test_one_who_gives_up_waiting_for_an_address_harms_nobody(
    plane: FakeControlPlane, transfers: Transfers
) -> None:
    first = asyncio.create_task(transfers.granter.grant("PUT", "a"))
    second = asyncio.create_task(transfers.granter.grant("PUT", "a"))
    await asyncio.sleep(0)
    first.cancel()
    assert (await second).grant.key == "a"
    await until(lambda: first.cancelled())
