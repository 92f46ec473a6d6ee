"""The requests that carry a ticket: the agent asks for it, the carrier shows it."""

from __future__ import annotations

from typing import Self

import msgspec

from verderer.core.errors import Fault
from verderer.wire.agent import GrantRequest, GrantResponse
from verderer.wire.carry import CarryGrantRequest
from verderer.wire.transport import Ask, Transport

_JSON = "application/json"
_LIMIT = 64 * 1024 * 1024


class CarryClient:
    """Asks for addresses in the name of one step."""

    def __init__(self, server_url: str, ticket: str, *, ca_file: str | None = None) -> None:
        self._url = f"{server_url.rstrip('/')}/api/v1/carry/grants"
        self._ticket = ticket
        self._transport = Transport(server_url, ca_file=ca_file, connections=4)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._transport.aclose()

    async def grants(self, request: GrantRequest) -> GrantResponse:
        """Short-lived addresses of the step's own objects.

        Raises:
            NotAllowed: the step's run is over.
            Fault: the control plane does not answer.
        """
        asked = CarryGrantRequest(
            ticket=self._ticket,
            method=request.method,
            keys=tuple(request.keys),
            listing=request.listing,
        )
        answer = await self._transport.send(
            Ask(
                method="POST",
                url=self._url,
                headers={"accept": _JSON, "content-type": _JSON, "user-agent": "verderer-carry"},
                content=msgspec.json.encode(asked),
                timeout_s=30.0,
                max_bytes=_LIMIT,
            )
        )
        try:
            return msgspec.json.decode(answer.body, type=GrantResponse)
        except msgspec.DecodeError as error:
            raise Fault(f"the control plane's answer does not fit: {error}") from error
