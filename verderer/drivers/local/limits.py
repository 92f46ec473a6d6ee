"""Finds the place in the cgroup tree below which this agent may limit what it starts."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

CONTROLLERS = ("cpu", "memory", "pids")
_DELEGATED = ("user.delegate", "trusted.delegate")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Which limits the kernel lets us set, and where."""

    version: int = 0
    """Of the cgroup interface: 1, 2, or 0 for none."""
    bases: Mapping[str, str] = field(default_factory=dict)
    """Controller to the directory below which groups are made."""

    @property
    def label(self) -> str:
        """What is enforced, for the node's labels: `cpu,memory,pids` or `none`."""
        return ",".join(sorted(set(self.bases) & set(CONTROLLERS))) or "none"


@dataclass(frozen=True, slots=True)
class Hierarchies:
    """Where the cgroup file systems are mounted and where in them this process is."""

    own_v1: Mapping[str, Path]
    own_v2: Path | None


def name_below(root: Path) -> str:
    """A name of our own for this driver's groups: two roots must never share one."""
    return "verderer-" + hashlib.sha256(os.fsencode(root.resolve())).hexdigest()[:12]


def find_limits(name: str, *, inside: Path | None = None) -> Limits:
    """Try the delegated version 2 directory `inside`, or else wherever this process itself is.

    Creates the directory `name` there. Never raises: without permission nothing is limited.
    """
    if inside is not None:
        return _try_v2(inside, name) or Limits()
    where = own_directories()
    if where.own_v2 is not None:
        for candidate in _v2_candidates(where.own_v2):
            if (found := _try_v2(candidate, name)) is not None and found.label != "none":
                return found
    return _try_v1(where.own_v1, name)


def sweep(limits: Limits, keep: Collection[str]) -> None:
    """Remove empty groups that an earlier life left, except those of the attempts in `keep`."""
    for base in {Path(path) for path in limits.bases.values()}:
        for group in base.iterdir():
            if group.is_dir() and group.name.rpartition(".")[0] not in keep:
                with contextlib.suppress(OSError):
                    group.rmdir()


def own_directories() -> Hierarchies:
    """Where this process is."""
    return parse_hierarchies(_read("/proc/self/mountinfo"), _read("/proc/self/cgroup"))


def _v2_candidates(own: Path) -> Iterable[Path]:
    """Ourselves, then our parent if systemd delegated it and put us into a leaf of it."""
    yield own
    if any(_attribute(own.parent, name) == b"1" for name in _DELEGATED):
        yield own.parent


def _try_v2(parent: Path, name: str) -> Limits | None:
    offered = set(_read(parent / "cgroup.controllers").split()) & set(CONTROLLERS)
    base = parent / name
    if not offered or not _enable(parent, offered) or not _make(base):
        return None
    _enable(base, offered)
    usable = set(_read(base / "cgroup.subtree_control").split()) & offered
    return Limits(version=2, bases={controller: str(base) for controller in sorted(usable)})


def _enable(directory: Path, controllers: Iterable[str]) -> bool:
    """Hand controllers down to children; the kernel says no where processes live beside them."""
    wanted = " ".join(f"+{controller}" for controller in sorted(controllers))
    try:
        (directory / "cgroup.subtree_control").write_text(wanted)
    except OSError:
        return set(controllers) <= set(_read(directory / "cgroup.subtree_control").split())
    return True


def _try_v1(own: Mapping[str, Path], name: str) -> Limits:
    bases = {}
    for controller in CONTROLLERS:
        parent = own.get(controller)
        if parent is not None and _make(parent / name):
            bases[controller] = str(parent / name)
    return Limits(version=1 if bases else 0, bases=bases)


def _make(directory: Path) -> bool:
    with contextlib.suppress(OSError):
        directory.mkdir(mode=0o755, exist_ok=True)
        return os.access(directory / "cgroup.procs", os.W_OK)
    return False


def parse_hierarchies(mountinfo: str, own: str) -> Hierarchies:
    """Read /proc/self/mountinfo and /proc/self/cgroup (see proc(5) and cgroups(7))."""
    v1: dict[str, tuple[str, str]] = {}
    v2: tuple[str, str] | None = None
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        fields, kind = before.split(), after.split()
        if len(fields) < 5 or not kind:
            continue
        mounted, point = fields[3], fields[4]
        if kind[0] == "cgroup2":
            v2 = (mounted, point)
        elif kind[0] == "cgroup":
            v1.update(dict.fromkeys(kind[-1].split(","), (mounted, point)))
    own_v1: dict[str, Path] = {}
    own_v2: Path | None = None
    for line in own.splitlines():
        _, _, rest = line.partition(":")
        names, _, path = rest.partition(":")
        if not names and v2 is not None:
            own_v2 = _below(*v2, path)
        for controller in names.split(","):
            if controller in v1:
                own_v1[controller] = _below(*v1[controller], path)
    return Hierarchies(own_v1, own_v2)


def _below(mounted: str, point: str, path: str) -> Path:
    """Where a cgroup path is seen, when only the subtree `mounted` of the hierarchy is."""
    inside = path[len(mounted) :] if mounted != "/" and path.startswith(mounted) else path
    return Path(point) / inside.strip("/")


def _attribute(path: Path, name: str) -> bytes:
    try:
        return os.getxattr(path, name)
    except OSError:
        return b""


def _read(path: Path | str) -> str:
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return ""
