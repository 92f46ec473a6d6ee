"""Which Slurm this is: `sbatch --version` and `scontrol show config`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from verderer.drivers.slurm.readers.values import Unreadable, text_of


def read_version(text: str) -> tuple[int, int]:
    """`(22, 5)` of `slurm 22.05.8` or `slurm-wlm 22.05.8`.

    Raises:
        Unreadable: no version stands there.
    """
    found = re.search(r"\b([0-9]{2})\.([0-9]{2})(?:\.[0-9]+)?", text)
    if found is None:
        raise Unreadable(f"this is no version of Slurm: {text[:80]!r}")
    return int(found[1]), int(found[2])


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """What a driver wants to know of slurm.conf."""

    cluster: str
    accounting: bool
    """Whether `sacct` has anything to say."""


def read_configuration(text: str) -> Configuration:
    """From `scontrol show config`.

    Raises:
        Unreadable: it is something else.
    """
    found = dict(re.findall(r"^(\w+)\s*= (.*?)\s*$", text, re.MULTILINE))
    if "ClusterName" not in found:
        raise Unreadable(f"scontrol does not show the configuration: {text[:200]!r}")
    storage = text_of(found.get("AccountingStorageType"))
    return Configuration(
        cluster=found["ClusterName"],
        accounting=storage not in ("", "accounting_storage/none"),
    )
