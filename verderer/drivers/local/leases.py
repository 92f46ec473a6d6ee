"""The agent's side of leases: one small document in the root, renewed every few seconds."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from verderer.drivers.local.monitor import lease, records

_RENEW_S: Final = 1.0
"""A lease that would last so little longer is not written anew."""


class Leases:
    """Goes on where an earlier life of the agent stopped."""

    def __init__(self, root: Path) -> None:
        self._root = str(root)
        self._boot = ""
        self._until = float("-inf")
        self.term = 0
        """Counts the breaks: leases that follow each other without one are of one term."""

    def open(self, boot: str) -> None:
        """Read what there is."""
        self._boot = boot
        found = records.read(self._root, records.LEASE) or {}
        until, term = found.get("until"), found.get("term")
        if isinstance(term, int):
            self.term = term
        if found.get("boot") == boot and isinstance(until, int | float):
            self._until = float(until)

    def renew(self, until: float) -> None:
        """Let leased work go on until then, if that is later than what was said before.

        Raises:
            OSError: it cannot be written.
        """
        if until - self._until < _RENEW_S:
            return
        term = self.term + 1 if lease.now() >= self._until else self.term
        records.write(self._root, records.LEASE, {"boot": self._boot, "until": until, "term": term})
        self._until, self.term = until, term
