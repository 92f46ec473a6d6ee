"""Counts what the local cluster still runs after everything of ours has stopped."""

from __future__ import annotations

import os
from pathlib import Path

from verderer.drivers.local.monitor import kernel, records


def steps_left_running(data_dir: Path) -> int:
    """Attempts of the local cluster whose monitor lives and that have no end yet."""
    try:
        homes = [entry.path for entry in os.scandir(data_dir / "local" / "attempts")]
    except OSError:
        return 0
    return sum(map(_runs, homes))


def _runs(home: str) -> bool:
    try:
        claim = records.read(home, records.CLAIM)
        if claim is None or "pid" not in claim or records.read(home, records.END) is not None:
            return False
        return bool(kernel.started_at(claim["pid"]) == claim["started"])
    except (OSError, ValueError, KeyError):
        return False
