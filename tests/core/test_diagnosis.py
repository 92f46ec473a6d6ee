"""What lies behind an end: signs that programs and clusters print, and nothing by guessing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verderer.core.diagnosis import (
    ADVICE,
    Finding,
    diagnose,
    may_tell,
    of_devices,
    read_signs,
)
from verderer.core.ending import describe
from verderer.core.model.attempt import End, EndCause

EXIT_1 = End(cause=EndCause.EXIT, exit_code=1)


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        (
            b"RuntimeError: The NVIDIA driver on your system is too old (found version 11040).",
            Finding.CUDA_DRIVER,
        ),
        (
            b"nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.6",
            Finding.CUDA_DRIVER,
        ),
        (
            b"CUDA error: no kernel image is available for execution on the device",
            Finding.CUDA_ARCH,
        ),
        (
            b"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has",
            Finding.GPU_MEMORY,
        ),
        (b"RuntimeError: No CUDA GPUs are available", Finding.NO_GPU),
        (b"CUDA error: uncorrectable ECC error encountered", Finding.GPU_FAULT),
        (
            b"[Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=91",
            Finding.COLLECTIVE,
        ),
        (b"/bin/app: exec format error", Finding.WRONG_ARCH),
        (b"OSError: [Errno 28] No space left on device: 'ckpt.pt'", Finding.DISK_FULL),
        (b"ValueError: shapes do not match", None),
        (b"", None),
    ],
)
def test_signs_in_what_a_program_printed(text: bytes, finding: Finding | None) -> None:
    assert read_signs(text) is finding
    assert read_signs(b"line before\n" * 50 + text + b"\nTraceback ends\n") is finding


def test_what_stands_long_before_the_end_is_no_sign() -> None:
    assert read_signs(b"CUDA out of memory, trying a smaller batch\n" + b"ok\n" * 9000) is None


@pytest.mark.parametrize(
    ("cause", "message", "finding"),
    [
        (EndCause.LOST, "its node was lost", Finding.NODE_LOST),
        (EndCause.START, "ErrImagePull: manifest unknown", Finding.IMAGE),
        (EndCause.OOM, "its memory limit was reached", None),
        (EndCause.CANCELLED, "stopped on request", None),
        (EndCause.TIMEOUT, "the node was low on resource: memory", None),
        (EndCause.EXIT, "exit code 1", None),
    ],
)
def test_words_of_clusters(cause: EndCause, message: str, finding: Finding | None) -> None:
    code = 1 if cause is EndCause.EXIT else None
    assert diagnose(End(cause=cause, exit_code=code, message=message)) is finding


def test_a_slice_of_a_gpu_is_told_apart_from_a_whole_one() -> None:
    assert of_devices(Finding.GPU_MEMORY, ["nvidia.com/mig-1g.10gb"]) is Finding.MIG_MEMORY
    assert of_devices(Finding.GPU_MEMORY, ["nvidia.com/gpu"]) is Finding.GPU_MEMORY
    assert of_devices(None, ["nvidia.com/mig-1g.10gb"]) is None


def test_every_finding_has_a_sentence_and_a_remedy() -> None:
    assert set(ADVICE) == set(Finding)
    assert all(a.sentence and a.remedy for a in ADVICE.values())


def test_the_last_lines_are_asked_where_they_may_tell() -> None:
    assert may_tell(EXIT_1)
    assert not may_tell(End(cause=EndCause.OOM))
    assert not may_tell(End(cause=EndCause.EXIT, exit_code=0))


def test_ends_in_words() -> None:
    assert describe(EXIT_1) == "exited with code 1"
    assert describe(End(cause=EndCause.EXIT, exit_code=137)).endswith("(as of signal 9 (SIGKILL))")
    assert "SIGSEGV" in describe(End(cause=EndCause.SIGNAL, signal=11))


@given(st.binary(max_size=4096))
def test_any_bytes_are_read(data: bytes) -> None:
    assert read_signs(data) in (None, *Finding)


@given(
    st.sampled_from(EndCause),
    st.text(max_size=300),
    st.none() | st.integers(-5, 300),
    st.none() | st.integers(-5, 100),
)
def test_any_end_has_words(
    cause: EndCause, message: str, code: int | None, signal: int | None
) -> None:
    end = End(cause=cause, message=message, exit_code=code, signal=signal)
    assert describe(end)
    assert diagnose(end) in (None, *Finding)
    may_tell(end)
