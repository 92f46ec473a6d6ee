"""The agent's lease: for how long work that may be rerun elsewhere goes on here without a word.

It is measured from the moment at which the request was sent whose answer grants it, so that the
control plane never believes it to be over before it is. The driver stops the work at its end.
"""

from __future__ import annotations

import structlog

from verderer.agent.session import Complaints
from verderer.core.errors import VerdererError
from verderer.drivers.contract import Driver, StopsUnheard

log = structlog.get_logger("verderer.agent")


def promise_of(driver: Driver) -> float | None:
    """What to tell the control plane: seconds from a lease's end until leased work has stopped."""
    return driver.stops_within_s if isinstance(driver, StopsUnheard) else None


class Lease:
    """Renewed by what the control plane answers; does nothing where the driver stops no work."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver if isinstance(driver, StopsUnheard) else None
        self._complaints = Complaints("renewing the lease of work that may be rerun")

    def now(self) -> float:
        """To be asked before a request is sent, and handed to `granted` with its answer."""
        return self._driver.now() if self._driver is not None else 0.0

    async def granted(self, lease_s: float, *, sent: float) -> None:
        """The answer to the request that was sent at `sent` lets leased work go on so long."""
        if self._driver is None or lease_s <= 0:
            return
        try:
            await self._driver.renew(sent + lease_s)
        except VerdererError as error:
            self._complaints.trouble(error, retry_s=0.0)
        else:
            self._complaints.over()
