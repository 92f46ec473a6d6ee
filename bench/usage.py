"""What each role used while something was measured."""

from __future__ import annotations

import time
from collections import defaultdict
from types import TracebackType
from typing import Self

from bench.figures import Cost
from bench.machine import load_average
from bench.platform.process import cpu_s, forget_peak, peak_rss_mib, shared_out_mib
from bench.platform.roles import Roles

_GROUPS = {"alpha": "clusters", "beta": "clusters", "gamma": "clusters"}


class Meter:
    """`with Meter(roles) as meter: …`; afterwards `costs`, `wall_s` and `load` are known."""

    def __init__(self, roles: Roles) -> None:
        self._roles = roles
        self.costs: dict[str, Cost] = {}
        self.wall_s = 0.0
        self.load = 0.0

    def __enter__(self) -> Self:
        self.load = load_average()
        for process in self._roles.running.values():
            forget_peak(process.pid)
        self._before = self._cpu()
        self._own = time.process_time()
        self._began = time.monotonic()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.wall_s = time.monotonic() - self._began
        own = time.process_time() - self._own
        after = self._cpu()
        cpu: defaultdict[str, float] = defaultdict(float)
        rss: defaultdict[str, float] = defaultdict(float)
        for name, process in self._roles.running.items():
            group = group_of(name)
            cpu[group] += after[name] - self._before.get(name, 0.0)
            measure = shared_out_mib if name == "postgres" else peak_rss_mib
            rss[group] += measure(process.pid)
        self.costs = {group: Cost(cpu[group], rss[group]) for group in cpu}
        self.costs["bench"] = Cost(own, 0.0)

    def _cpu(self) -> dict[str, float]:
        return {name: cpu_s(process.pid) for name, process in self._roles.running.items()}


def group_of(name: str) -> str:
    """Roles of one kind are added up."""
    return _GROUPS.get(name, name.partition("-")[0])
