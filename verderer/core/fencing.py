"""When the work of a cluster that cannot be reached may start elsewhere: only behind a fence.

The fence is time. An agent's lease is measured from the moment at which it sent the last request
that the control plane took note of; where the agent promises it, work that may be rerun ends within
so many seconds of the lease's end, whether the agent lives or not. Once the control plane has heard
nothing for the lease, that time and a margin together, nothing of such work can still be running.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from verderer.core.pipeline.spec import OnClusterLost

LEASE_S: Final = 60.0
"""How long work that may be rerun goes on without a word from the control plane."""
MARGIN_S: Final = 15.0
"""For clocks: by so much an agent's may run late and the database's jump ahead, both together."""
MAX_STOPS_WITHIN_S: Final = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Silence:
    """What is known of an attempt's cluster since it was last heard."""

    silent_s: float
    """By the database's clock."""
    stops_within_s: float | None
    """After the end of its lease, as its agent promises; None: it promises nothing."""
    under_promise: bool
    """The attempt was given to the cluster while the promise held, and it has held ever since."""


@dataclass(frozen=True, slots=True)
class Fenced:
    """It is sure to have stopped: another attempt may start."""


@dataclass(frozen=True, slots=True)
class Waits:
    """Another attempt may start in `left_s` seconds if the silence lasts; None: never by itself."""

    left_s: float | None


def lease_left(silent_s: float) -> float:
    """For how long a lease lasts, counted from when the request that asks for it was sent.

    It began when the cluster was last heard by the database's word: what a server has noted and
    not written yet counts for nothing, since it may be lost. Negative when it is over.
    """
    return LEASE_S - silent_s


def fence_s(stops_within_s: float) -> float:
    """Seconds of silence after which nothing under a lease can be running."""
    return LEASE_S + stops_within_s + MARGIN_S


def behind_fence(policy: OnClusterLost, silence: Silence) -> Fenced | Waits:
    """Decide whether an attempt of a step with `policy` is sure to have stopped."""
    if policy is OnClusterLost.WAIT:
        return Waits(None)
    if silence.stops_within_s is None or not silence.under_promise:
        return Waits(None)
    left_s = fence_s(silence.stops_within_s) - silence.silent_s
    return Waits(left_s) if left_s >= 0 else Fenced()
