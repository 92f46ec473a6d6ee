"""Dominant shares: how much of a resource group a project has, as one number to compare.

After "Dominant Resource Fairness" (Ghodsi et al., NSDI 2011): of all resources, the one of which a
project has the largest part counts. What it held lately counts as much as what it holds now, so
that whoever filled the group all day does not start level with whoever waited.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from verderer.core.governance.model import Holding

HALF_LIFE_S: Final = 4 * 3600.0
"""What was used this long ago counts half."""


def dominant(amounts: Mapping[str, float], totals: Mapping[str, int]) -> float:
    """The largest part of any total, 0 and up; what has no total does not count."""
    parts = (amount / totals[name] for name, amount in amounts.items() if totals.get(name))
    return max(parts, default=0.0)


def standing(holdings: Mapping[str, Holding]) -> dict[str, float]:
    """What counts for a project, by resource: the mean of what it holds and what it held."""
    return {name: (h.reserved + h.recent) / 2 for name, h in holdings.items()}


def decayed_mean(mean: float, reserved: int, seconds: float) -> float:
    """The mean of what is held, after `seconds` more in which it was `reserved` throughout."""
    kept = math.exp2(-max(0.0, seconds) / HALF_LIFE_S)
    return mean * kept + reserved * (1.0 - kept)
