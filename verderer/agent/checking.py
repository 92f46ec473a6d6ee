"""Looks at what the cluster needs for work: the control plane, the object store, the cluster.

The object store is tried from where the agent stands, by writing an object and reading it back:
that a server reaches it says nothing about the cluster's network.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Final

import structlog

from verderer.agent.files.transfers import Transfers
from verderer.agent.session import Complaints, Session
from verderer.core.errors import Fault, VerdererError
from verderer.core.model.cluster import CheckLevel, CheckReport, unfit_by
from verderer.core.model.places import probe_prefix
from verderer.drivers.contract import Driver, Examines
from verderer.wire.agent import CheckFact, Report

log = structlog.get_logger("verderer.agent")

EVERY_S: Final = 600.0
WHILE_UNFIT_S: Final = 15.0
APART_S: Final = 10.0
_WITHIN_S: Final = 60.0
_STORE: Final = "object store"
_PROBE_BYTES: Final = 1024


async def tell_checks(driver: Driver, session: Session, transfers: Transfers) -> None:
    """Look, tell the control plane, and look again; more often while something is amiss."""
    complaints = Complaints("telling what was checked")
    said: set[tuple[str, str]] = set()
    while True:
        found = await look(driver, session, transfers)
        said = _say(found, said)
        facts = [
            CheckFact(
                name=one.name,
                level=one.level.value,
                required=one.required,
                message=one.message,
                remedy=one.remedy,
            )
            for one in found
        ]
        try:
            await session.call(session.client.report(Report(epoch=session.epoch, checks=facts)))
        except VerdererError as error:
            complaints.trouble(error, retry_s=WHILE_UNFIT_S)
            await asyncio.sleep(WHILE_UNFIT_S)
            continue
        complaints.over()
        await asyncio.sleep(WHILE_UNFIT_S if unfit_by(found) else EVERY_S)


async def look(driver: Driver, session: Session, transfers: Transfers) -> list[CheckReport]:
    """Everything, in the order in which a person should read it."""
    found = [_clock(session)]
    found += [await _guarded(_STORE, lambda: _store(session, transfers))]
    if isinstance(driver, Examines):
        found += await _cluster(driver)
    return _apart(found)


def _apart(found: Sequence[CheckReport]) -> list[CheckReport]:
    """Findings of one name get numbers: a name is what one is known by."""
    seen: dict[str, int] = {}
    named = []
    for one in found:
        seen[one.name] = seen.get(one.name, 0) + 1
        number = f" {seen[one.name]}" if seen[one.name] > 1 else ""
        named.append(replace(one, name=f"{one.name}{number}"))
    return named


def _clock(session: Session) -> CheckReport:
    """Compared at the hello, give or take half of its round trip."""
    apart = session.clock_ahead_s
    if abs(apart) <= APART_S:
        return CheckReport(
            name="clock",
            level=CheckLevel.PASS,
            required=False,
            message=f"within {max(1.0, abs(apart)):.0f} s of the control plane's",
        )
    where = "ahead of" if apart > 0 else "behind"
    return CheckReport(
        name="clock",
        level=CheckLevel.WARN,
        required=False,
        message=f"{abs(apart):,.0f} s {where} the control plane's",
        remedy="Run NTP on both machines: addresses of objects expire by the clock.",
    )


async def _store(session: Session, transfers: Transfers) -> CheckReport:
    """Write an object and read it back, by the addresses that steps' files use."""
    # One name a session: what is left behind is one small object, not one every ten minutes.
    key = f"{probe_prefix(session.cluster_number)}probe{session.epoch}"
    sent = secrets.token_bytes(_PROBE_BYTES)
    began = time.monotonic()
    granted = await transfers.granter.grant("PUT", key)
    await transfers.put_once(granted, sent)
    back = await transfers.granter.grant("GET", key)
    async with transfers.reading(back.grant) as content:
        came = b"".join([part async for part in content])
    if came != sent:
        raise Fault("what was read back is not what was written")
    took_ms = (time.monotonic() - began) * 1000
    return CheckReport(
        name=_STORE,
        level=CheckLevel.PASS,
        required=True,
        message=f"written and read back in {took_ms:.0f} ms",
    )


async def _guarded(name: str, check: Callable[[], Awaitable[CheckReport]]) -> CheckReport:
    try:
        async with asyncio.timeout(_WITHIN_S):
            return await check()
    except (VerdererError, TimeoutError) as error:
        hint = error.hint if isinstance(error, VerdererError) else ""
        return CheckReport(
            name=name,
            level=CheckLevel.FAIL,
            required=True,
            message=str(error) or f"no answer within {_WITHIN_S:.0f} s",
            remedy=hint or "Open the way from the cluster to the object store's address.",
        )


async def _cluster(driver: Examines) -> Sequence[CheckReport]:
    try:
        async with asyncio.timeout(_WITHIN_S):
            return await driver.examine()
    except (VerdererError, TimeoutError) as error:
        return [
            CheckReport(
                name="cluster",
                level=CheckLevel.UNKNOWN,
                required=True,
                message=str(error) or f"no answer within {_WITHIN_S:.0f} s",
            )
        ]


def _say(found: Sequence[CheckReport], said: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """Write what is amiss into the log, once for as long as it stays the same."""
    amiss = {(one.name, one.message): one for one in found if one.level is not CheckLevel.PASS}
    for known, one in amiss.items():
        if known not in said:
            say = log.error if one.required else log.warning
            say(f"check: {one.name}", level=one.level.value, reason=one.message, hint=one.remedy)
    return set(amiss)
