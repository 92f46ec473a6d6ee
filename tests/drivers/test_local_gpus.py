from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verderer.core.errors import Fault, Refusal
from verderer.drivers.local.gpus import GPU, Device, find_devices, parse_list, take

SAMPLES = Path(__file__).parent / "samples"
FOUR = tuple(Device(GPU, str(index), "H200") for index in range(4))


@pytest.mark.parametrize(
    ("sample", "counts"),
    [
        pytest.param(
            "nvidia-smi-L-h200-mig-mixed.txt",
            {GPU: 7, "nvidia.com/mig-2g.35gb": 1, "nvidia.com/mig-1g.18gb": 5},
            id="a GPU cut into instances is not offered whole",
        ),
        pytest.param(
            "nvidia-smi-L-a100-legacy-7x1g.5gb.txt",
            {"nvidia.com/mig-1g.5gb": 7},
            id="instances of older drivers",
        ),
    ],
)
def test_real_lists_are_read(sample: str, counts: dict[str, int]) -> None:
    devices = parse_list((SAMPLES / sample).read_text())
    assert Counter(d.resource for d in devices) == counts
    assert len({d.visible_as for d in devices}) == len(devices)


@given(st.text())
def test_rubbish_is_no_device_and_no_error(text: str) -> None:
    parse_list(text)


def test_a_machine_without_the_tool_has_no_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert find_devices() == ()


def test_a_broken_tool_is_no_device_and_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\necho 'Failed to initialize NVML'\nexit 9\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    assert find_devices() == ()


def test_the_lowest_free_ones_are_handed_out() -> None:
    assert take(FOUR, ["1"], {GPU: 1000}, replicas=2) == [["0"], ["2"]]
    assert take(FOUR, [], {}, replicas=2) == [[], []]


def test_busy_is_told_from_never() -> None:
    with pytest.raises(Fault):
        take(FOUR, ["0"], {GPU: 4000}, replicas=1)
    with pytest.raises(Refusal):
        take(FOUR, [], {GPU: 5000}, replicas=1)


@given(busy=st.sets(st.sampled_from("0123")), each=st.integers(0, 4), replicas=st.integers(1, 4))
def test_no_device_is_ever_held_twice(busy: set[str], each: int, replicas: int) -> None:
    try:
        chosen = take(FOUR, busy, {GPU: each * 1000}, replicas=replicas)
    except (Fault, Refusal):
        assert each * replicas > 4 - len(busy)
        return
    flat = [name for mine in chosen for name in mine]
    assert len(flat) == len(set(flat)) == each * replicas
    assert not busy & set(flat)
