"""`verderer carry`: the carriers of a step's files, run in containers beside its program."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from verderer.cli.lean_start import import_structlog

PLAN_VARIABLE = "VERDERER_CARRY_PLAN"
RANK_VARIABLE = "VERDERER_NODE_RANK"
_FAILED = 1


class Way(StrEnum):
    """Which way files go."""

    FETCH = "fetch"
    STORE = "store"


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    app.command(hidden=True)(carry)


def carry(
    way: Annotated[Way, typer.Argument(help="Before the program, or after it.")],
    workspace: Annotated[Path, typer.Option(help="Folder that the program works in.")],
    report: Annotated[Path, typer.Option(help="File for the last words.")],
) -> None:
    """Fetch the inputs of one step, or store its outputs; started by the agent's pods alone.

    What to carry stands in VERDERER_CARRY_PLAN. Of a step on several nodes each fetches, and the
    first alone stores.
    """
    import_structlog()
    import asyncio

    import msgspec

    from verderer.agent.files import carrier
    from verderer.core.errors import Invalid
    from verderer.wire.carry import Carried, CarryPlan

    try:
        plan = msgspec.json.decode(os.environ.get(PLAN_VARIABLE, ""), type=CarryPlan)
    except msgspec.DecodeError as error:
        raise Invalid(
            f"{PLAN_VARIABLE} holds no plan: {error}",
            hint="this command is for the containers that the agent makes",
        ) from error
    work = carrier.fetch if way is Way.FETCH else carrier.store
    if way is Way.STORE and os.environ.get(RANK_VARIABLE, "0") != "0":
        done = Carried()
    else:
        done = asyncio.run(work(plan, str(workspace)))
    report.write_bytes(msgspec.json.encode(done))
    if done.error:
        print(done.error)
        raise typer.Exit(_FAILED)
