"""What observations have shown, and for how long they have not shown what they should."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from verderer.agent.orders import Held, note_presence
from verderer.core.model.attempt import AttemptKey
from verderer.drivers.contract import Observed


class Sightings:
    """The latest observation, taken with those before it."""

    def __init__(self) -> None:
        self.seen: dict[AttemptKey, Observed] = {}
        self.absent: set[AttemptKey] = set()
        """Held by us, and not shown by the latest observations."""
        self._begun = 0
        self._forgotten: dict[AttemptKey, int] = {}

    def begin(self) -> int:
        """Number the observation that is about to begin; hand the number to `take`."""
        self._begun += 1
        return self._begun

    def next_number(self) -> int:
        """Of the next observation to begin: the first that can prove anything from now on."""
        return self._begun + 1

    def take(
        self,
        attempts: Sequence[Observed],
        *,
        number: int,
        held: Mapping[AttemptKey, Held],
        now: float,
    ) -> set[AttemptKey]:
        """Take in an observation; returns the attempts about which to decide again."""
        stale = self._forgotten
        seen = {one.key: one for one in attempts if stale.get(one.key, 0) < number}
        self._forgotten = {key: mark for key, mark in stale.items() if mark > number}
        before, self.seen = self.seen, seen
        changed = {key for key, one in seen.items() if before.get(key) != one}
        changed |= before.keys() - seen.keys()
        self.absent.clear()
        for key, mine in held.items():
            note_presence(mine, present=key in seen, number=number, now=now)
            if mine.absent_since is not None:
                self.absent.add(key)
        return changed | self.absent

    def forget(self, key: AttemptKey) -> None:
        """The driver has removed it; an observation under way may still show it, in vain."""
        self.seen.pop(key, None)
        self.absent.discard(key)
        self._forgotten[key] = self._begun
