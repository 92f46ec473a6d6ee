"""From an `Order` to the document that a monitor carries out."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from verderer.core.errors import Invalid
from verderer.core.model.attempt import AttemptKey
from verderer.core.model.resources import CPU, MEMORY
from verderer.drivers.contract import Order
from verderer.drivers.local import gpus
from verderer.drivers.local.limits import Limits

SCRIPT = "script"
MAX_NODES = 64
ATTEMPT_HOME = "VERDERER_ATTEMPT_HOME"
"""In the environment of everything that an attempt starts, so that its remains can be found."""
_DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What this machine adds to every order."""

    boot: str
    limits: Limits
    base_env: Mapping[str, str]
    spool_bytes: int
    pids: int
    term: int = 0
    """Of the lease that leased work is ordered under."""


def base_environment(agent: Mapping[str, str]) -> dict[str, str]:
    """The little of the agent's environment that programs may count on; no secret of ours."""
    try:
        user = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # a container's user without an entry
        user = str(os.getuid())
    return {
        "PATH": agent.get("PATH") or _DEFAULT_PATH,
        "HOME": agent.get("HOME") or "/",
        "LANG": agent.get("LANG") or "C.UTF-8",
        "USER": user,
        "LOGNAME": user,
    }


def check(order: Order) -> None:
    """Refuse what can never be started here.

    Raises:
        Invalid: no command, a NUL in a string, a name that no environment can hold, too many
            nodes, an accelerator that this driver does not know.
    """
    if not order.command and not order.args and not order.script:
        raise Invalid("there is nothing to run", hint="give the step a command or a script")
    if not 1 <= order.nodes <= MAX_NODES:
        raise Invalid(f"one machine runs 1 to {MAX_NODES} replicas, not {order.nodes}")
    for name in order.env:
        if not name or "=" in name:
            raise Invalid(f"{name!r} cannot name an environment variable")
    for text in (*order.command, *order.args, *order.env, *order.env.values()):
        if "\0" in text:
            raise Invalid("arguments and environment variables cannot contain a NUL character")
    for resource in order.requests:
        if "/" in resource and not gpus.is_device(resource):
            raise Invalid(f"a local cluster cannot hand out {resource}", code="unknown_resource")


def write_script(home: Path, text: str) -> None:
    """Put the step's script beside its working directory. Raises OSError."""
    path = home / SCRIPT
    path.unlink(missing_ok=True)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o700)
    with os.fdopen(fd, "w", encoding="utf-8", errors="surrogateescape", newline="") as file:
        file.write(text)


def compose(order: Order, home: Path, terms: Terms, devices: Sequence[list[str]]) -> dict[str, Any]:
    """The order document. `devices` are the GPUs of each replica."""
    timeout = order.timeout_s
    return {
        "key": str(order.key),
        "boot": terms.boot,
        "run_name": order.run_name,
        "project": order.project,
        "step": order.step,
        "argv": _argv(order, home),
        "directory": str(home / "work"),
        "env": {
            **terms.base_env,
            "TMPDIR": str(home / "tmp"),
            **order.env,
            ATTEMPT_HOME: str(home),
        },
        "replicas": _replicas(order, devices),
        "limits": {
            "cpu": order.limits.get(CPU),
            "cpu_share": order.requests.get(CPU),
            "memory": order.limits.get(MEMORY),
            "pids": terms.pids,
        },
        "cgroup": {"version": terms.limits.version, "bases": dict(terms.limits.bases)},
        "timeout_s": timeout,
        "grace_s": order.grace_s,
        "term": terms.term if order.leased else None,
        "spool_bytes": terms.spool_bytes,
    }


def nothing(key: AttemptKey, boot: str) -> dict[str, Any]:
    """The order document of an attempt that was stopped before it was ordered."""
    return {
        "key": str(key),
        "boot": boot,
        "replicas": [],
        "cgroup": {"version": 0, "bases": {}},
    }


def _argv(order: Order, home: Path) -> list[str]:
    if not order.script:
        return [*order.command, *order.args]
    path = str(home / SCRIPT)
    if order.script.startswith("#!"):
        return [path, *order.args]
    shell = shutil.which("bash", path=_DEFAULT_PATH) or "/bin/sh"
    return [shell, "-eu", path, *order.args]


def _replicas(order: Order, devices: Sequence[list[str]]) -> list[dict[str, Any]]:
    shared = {"VERDERER_NUM_NODES": str(order.nodes), "MASTER_ADDR": "127.0.0.1"}
    if order.nodes > 1:
        shared["MASTER_PORT"] = str(_free_port())
    return [
        {"env": {**shared, "VERDERER_NODE_RANK": str(rank), **_visible(mine)}, "devices": mine}
        for rank, mine in enumerate(devices)
    ]


def _visible(devices: Sequence[str]) -> dict[str, str]:
    if not devices:
        return {"CUDA_VISIBLE_DEVICES": "", "NVIDIA_VISIBLE_DEVICES": "void"}
    names = ",".join(devices)
    # Without the order CUDA counts the fastest first, and index 0 is not nvidia-smi's GPU 0.
    return {
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "CUDA_VISIBLE_DEVICES": names,
        "NVIDIA_VISIBLE_DEVICES": names,
    }


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
