"""From an `Order` to a batch job: arguments of `sbatch`, a document for the nodes, a script."""

from __future__ import annotations

import math
import os
import pwd
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from verderer.core.errors import Invalid
from verderer.core.model.resources import CPU, MEMORY
from verderer.drivers.contract import Order
from verderer.drivers.slurm import layout
from verderer.drivers.slurm.commands import PATH
from verderer.drivers.slurm.options import CHOICES, SlurmOptions

CHOICE_PREFIX: Final = "VERDERER_SLURM_"
STORAGE: Final = "ephemeral-storage"
MAX_NODES: Final = 10_000
BACKSTOP_S: Final = 120.0
"""Slurm's own time limit lies so far behind ours: it acts only where our program cannot."""
_MIB: Final = 1 << 20
_UNIT: Final = 1000
_CHOICE: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.,:@+&|!*()\[\]=-]{0,199}")
_VISIBLE: Final = frozenset({"NVIDIA_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"})
_NONE_VISIBLE: Final = frozenset({"", "void", "none"})


def base_environment(agent: Mapping[str, str]) -> dict[str, str]:
    """The little of the agent's environment that programs may count on; no secret of ours."""
    try:
        user = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # a container's user without an entry
        user = str(os.getuid())
    return {
        "PATH": agent.get("PATH") or PATH,
        "HOME": agent.get("HOME") or "/",
        "LANG": agent.get("LANG") or "C.UTF-8",
        "USER": user,
        "LOGNAME": user,
    }


def check(order: Order, options: SlurmOptions) -> None:
    """Refuse what can never be started here.

    Raises:
        Invalid: no command, a NUL in a string, a name that no environment can hold, a device
            that this cluster does not hand out, a choice that steps do not have, or devices made
            visible past Slurm.
    """
    if not order.command and not order.args and not order.script:
        raise Invalid("there is nothing to run", hint="give the step a command or a script")
    if not 1 <= order.nodes <= MAX_NODES:
        raise Invalid(f"a job has 1 to {MAX_NODES} nodes, not {order.nodes}")
    for name in order.env:
        if not name or "=" in name:
            raise Invalid(f"{name!r} cannot name an environment variable")
    for text in (*order.command, *order.args, *order.env, *order.env.values()):
        if "\0" in text:
            raise Invalid("arguments and environment variables cannot contain a NUL character")
    for name in _VISIBLE & order.env.keys():
        if order.env[name].strip().lower() not in _NONE_VISIBLE:
            raise Invalid(
                f"{name} is set by Slurm: another value would take devices from other jobs",
                hint=f"ask for devices in resources.requests and leave {name} out",
                code="visible_devices",
            )
    chosen(order, options)
    devices(order, options)


def arguments(order: Order, home: Path, options: SlurmOptions) -> list[str]:
    """What follows `sbatch`; no shell ever sees it.

    Raises:
        Invalid: as `check`.
    """
    given = [
        f"--job-name={order.key}",
        f"--comment=verderer {order.key}",
        f"--chdir={home / 'work'}",
        f"--output={home / layout.OUTPUT}",
        "--open-mode=append",
        "--no-requeue",
        "--export=ALL",
        f"--nodes={order.nodes}",
        f"--ntasks={order.nodes}",
        "--ntasks-per-node=1",
        f"--cpus-per-task={cpus(order)}",
        *_limits(order),
    ]
    if gres := devices(order, options):
        given.append("--gres=" + ",".join(f"{name}:{count}" for name, count in gres.items()))
    given += [f"--{name}={value}" for name, value in chosen(order, options).items() if value]
    return [*given, str(home / layout.BATCH)]


def cpus(order: Order) -> int:
    """Whole processors of each node."""
    return max(1, math.ceil((order.requests.get(CPU) or order.limits.get(CPU)) / _UNIT))


def devices(order: Order, options: SlurmOptions) -> dict[str, int]:
    """Generic resources of each node, by Slurm's name.

    Raises:
        Invalid: a device that this cluster does not hand out.
    """
    found: dict[str, int] = {}
    for resource, amount in order.requests.items():
        if "/" not in resource:
            continue
        gres = options.gres_of(resource)
        if gres is None:
            raise Invalid(
                f"this Slurm cluster does not hand out {resource}",
                hint="name it in the setting slurm.gres",
                code="unknown_resource",
            )
        found[gres] = found.get(gres, 0) + math.ceil(amount / _UNIT)
    return found


def chosen(order: Order, options: SlurmOptions) -> dict[str, str]:
    """Partition and the like: the step's own choice where it has one, else the cluster's.

    Raises:
        Invalid: a choice that steps do not have here, or that is no name.
    """
    found = {name: getattr(options, name) for name in sorted(CHOICES)}
    for variable, value in order.env.items():
        if not variable.startswith(CHOICE_PREFIX):
            continue
        name = variable.removeprefix(CHOICE_PREFIX).lower()
        if name not in options.choices:
            allowed = ", ".join(sorted(options.choices)) or "nothing"
            raise Invalid(
                f"{variable}: on this cluster steps may choose {allowed}",
                hint="the setting slurm.choices says what",
                code="slurm_choice",
            )
        if not _CHOICE.fullmatch(value):
            raise Invalid(f"{variable}={value[:80]!r} names no {name}", code="slurm_choice")
        found[name] = value
    return found


def compose(
    order: Order, home: Path, options: SlurmOptions, base_env: Mapping[str, str]
) -> dict[str, Any]:
    """The order document, which the program on the nodes carries out."""
    return {
        "key": str(order.key),
        "run_name": order.run_name,
        "project": order.project,
        "step": order.step,
        "argv": _argv(order, home),
        "directory": str(home / "work"),
        "env": {**base_env, **order.env},
        "nodes": order.nodes,
        "cpus": cpus(order),
        "devices": bool(devices(order, options)),
        "timeout_s": order.timeout_s,
        "grace_s": order.grace_s,
        "beat_s": options.beat_s,
    }


def batch_script(home: Path, program: Path, options: SlurmOptions) -> bytes:
    """The job's script: find Python, become our program. The one place that a shell reads."""
    words = " ".join(map(shlex.quote, [str(program), "batch", str(home)]))
    candidates = " ".join(map(shlex.quote, [options.python, "/usr/libexec/platform-python"]))
    return (
        "#!/bin/sh\n"
        f"for python in {candidates}; do\n"
        '    if command -v "$python" >/dev/null 2>&1; then\n'
        f'        exec "$python" -I -S {words}\n'
        "    fi\n"
        "done\n"
        f'echo "there is none of {shlex.quote(options.python)} on $(hostname)" >&2\n'
        "exit 127\n"
    ).encode()


def write_down(home: Path, order: Order, document: Mapping[str, Any], batch: bytes) -> None:
    """Put everything that the job reads into the attempt's directory, the order last and durably.

    Raises:
        OSError: the file server does not take it.
    """
    for directory in (home, home / "work", home / "log"):
        directory.mkdir(mode=layout.PRIVATE, parents=True, exist_ok=True)
    if order.script:
        text = order.script.encode("utf-8", "surrogateescape")
        layout.write_bytes(home / layout.SCRIPT, text, mode=0o700, durable=False)
    layout.write_bytes(home / layout.BATCH, batch, durable=False)
    layout.write(home, layout.ORDER, document)


def _limits(order: Order) -> list[str]:
    found = []
    memory = max(order.limits.get(MEMORY), order.requests.get(MEMORY))
    if memory:
        found.append(f"--mem={math.ceil(memory / _MIB)}M")
    if storage := order.requests.get(STORAGE):
        found.append(f"--tmp={math.ceil(storage / _MIB)}M")
    if order.timeout_s is None:
        # Only the partition limits it: then Slurm's warning gives it its grace.
        shell = "B:" if order.nodes == 1 else ""
        found.append(f"--signal={shell}TERM@{max(1, min(65_535, math.ceil(order.grace_s)))}")
    else:
        limit_s = order.timeout_s + order.grace_s + BACKSTOP_S
        found.append(f"--time={math.ceil(limit_s / 60)}")
    return found


def _argv(order: Order, home: Path) -> list[str]:
    if not order.script:
        return [*order.command, *order.args]
    path = str(home / layout.SCRIPT)
    if order.script.startswith("#!"):
        return [path, *order.args]
    return ["/bin/bash", "-eu", path, *order.args]
