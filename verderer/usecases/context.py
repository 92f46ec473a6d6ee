"""What every use case is given: the outside world, as arguments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from verderer.store.database import Database
from verderer.store.wakeups import Wakeups


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """Made once by whoever starts the process."""

    db: Database
    wakeups: Wakeups
    clock: Callable[[], datetime]
    """Now, UTC; for what people read. Leases and expiry use the database's clock."""
    chance: Callable[[], int]
    """64 random bits from the operating system."""
    key: bytes
    """The instance's secret, at least 32 bytes: signs step tokens and object addresses."""
    public_url: str
    """Where browsers and steps reach the control plane, without a slash at the end."""
