"""What the carrier of a step is told, where files do not go through the agent."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec

from verderer.agent.session import Session
from verderer.core.errors import Fault, Invalid
from verderer.wire.agent import Launch
from verderer.wire.carry import CarryPlan, CarryRequest

MAX_AUTHORITY = 32 * 1024
"""The plan is one variable of a container; Linux bounds each at 128 KiB."""


class Tickets:
    """Asks the control plane for one ticket for each start of a step with files."""

    def __init__(self, session: Session, *, server_url: str, ca_file: Path | None = None) -> None:
        """`server_url` is where carriers reach the control plane."""
        self._session = session
        self._server_url = server_url
        self._ca_file = ca_file

    async def plan(self, key: str, launch: Launch) -> str:
        """The plan for the carrier of attempt `key`, as JSON: a secret.

        Raises:
            Superseded: another agent has taken over.
            Refusal: a file is not this step's.
            Fault: the control plane does not answer, or the authority's file cannot be read.
        """
        request = CarryRequest(
            epoch=self._session.epoch,
            attempt=key,
            reads=tuple(one.key for one in launch.inputs),
            writes=tuple(one.key for one in launch.outputs),
        )
        answer = await self._session.call(self._session.client.carry(request))
        plan = CarryPlan(
            server_url=self._server_url,
            ticket=answer.ticket,
            ca=await asyncio.to_thread(self._authority),
            inputs=tuple(launch.inputs),
            outputs=tuple(launch.outputs),
        )
        return msgspec.json.encode(plan).decode()

    def _authority(self) -> str:
        if self._ca_file is None:
            return ""
        try:
            text = self._ca_file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise Fault(f"{self._ca_file} cannot be read: {error}") from error
        if len(text) > MAX_AUTHORITY:
            raise Invalid(
                f"{self._ca_file} is too large for the carriers of steps: {len(text):,} bytes",
                hint=f"name a file of at most {MAX_AUTHORITY:,} bytes in agent.ca_file: the "
                "authority of the control plane alone",
            )
        return text
