"""Output on its way from a program to whoever reads it: whole, or with honest holes."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import os
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.drivers.contract import Work, begin, joined, read_all, until_over, until_running
from tests.drivers.rigs import MIB, LocalRig
from verderer.core.model.attempt import AttemptState, EndCause
from verderer.drivers.contract import LogPiece
from verderer.drivers.local.logreader import RELEASED, LogReader, release
from verderer.drivers.local.monitor import spool
from verderer.drivers.local.monitor.spool import LogWriter

START_MS = 1_700_000_000_000


def drain(reader: LogReader) -> list[LogPiece]:
    pieces: list[LogPiece] = []
    while more := reader.read():
        pieces += more
    return pieces


def check_whole(pieces: Sequence[LogPiece], written: bytes, begin: int = 0) -> None:
    """The pieces follow each other without overlap, and what is there is what was written."""
    at = begin
    for piece in pieces:
        assert piece.offset == at
        assert bool(piece.data) != bool(piece.lost)
        assert bool(piece.reason) == bool(piece.lost)
        assert piece.data == written[at : at + len(piece.data)]
        at += len(piece.data) + piece.lost
    assert at == len(written)


@settings(max_examples=60, deadline=None)
@given(
    steps=st.lists(
        st.one_of(
            st.binary(min_size=1, max_size=300),
            st.sampled_from(["release", "no space", "space", "wait", "read"]),
        ),
        max_size=60,
    ),
    limit=st.integers(400, 4_000),
)
def test_whatever_happens_pieces_and_holes_add_up(
    tmp_path_factory: pytest.TempPathFactory, steps: list[bytes | str], limit: int
) -> None:
    directory = tmp_path_factory.mktemp("log")
    writer = LogWriter(str(directory), limit=limit)
    follower, followed = LogReader(directory, 0), list[LogPiece]()
    written, now_ms, full = b"", START_MS, False
    real_write = os.write

    def write(fd: int, data: bytes) -> int:
        if full:
            raise OSError(errno.ENOSPC, "no space")
        return real_write(fd, data)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "write", write)
        for step in steps:
            now_ms += 70
            if isinstance(step, bytes):
                writer.write(step, now_ms)
                written += step
            elif step == "release":
                release(directory, follower.offset, complete=False)
            elif step == "wait":
                now_ms += 1_000
            elif step == "read":
                followed += drain(follower)
            else:
                full = step == "no space"
    writer.close()
    assert writer.offset == len(written)
    followed += drain(follower)
    check_whole(followed + follower.rest(writer.offset, writer.hole), written)
    late = LogReader(directory, 0)
    check_whole(drain(late) + late.rest(writer.offset, writer.hole), written)
    middle = LogReader(directory, len(written) // 2)
    pieces = drain(middle) + middle.rest(writer.offset, writer.hole)
    check_whole(pieces, written, len(written) // 2)
    for reader in (follower, late, middle):
        reader.close()


def test_bytes_have_the_time_of_their_mark(tmp_path: Path) -> None:
    writer = LogWriter(str(tmp_path), limit=MIB)
    for i in range(5):
        writer.write(b"%d" % i, START_MS + i * 60)
    reader = LogReader(tmp_path, 0)
    assert [(p.data, p.unix_ms - START_MS) for p in drain(reader)] == [
        (b"01", 0),
        (b"23", 120),
        (b"4", 240),
    ]
    writer.close()
    reader.close()


def test_a_full_spool_keeps_the_head_and_says_what_is_missing(tmp_path: Path) -> None:
    writer = LogWriter(str(tmp_path), limit=1_000)
    for _ in range(15):
        writer.write(b"x" * 100, START_MS)
    release(tmp_path, 500, complete=False)
    writer.write(b"y" * 100, START_MS)
    reader = LogReader(tmp_path, 500)
    told = [(p.offset, len(p.data), p.lost, p.reason) for p in drain(reader) if p.lost]
    assert told == [(800, 0, 700, "spool full")]
    writer.close()
    reader.close()
    early = LogReader(tmp_path, 0)
    assert early.read() == [LogPiece(offset=0, unix_ms=0, lost=500, reason=RELEASED)]
    early.close()


def test_a_full_spool_holds_the_program_back_only_for_a_while(tmp_path: Path) -> None:
    writer = LogWriter(str(tmp_path), limit=1_000)
    assert writer.wants(0.0)
    writer.write(b"x" * 1_000, START_MS)
    assert not writer.wants(10.0)
    assert not writer.wants(10.0 + spool.PATIENCE_S - 0.1)
    assert writer.wants(10.0 + spool.PATIENCE_S)
    writer.close()


def test_a_full_disk_is_a_hole_and_not_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = LogWriter(str(tmp_path), limit=MIB)
    writer.write(b"before", START_MS)
    real_open = os.open

    def no_space(path: str, flags: int, mode: int = 0o777) -> int:
        raise OSError(errno.ENOSPC, "no space")

    writer.close()
    monkeypatch.setattr(os, "open", no_space)
    writer.write(b"lost", START_MS + 10)
    monkeypatch.setattr(os, "open", real_open)
    writer.write(b"still", START_MS + 20)
    writer.write(b"after", START_MS + 10_000)
    writer.close()
    reader = LogReader(tmp_path, 0)
    assert [(p.data, p.lost, p.reason) for p in drain(reader)] == [
        (b"before", 0, ""),
        (b"", 9, "no space left on the disk"),
        (b"after", 0, ""),
    ]
    reader.close()


def test_a_link_in_place_of_a_segment_is_not_followed(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("s3cret")
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / f"{0:020d}.log").symlink_to(secret)
    with pytest.raises(OSError, match="symbolic"):
        LogReader(tmp_path / "log", 0).read()


async def test_a_hundred_megabytes_arrive_as_they_were(local: LocalRig) -> None:
    code = "import random, sys; r = random.Random(1)\n" + (
        "for _ in range(100): sys.stdout.buffer.write(r.randbytes(1000000))"
    )
    order = local.program(command=("python3", "-c", code))
    await begin(local.driver, order)
    began, digest, size = time.monotonic(), hashlib.sha256(), 0
    async for piece in local.driver.logs(order.key, replica=0, after=0):
        assert not piece.lost
        assert piece.offset == size
        digest.update(piece.data)
        size += len(piece.data)
        upto = size - size % MIB
        await local.driver.release_logs(order.key, replica=0, upto=upto)
    spent = time.monotonic() - began
    assert size == 100_000_000
    plain = await asyncio.create_subprocess_exec(
        "python3", "-c", code, stdout=asyncio.subprocess.PIPE
    )
    expected, _ = await plain.communicate()
    assert digest.digest() == hashlib.sha256(expected).digest()
    assert spent < 30
    kept = list((local.root / "attempts" / str(order.key) / "log" / "0").glob("*.log"))
    assert len(kept) <= 2, "released segments are gone from the disk"


async def test_a_program_that_nobody_reads_ends_all_the_same(
    make_local: Callable[..., LocalRig],
) -> None:
    local = make_local(spool_bytes=MIB)
    order = local.program(script="head -c 5000000 /dev/zero")
    await begin(local.driver, order)
    observed = await until_over(local.driver, order.key)
    assert observed.state is AttemptState.SUCCEEDED
    pieces = await read_all(local.driver, order.key)
    check_whole(pieces, b"\0" * 5_000_000)
    assert pieces[-1].reason == "spool full"
    assert len(joined(pieces)) <= MIB


async def test_a_follower_sees_output_within_a_second(local: LocalRig) -> None:
    order = local.program(script="echo now; sleep 600")
    await begin(local.driver, order)
    stream = local.driver.logs(order.key, replica=0, after=0)
    async with asyncio.timeout(1.0):
        piece = await anext(stream)
    assert piece.data == b"now\n"
    waiting = asyncio.create_task(anext(stream, None))
    await local.driver.stop(order.key, grace_s=1)
    await until_over(local.driver, order.key)
    assert await waiting is None


async def test_two_hundred_idle_steps_cost_next_to_nothing(local: LocalRig) -> None:
    orders = [local.order(Work.HANG) for _ in range(200)]
    for order in orders:
        await begin(local.driver, order)

    async def follow(step: int) -> None:
        async for _ in local.driver.logs(orders[step].key, replica=0, after=0):
            pass

    followers = [asyncio.create_task(follow(step)) for step in range(200)]
    for order in orders:
        await until_running(local.driver, order.key)
    await local.driver.observe()
    began, spent = time.monotonic(), time.process_time()
    while time.monotonic() - began < 2.0:
        await local.driver.changed(timeout_s=0.5)
        await local.driver.observe()
    share = (time.process_time() - spent) / (time.monotonic() - began)
    assert share < 0.1, f"{share:.0%} of a core"
    for order in orders:
        await local.driver.stop(order.key, grace_s=0)
    for order in orders:
        await until_over(local.driver, order.key)
    await asyncio.gather(*followers)


async def test_a_full_disk_costs_output_and_nothing_else(
    tmp_path: Path, request: pytest.FixtureRequest, make_local: Callable[..., LocalRig]
) -> None:
    root = tmp_path / "small"
    root.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(root)], capture_output=True
    )
    if mounted.returncode != 0:
        pytest.skip("NOT TESTED: a small file system cannot be mounted here")
    request.addfinalizer(lambda: subprocess.run(["umount", "-l", str(root)], check=True))
    local = make_local(root)
    order = local.program(script="head -c 10000000 /dev/zero; exit 3")
    await begin(local.driver, order)
    end = (await until_over(local.driver, order.key)).end
    assert end is not None
    assert (end.cause, end.exit_code) == (EndCause.EXIT, 3)
    pieces = await read_all(local.driver, order.key)
    check_whole(pieces, b"\0" * 10_000_000)
    assert pieces[-1].reason == "no space left on the disk"
