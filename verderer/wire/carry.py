"""Between a step's carrier, its agent and the control plane.

`POST /api/v1/agent/carry` gives the agent a ticket for one attempt: the carrier beside the step's
program shows it at `POST /api/v1/carry/grants` and gets addresses of that attempt's inputs and
outputs and of nothing else, for as long as the attempt's run is alive.
"""

from __future__ import annotations

from verderer.wire.agent import Document, InputFile, OutputFile


class CarryRequest(Document):
    epoch: int
    attempt: str
    reads: tuple[str, ...] = ()
    """Object keys; one that ends in `/` stands for everything below it."""
    writes: tuple[str, ...] = ()
    """Object keys, each with everything below it."""


class CarryTicket(Document):
    ticket: str


class CarryGrantRequest(Document):
    ticket: str
    method: str
    keys: tuple[str, ...] = ()
    listing: str = ""


class CarryPlan(Document):
    """All that a carrier is told; a secret."""

    server_url: str
    ticket: str
    ca: str = ""
    """PEM of the authority that signed the control plane's certificate; empty: the system's."""
    inputs: tuple[InputFile, ...] = ()
    outputs: tuple[OutputFile, ...] = ()


class Carried(Document):
    """What a carrier leaves behind: in the order of the plan, or why it failed."""

    outputs: tuple[tuple[int, int, str, bool], ...] = ()
    """Bytes, files, SHA-256, and whether it is a folder."""
    error: str = ""
