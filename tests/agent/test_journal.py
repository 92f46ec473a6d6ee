"""What survives: kills, torn writes, full disks, compaction."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verderer.agent import journal as module
from verderer.agent.journal import Cut, Decided, Dropped, Journal, Launched, Shipped, records_of
from verderer.core.errors import Fault
from verderer.wire.agent import EndFact, OutputFile

A, B = "v0000000000000001-0-1", "v0000000000000002-0-1"
LAUNCHED = Launched(A, "logs/a/", 2, [OutputFile(name="o", path="o", key="k")])
DECIDED = Decided(A, EndFact(cause="exit", exit_code=0), "succeeded", 5)


def reopened(path: Path) -> list[object]:
    return list(records_of(Journal(path).live))


async def test_everything_written_is_there_after_a_kill(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j")
    records = [LAUNCHED, DECIDED, Shipped(A, 1, 3, 100, 90), Cut(A, 1, 4, 200)]
    await journal.write(*records)
    assert reopened(tmp_path / "j") == records


async def test_what_is_dropped_is_gone_and_an_acknowledged_cut_is_not_kept(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j")
    await journal.write(LAUNCHED, Launched(B), Cut(A, 0, 0, 10), Shipped(A, 0, 0, 10, 10))
    await journal.write(Dropped(B))
    assert reopened(tmp_path / "j") == [LAUNCHED, Shipped(A, 0, 0, 10, 10)]


async def test_noted_records_are_written_at_close(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j")
    journal.note(LAUNCHED)
    await journal.close()
    assert reopened(tmp_path / "j") == [LAUNCHED]


async def test_concurrent_writes_share_syncs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = Journal(tmp_path / "j")
    synced = []
    real = os.fdatasync
    monkeypatch.setattr(os, "fdatasync", lambda fd: (synced.append(fd), real(fd)))
    await asyncio.gather(*(journal.write(Launched(f"{A}{n}")) for n in range(100)))
    assert len(synced) < 10
    assert len(journal.live) == 100


@given(st.data())
def test_a_torn_or_damaged_tail_loses_only_itself(data: st.DataObject) -> None:
    records = [LAUNCHED, Launched(B), DECIDED]
    encoder = module.msgspec.msgpack.Encoder()
    frames = [module.frame(encoder.encode(record)) for record in records]
    whole = b"".join(frames)
    cut = data.draw(st.integers(0, len(whole)))
    tail = data.draw(st.binary(max_size=20))
    kept = sum(1 for n in range(3) if len(b"".join(frames[: n + 1])) <= cut)
    path = Path("/dev/shm" if Path("/dev/shm").is_dir() else "/tmp") / f"journal-{os.getpid()}"
    path.write_bytes(whole[:cut] + (tail if cut < len(whole) else b""))
    try:
        live = reopened(path)
    finally:
        path.unlink()
    if whole[:cut] + tail != whole[: cut + len(tail)]:
        assert len(live) == kept


async def test_a_full_disk_is_a_fault_and_later_writes_are_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = Journal(tmp_path / "j")
    await journal.write(LAUNCHED)
    real = os.pwrite

    def full(fd: int, data: bytes, offset: int) -> int:
        if len(data) > 4:
            return real(fd, data[:4], offset)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(Fault, match="No space left"):
        await journal.write(Launched(B))
    monkeypatch.setattr(os, "pwrite", real)
    await journal.write()
    assert reopened(tmp_path / "j") == [LAUNCHED, Launched(B)]


async def test_it_stays_small_however_much_passes_through(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j", compact_bytes=20_000)
    await journal.write(LAUNCHED)
    for n in range(2_000):
        await journal.write(Launched(f"{B}{n}"))
        journal.note(Dropped(f"{B}{n}"))
    await journal.close()
    assert (tmp_path / "j").stat().st_size < 3 * module._AHEAD_BYTES
    assert reopened(tmp_path / "j") == [LAUNCHED]


async def test_a_compaction_without_room_goes_on_with_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = Journal(tmp_path / "j", compact_bytes=100)

    def full(whole: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(journal, "_compact", full)
    for n in range(10):
        await journal.write(Launched(f"{B}{n}"))
    assert len(reopened(tmp_path / "j")) == 10
