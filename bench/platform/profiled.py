"""Runs a module under a sampling profiler: `python -m bench.platform.profiled MODULE [WORDS]`.

`VERDERER_BENCH_PROFILE` names the folder for what it finds. The timer counts the process's own CPU
time, so that waiting is not sampled; the kernel's tick, mostly four milliseconds, is its unit.
"""

from __future__ import annotations

import atexit
import os
import runpy
import signal
import sys
from collections import Counter
from pathlib import Path
from types import FrameType

FOLDER = "VERDERER_BENCH_PROFILE"
_EVERY_S = 0.002
_DEPTH = 60
_WRITE_AFTER = 200
"""Samples. uvicorn ends by a signal that leaves no last word, so it is written now and then."""


class Sampler:
    """Counts stacks."""

    def __init__(self, out: Path) -> None:
        self._out = out
        self._stacks: Counter[tuple[str, ...]] = Counter()
        self._taken = 0
        self._writing = False

    def start(self) -> None:
        signal.signal(signal.SIGPROF, self._sample)
        signal.setitimer(signal.ITIMER_PROF, _EVERY_S, _EVERY_S)
        atexit.register(self._stop)

    def _sample(self, _signal: int, frame: FrameType | None) -> None:
        if self._writing:
            return
        stack: list[str] = []
        while frame is not None and len(stack) < _DEPTH:
            code = frame.f_code
            stack.append(f"{_short(code.co_filename)}:{code.co_qualname}")
            frame = frame.f_back
        self._stacks[tuple(stack)] += 1
        self._taken += 1
        if self._taken % _WRITE_AFTER == 0:
            self._writing = True
            self._write()
            self._writing = False

    def _stop(self) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)
        self._write()

    def _write(self) -> None:
        own: Counter[str] = Counter()
        within: Counter[str] = Counter()
        for stack, n in self._stacks.items():
            own[stack[0]] += n
            for name in set(stack):
                within[name] += n
        total = self._taken or 1
        lines = [f"{total} samples"]
        for title, counted in (("own", own), ("with what it calls", within)):
            lines += ["", title]
            lines += [f"{100 * n / total:5.1f} %  {name}" for name, n in counted.most_common(70)]
        self._out.write_text("\n".join(lines) + "\n")


def _short(path: str) -> str:
    return "/".join(Path(path).parts[-3:])


def main() -> None:
    module, *words = sys.argv[1:]
    name = words[0] if words else module.rpartition(".")[2]
    Sampler(Path(os.environ[FOLDER]) / f"{name}-{os.getpid()}.txt").start()
    sys.argv = [module, *words]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
