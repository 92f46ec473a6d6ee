"""What a Slurm driver is told at its start."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Final

from verderer.core.errors import Invalid

GPU: Final = "nvidia.com/gpu"
MIG_PREFIX: Final = "nvidia.com/mig-"
CHOICES: Final = frozenset({"partition", "account", "qos", "constraint", "reservation"})
_GRES: Final = re.compile(r"[A-Za-z0-9_]+(?::[A-Za-z0-9_.+-]+)?")
_RESOURCE: Final = re.compile(r"[a-z0-9.-]+/[a-z0-9A-Z._-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmOptions:
    """Everything about one Slurm cluster that is not in Slurm itself."""

    shared_dir: Path
    """A folder that the agent and every node see under this same path."""
    bin_dir: str = ""
    """Where Slurm's commands are; empty: on the PATH."""
    conf: str = ""
    """Path of slurm.conf; empty: Slurm's own default."""
    partition: str = ""
    account: str = ""
    qos: str = ""
    reservation: str = ""
    constraint: str = ""
    choices: frozenset[str] = frozenset()
    """Which of these a step may choose by a `VERDERER_SLURM_…` variable of its own."""
    gres: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({GPU: "gpu"}))
    """From a resource to the name, or name and type, of Slurm's generic resource."""
    python: str = "python3"
    """The interpreter on the nodes, 3.6 or newer."""
    poll_s: float = 1.0
    """Between two looks at our jobs while something is going on."""
    longest_poll_s: float = 10.0
    """The same while nothing is."""
    command_timeout_s: float = 30.0
    """How long one command may take."""
    submissions_per_s: float = 100.0
    """Most `sbatch` in a second, in the long run."""
    resume_after_s: float = 5.0
    """An order without a job gets so long to show one, or to be handed in again by its starter."""
    beat_s: float = 20.0
    """How often a running rank touches its sign of life."""
    settle_s: float = 10.0
    """How long the files of an ended job may take to be seen through the file server's caches."""
    silent_s: float = 120.0
    """A job that Slurm has forgotten is lost after so long without a sign of life."""

    def gres_of(self, resource: str) -> str | None:
        """What Slurm calls a device; None when it is not one that this cluster hands out."""
        known = self.gres.get(resource)
        if known is None and resource.startswith(MIG_PREFIX):
            return f"gpu:{resource.removeprefix(MIG_PREFIX)}"
        return known

    def resource_of(self, name: str, kind: str) -> str | None:
        """The resource that a generic resource of a node counts as; None for an unknown one."""
        by_gres = {gres: resource for resource, gres in self.gres.items()}
        return by_gres.get(f"{name}:{kind}") or by_gres.get(name)


def parse_gres(text: str) -> dict[str, str]:
    """Read `nvidia.com/gpu=gpu, nvidia.com/mig-1g.10gb=gpu:1g.10gb`.

    Raises:
        Invalid: a part is not `RESOURCE=NAME` or `RESOURCE=NAME:TYPE`.
    """
    found = {}
    for part in filter(None, (one.strip() for one in text.split(","))):
        resource, _, gres = part.partition("=")
        if not _RESOURCE.fullmatch(resource.strip()) or not _GRES.fullmatch(gres.strip()):
            raise Invalid(
                f"slurm.gres: {part!r} is not RESOURCE=NAME or RESOURCE=NAME:TYPE",
                hint="for instance nvidia.com/gpu=gpu",
                code="settings",
            )
        found[resource.strip()] = gres.strip()
    return found


def parse_choices(text: str) -> frozenset[str]:
    """Read `partition, constraint`.

    Raises:
        Invalid: something else than what a step may choose.
    """
    found = frozenset(filter(None, (one.strip() for one in text.split(","))))
    if unknown := found - CHOICES:
        raise Invalid(
            f"slurm.choices: {', '.join(sorted(unknown))} cannot be chosen",
            hint=f"one or more of {', '.join(sorted(CHOICES))}",
            code="settings",
        )
    return found
