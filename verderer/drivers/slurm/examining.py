"""What a Slurm cluster needs before any step can run there, looked at without a job."""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from verderer.core.errors import VerdererError
from verderer.core.model.cluster import CheckLevel, CheckReport
from verderer.drivers.slurm.commands import Slurm
from verderer.drivers.slurm.nodefacts import usable
from verderer.drivers.slurm.options import SlurmOptions
from verderer.drivers.slurm.readers.nodes import Partition

_OLDEST: Final = (21, 8)
_COMMANDS: Final = "Slurm's commands"
_CONTROLLER: Final = "Slurm controller"
_FOLDER: Final = "shared folder"
_PARTITION: Final = "partition"


async def examine(slurm: Slurm, options: SlurmOptions) -> list[CheckReport]:
    """Commands, controller, partitions and the shared folder, in this order; never raises."""
    found = [await _commands(slurm)]
    if found[0].level is CheckLevel.PASS:
        found += await _controller(slurm, options)
    found.append(await asyncio.to_thread(_folder, options.shared_dir))
    return found


async def _commands(slurm: Slurm) -> CheckReport:
    try:
        version = await slurm.version()
    except VerdererError as error:
        return _of(_COMMANDS, CheckLevel.FAIL, error.message, error.hint)
    text = f"version {version[0]}.{version[1]:02}"
    if version < _OLDEST:
        return _of(_COMMANDS, CheckLevel.FAIL, f"{text} is too old", "Slurm 21.08 is the oldest.")
    return _of(_COMMANDS, CheckLevel.PASS, text)


async def _controller(slurm: Slurm, options: SlurmOptions) -> list[CheckReport]:
    try:
        partitions = await slurm.partitions()
    except VerdererError as error:
        unknown = _of(_PARTITION, CheckLevel.UNKNOWN, "the controller could not be asked")
        return [_of(_CONTROLLER, CheckLevel.FAIL, error.message, error.hint), unknown]
    return [_of(_CONTROLLER, CheckLevel.PASS, "answers"), _partition(partitions, options)]


def _partition(partitions: Sequence[Partition], options: SlurmOptions) -> CheckReport:
    ours = usable(partitions, options)
    there = ", ".join(sorted(one.name for one in partitions)) or "none"
    if not ours:
        wanted = options.partition or "the default"
        message = f"{wanted} is not among the partitions that this user sees: {there}"
        return _of(_PARTITION, CheckLevel.FAIL, message, "Set slurm.partition to one of them.")
    names = ", ".join(one.name for one in ours)
    if not any(one.up for one in ours):
        remedy = "scontrol update PartitionName=… State=UP"
        return _of(_PARTITION, CheckLevel.FAIL, f"{names} is not up", remedy)
    return _of(_PARTITION, CheckLevel.PASS, f"jobs go to {names}")


def _folder(shared: Path) -> CheckReport:
    """Writable, and able to take hard links: that is how a job claims its attempt."""
    name = f".probe-{secrets.token_hex(8)}"
    first, second = shared / name, shared / f"{name}.link"
    try:
        shared.mkdir(mode=0o700, parents=True, exist_ok=True)
        first.write_bytes(b"probe")
        os.link(first, second)
        free = os.statvfs(shared)
    except OSError as error:
        message = f"{shared}: {error.strerror or error}"
        remedy = (
            "It must be writable by the agent's user and take hard links inside one directory, "
            "under the same path on this machine and on every node."
        )
        return _of(_FOLDER, CheckLevel.FAIL, message, remedy)
    finally:
        for path in (first, second):
            path.unlink(missing_ok=True)
    gib = free.f_bavail * free.f_frsize / 2**30
    if gib < 1:
        remedy = "Make room: working directories and output lie there."
        return _of(_FOLDER, CheckLevel.WARN, f"{shared} has {gib:.1f} GiB free", remedy)
    return _of(_FOLDER, CheckLevel.PASS, f"{shared} is writable, {gib:,.0f} GiB free")


def _of(name: str, level: CheckLevel, message: str, remedy: str = "") -> CheckReport:
    return CheckReport(name=name, level=level, required=True, message=message, remedy=remedy)
