"""Puts into facts what has become of attempts."""

from __future__ import annotations

import time
from collections.abc import Callable

from verderer.agent.journal import Decided
from verderer.agent.reporter import Reporter
from verderer.agent.translate import wait_fact
from verderer.core.model.attempt import AttemptKey, AttemptState
from verderer.core.model.waiting import Waiting
from verderer.drivers.contract import Observed
from verderer.wire.agent import AttemptFact


def unix_ms() -> int:
    """Now, by this machine's wall clock: for people, never for decisions."""
    return time.time_ns() // 1_000_000


class Teller:
    """Hands facts to the reporter."""

    def __init__(self, reporter: Reporter) -> None:
        self._reporter = reporter

    def starting(self, key: AttemptKey) -> None:
        """The order is in our hands."""
        state = AttemptState.STARTING.value
        self._reporter.attempt(AttemptFact(key=str(key), state=state, at_unix_ms=unix_ms()))

    def running(self, key: AttemptKey, one: Observed) -> None:
        """The program has begun, when the cluster says, or now."""
        at = one.started_ms if one.started_ms is not None else unix_ms()
        state = AttemptState.RUNNING.value
        fact = AttemptFact(key=str(key), state=state, node=one.node, at_unix_ms=at)
        self._reporter.attempt(fact)

    def waits(self, key: AttemptKey, waits: Waiting | None) -> None:
        """Why it has not begun; None: nothing keeps it any more."""
        self._reporter.wait(wait_fact(key, waits))

    def ended(
        self, key: AttemptKey, decided: Decided, node: str, known: Callable[[], None]
    ) -> None:
        """It is over; `known` is called once the control plane has it."""
        fact = AttemptFact(
            key=str(key),
            state=decided.state,
            node=node,
            at_unix_ms=decided.at_unix_ms,
            end=decided.end,
            outputs=decided.outputs,
        )
        self._reporter.attempt(fact, known)
