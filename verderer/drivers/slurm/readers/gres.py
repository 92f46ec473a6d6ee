"""Generic resources, as nodes have them: `gpu:h100:8(S:0-1),shard:16`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from verderer.drivers.slurm.readers.values import text_of

_ONE: Final = re.compile(r"([\w.-]+)(?::([^:()]*))??(?::([0-9]{1,15})([kKmMgG]?))?(?:\(.*\))?")
_TIMES: Final = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


@dataclass(frozen=True, slots=True)
class Gres:
    """So many of one kind."""

    name: str
    """`gpu`."""
    type: str
    """`h100`, or empty."""
    count: int


def read_gres(text: object) -> tuple[Gres, ...]:
    """What a node has or uses; parts that are not understood are left out."""
    found = []
    for part in re.split(r",(?![^(]*\))", text_of(text)):
        match = _ONE.fullmatch(part.strip().removeprefix("gres/").removeprefix("gres:"))
        if match is None:
            continue
        name, kind, count, unit = match[1], match[2] or "", match[3], match[4] or ""
        found.append(Gres(name, kind, int(count) * _TIMES[unit.upper()] if count else 1))
    return tuple(found)
