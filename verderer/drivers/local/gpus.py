"""The GPUs of this machine, and who holds which."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from verderer.core.errors import Fault, Refusal

GPU = "nvidia.com/gpu"
MIG_PREFIX = "nvidia.com/mig-"
_UNIT = 1000
_LIST_TIMEOUT_S = 60.0
_GPU_LINE = re.compile(r"GPU (\d+): (.*) \(UUID: (GPU-[0-9a-fA-F-]+)\)\s*")
_MIG_LINE = re.compile(r"\s+MIG (\S+)\s+Device\s+\d+: \(UUID: (MIG-[0-9a-zA-Z/-]+)\)\s*")


@dataclass(frozen=True, slots=True)
class Device:
    """Something that one attempt at a time can hold."""

    resource: str
    visible_as: str
    """What stands for it in CUDA_VISIBLE_DEVICES: an index, or the UUID of a MIG instance."""
    model: str


def parse_list(text: str) -> tuple[Device, ...]:
    """Read `nvidia-smi -L`; lines that are something else are skipped.

    A GPU that is cut into MIG instances is offered as those instances only.
    """
    devices: list[Device] = []
    parent: Device | None = None
    for line in text.splitlines():
        if whole := _GPU_LINE.fullmatch(line):
            parent = Device(GPU, whole[1], whole[2])
            devices.append(parent)
        elif (part := _MIG_LINE.fullmatch(line)) and parent is not None:
            if parent in devices:
                devices.remove(parent)
            # Kubernetes spells the profile `1g.10gb+me` as `mig-1g.10gb.me`.
            profile = part[1].replace("+", ".")
            devices.append(Device(MIG_PREFIX + profile, part[2], parent.model))
    return tuple(devices)


def find_devices() -> tuple[Device, ...]:
    """Ask `nvidia-smi`; none when it is absent, fails or does not answer in a minute."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return ()
    try:
        answer = subprocess.run(
            [program, "-L"],
            capture_output=True,
            timeout=_LIST_TIMEOUT_S,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ()
    return parse_list(answer.stdout.decode("utf-8", "replace")) if answer.returncode == 0 else ()


def is_device(resource: str) -> bool:
    """Whether the driver hands it out piece by piece."""
    return resource == GPU or resource.startswith(MIG_PREFIX)


def take(
    devices: Sequence[Device], busy: Iterable[str], wanted: Mapping[str, int], *, replicas: int
) -> list[list[str]]:
    """Choose free devices for each replica, lowest first; `wanted` counts thousandths of one.

    Raises:
        Refusal: this machine does not have so many.
        Fault: it has, and others still hold them.
    """
    chosen: list[list[str]] = [[] for _ in range(replicas)]
    held = set(busy)
    for resource, amount in wanted.items():
        each = -(-amount // _UNIT)
        having = [d.visible_as for d in devices if d.resource == resource]
        free = [name for name in having if name not in held]
        if each * replicas > len(having):
            raise Refusal(
                f"this machine has {len(having)} {resource}, and {each * replicas} are needed",
                hint="ask for fewer, or for a cluster that has them",
                code="not_enough_devices",
            )
        if each * replicas > len(free):
            raise Fault(f"only {len(free)} of {len(having)} {resource} are free at the moment")
        for mine in chosen:
            mine.extend(free[:each])
            del free[:each]
    return chosen
