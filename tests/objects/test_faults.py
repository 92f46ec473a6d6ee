"""What the backends' errors mean in our words."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from obstore.exceptions import GenericError

from verderer.core.errors import Conflict, Fault, NotFound
from verderer.objects.backends.faults import Translator
from verderer.objects.config import ObjectsConfig
from verderer.objects.store import open_store

SECRET = "a-secret-that-must-never-be-printed"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("Unable to copy data: No space left on device (os error 28)", "is full"),
        ("Unable to copy data: Disk quota exceeded (os error 122)", "quota"),
        ("Unable to open file: Permission denied (os error 13)", "cannot be written or read"),
        ("Unable to open file: Read-only file system (os error 30)", "cannot be written or read"),
        ("404: <Error><Code>NoSuchBucket</Code>", "bucket does not exist"),
        ("403: <Error><Code>SignatureDoesNotMatch</Code>", "does not accept our credentials"),
        ("status code: 403 Forbidden", "may not do this"),
        ("<Code>PermanentRedirect</Code>", "another region"),
        ("status code: 503 Service Unavailable: <Code>SlowDown</Code>", "slow down"),
        ("HTTP error: error sending request", "cannot be reached"),
        ("something new", "answered with an error"),
    ],
)
def test_a_fault_names_the_key_the_reason_and_a_remedy(text: str, says: str) -> None:
    fault = Translator().translate(GenericError(text), "write", "a/b")
    assert isinstance(fault, Fault)
    assert says in str(fault)
    assert "'a/b'" in str(fault)
    assert fault.hint
    assert fault.detail["key"] == "a/b"


def test_the_cause_is_one_short_line_without_secrets() -> None:
    text = f"GET http://s3/b?X-Amz-Signature=abc123&x=1 with {SECRET} failed\n" + "junk\n" * 1000
    fault = Translator(secrets=(SECRET,)).translate(GenericError(text), "read", "a")
    assert isinstance(fault, Fault)
    cause = fault.detail["cause"]
    assert cause == "GET http://s3/b?X-Amz-Signature=***&x=1 with *** failed"


def test_a_folder_that_is_a_file_is_absent_to_readers_and_a_conflict_to_writers() -> None:
    error = GenericError("Unable to open file /x: Not a directory (os error 20)")
    assert isinstance(Translator().translate(error, "read", "a"), NotFound)
    assert isinstance(Translator().translate(error, "write", "a"), Conflict)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A real file system of 1 MiB."""
    mount = tmp_path / "disk"
    mount.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(mount)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True).returncode != 0:
        pytest.skip("NOT TESTED on a really full disk: mounting one needs root")
    yield mount
    subprocess.run(["umount", str(mount)], check=True)


@pytest.mark.parametrize("size", [2, 20], ids=["in one piece", "in parts"])
async def test_a_full_disk_is_called_that_and_leaves_nothing(small_disk: Path, size: int) -> None:
    store = open_store(ObjectsConfig(url=str(small_disk)))
    await store.put("kept", b"x" * 1000)
    with pytest.raises(Fault, match="is full") as failed:
        await store.put("big", b"x" * (size * 1024 * 1024))
    assert "free space" in failed.value.hint
    assert [one.key for one in await store.list("")] == ["kept"]
    await _soon(lambda: store.put("small", b"room again"))


async def test_a_directory_that_cannot_be_made_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(Fault, match="cannot be used"):
        open_store(ObjectsConfig(url=str(tmp_path / "file" / "below")))


async def _soon(work: Callable[[], Awaitable[object]]) -> None:
    """Parts that were on their way are removed a moment after the failure is known."""
    for _ in range(100):
        try:
            await work()
        except Fault:
            await asyncio.sleep(0.1)
        else:
            return
    await work()
