"""What every use case is given: the outside world, as arguments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from verderer.store.database import Database
from verderer.store.wakeups import Wakeups
from verderer.usecases.known_actors import KnownActors
from verderer.usecases.known_rules import KnownRules
from verderer.usecases.pipelines import Pipelines


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
    session_life: timedelta = timedelta(days=14)
    """A browser's login ends after this long without use."""
    pipelines: Pipelines = field(default_factory=Pipelines)
    """Documents parsed by this process."""
    known: KnownActors = field(default_factory=KnownActors)
    """Who was authenticated a moment ago."""
    rules: KnownRules = field(default_factory=KnownRules)
    """What projects may use."""

    def __post_init__(self) -> None:
        if len(self.key) < 32:
            raise ValueError("the instance's key needs at least 32 bytes")
        self.wakeups.hook(self.known.heard)
        self.wakeups.hook(self.rules.heard)

    def secret(self) -> bytes:
        """256 random bits."""
        return b"".join(self.chance().to_bytes(8, "big") for _ in range(4))
