"""Tells why attempts wait on their cluster: not what passes in a moment, and each thing once.

Most attempts are being made for a second and then run; nobody needs to be told. What lasts is told
once, again when it becomes something else, and a change of words alone only now and then: a
scheduler's sentence changes with every node that comes and goes.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from verderer.core.model.attempt import AttemptKey, AttemptState
from verderer.core.model.waiting import Waiting
from verderer.drivers.contract import Observed

LASTS_S: Final = 2.0
"""What has waited for less is not worth telling."""
WORDS_EVERY_S: Final = 30.0
_LOOK_S: Final = 0.5

Tell = Callable[[AttemptKey, Waiting | None], None]


@dataclass(slots=True)
class _Wait:
    now: Waiting | None
    told: Waiting | None = None
    told_at: float = 0.0


class Waits:
    """Fed by observations; tells by itself when something is due."""

    def __init__(self, tell: Tell, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._tell = tell
        self._clock = clock
        self._known: dict[AttemptKey, _Wait] = {}
        self._due: dict[AttemptKey, float] = {}
        self._timer: asyncio.TimerHandle | None = None

    def take(self, changed: Iterable[AttemptKey], seen: Mapping[AttemptKey, Observed]) -> None:
        """Take in what an observation has shown of those attempts that it shows otherwise."""
        for key in changed:
            one = seen.get(key)
            if one is not None and one.state is AttemptState.STARTING:
                self.see(key, one.pending)
            else:
                self.over(key)

    def see(self, key: AttemptKey, waits: Waiting | None) -> None:
        """The latest observation of an attempt that has not begun."""
        known = self._known.get(key)
        if known is None:
            if waits is None:
                return
            known = self._known[key] = _Wait(None)
        if known.now == waits and key not in self._due:
            return
        known.now = waits
        if waits == known.told:
            self._due.pop(key, None)
            return
        again = _code(waits) == _code(known.told) and known.told is not None
        at = known.told_at + WORDS_EVERY_S if again else self._clock() + LASTS_S
        self._due[key] = min(at, self._due.get(key, at))
        self._arm()

    def over(self, key: AttemptKey) -> None:
        """It has begun, or it is over: it does not wait."""
        self._known.pop(key, None)
        self._due.pop(key, None)

    def tell_due(self) -> None:
        """Tell what has lasted long enough by now."""
        now = self._clock()
        for key in [key for key, at in self._due.items() if at <= now]:
            del self._due[key]
            known = self._known[key]
            if known.now is None:
                del self._known[key]
            known.told, known.told_at = known.now, now
            self._tell(key, known.now)

    def _arm(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_LOOK_S, self._look)

    def _look(self) -> None:
        self._timer = None
        self.tell_due()
        if self._due:
            self._arm()


def _code(waits: Waiting | None) -> object:
    return None if waits is None else (waits.code, waits.hopeless)
