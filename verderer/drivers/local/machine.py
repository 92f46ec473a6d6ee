"""This machine as the one node of a local cluster."""

from __future__ import annotations

import asyncio
import contextlib
import platform
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from verderer.core.model.resources import CPU, MEMORY, Resources
from verderer.drivers.contract import NodeFacts
from verderer.drivers.local import load
from verderer.drivers.local.gpus import Device, is_device
from verderer.drivers.local.limits import (
    Limits,
    find_limits,
    name_below,
    own_directories,
    sweep,
)

LIMITS_LABEL = "verderer.dev/limits"
CGROUP_LABEL = "verderer.dev/cgroup"
MODEL_LABEL = "verderer.dev/accelerator"
_DEVICES_FOR_S = 300.0
_UNIT = 1000


class Machine:
    """Asks the machine about itself, each thing as seldom as it changes."""

    def __init__(
        self,
        root: Path,
        capacity: Resources | None,
        cgroup: str,
        find_devices: Callable[[], Sequence[Device]],
    ) -> None:
        self.name = platform.node() or "localhost"
        self._root = root
        self._capacity = capacity
        self._cgroup = cgroup
        self._find_devices = find_devices
        self._devices: tuple[Device, ...] | None = None
        self._devices_at = 0.0
        self.limits = Limits()
        """What can be limited, once opened."""
        self._meter = load.CpuMeter()

    def open(self, unfinished: Collection[str]) -> None:
        """Find a place in the cgroup tree, and clear it of all but the attempts that still run."""
        if self._cgroup != "off":
            inside = None if self._cgroup == "auto" else Path(self._cgroup)
            self.limits = find_limits(name_below(self._root), inside=inside)
            sweep(self.limits, unfinished)

    async def devices(self) -> Sequence[Device]:
        """The accelerators; asked for again every five minutes."""
        now = time.monotonic()
        if self._devices is None or now - self._devices_at > _DEVICES_FOR_S:
            self._devices = tuple(await asyncio.to_thread(self._find_devices))
            self._devices_at = now
        return self._devices

    async def facts(self) -> NodeFacts:
        """The node as of now."""
        devices = await self.devices()
        own = own_directories()
        total, free = load.memory_bytes(own.own_v2, own_v1=own.own_v1.get("memory"))
        found = {
            CPU: load.cpu_milli(own.own_v2, own_v1=own.own_v1.get("cpu")),
            MEMORY: total,
            **{name: n * _UNIT for name, n in Counter(d.resource for d in devices).items()},
        }
        return NodeFacts(
            name=self.name,
            ready=True,
            allocatable=_within(Resources.of(found), self._capacity),
            labels=self._labels(devices),
            cpu_load=self._meter.load(),
            memory_free=free,
        )

    def close(self) -> None:
        """Remove our cgroup directories, if nothing runs in them."""
        for path in set(self.limits.bases.values()):
            with contextlib.suppress(OSError):
                Path(path).rmdir()
        self.limits = Limits()

    def _labels(self, devices: Sequence[Device]) -> dict[str, str]:
        labels = {
            "kubernetes.io/arch": platform.machine(),
            "kubernetes.io/os": platform.system().lower(),
            LIMITS_LABEL: self.limits.label,
        }
        if self.limits.version:
            labels[CGROUP_LABEL] = f"v{self.limits.version}"
        if devices:
            labels[MODEL_LABEL] = ",".join(sorted({d.model for d in devices}))
        return labels


def _within(found: Resources, capacity: Resources | None) -> Resources:
    """What to offer: `capacity` where it is given, and never a device that is not there."""
    if capacity is None:
        return found
    return Resources.of(
        {
            name: min(amount, found.get(name)) if is_device(name) else amount
            for name, amount in capacity.items()
        }
    )
