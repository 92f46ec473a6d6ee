"""Finds the run or step that an address names; what is not the caller's does not exist."""

from __future__ import annotations

from typing import Annotated, Final

from litestar.params import PathParameter

from verderer.core import access
from verderer.core.access import Action
from verderer.core.errors import NotFound
from verderer.core.model.actor import Actor
from verderer.core.model.ids import parse_run_id
from verderer.store.database import Tx
from verderer.store.views.run_parts import RunHead, find_step, run_head
from verderer.store.views.steps import StepRow, get_step

RunArg = Annotated[str, PathParameter(description="The run's id: 13 characters.")]
StepArg = Annotated[str, PathParameter(description="The step's name, or its index from 0.")]
READ: Final = {"action": Action.RUN_READ}
_MOST_DIGITS = 6


def run_number(text: str) -> int:
    """The number behind a run's id.

    Raises:
        NotFound: it is not an id, so there is no such run.
    """
    try:
        return parse_run_id(text)
    except ValueError:
        raise no_such_run() from None


async def the_run(tx: Tx, actor: Actor, text: str) -> RunHead:
    """The run of this id.

    Raises:
        NotFound: there is none, or it is not the actor's to know about.
    """
    found = await run_head(tx, actor.scope, run_number(text))
    if found is None:
        raise no_such_run()
    access.require(actor, Action.RUN_READ, project=found.project)
    return found


async def the_step(tx: Tx, actor: Actor, run: RunHead, name: str) -> StepRow:
    """The step of `run` that is called `name` or has this index.

    Raises:
        NotFound: there is none.
    """
    idx = await find_step(tx, actor.scope, run.id, name[:100])
    if idx is None and name.isascii() and name.isdigit() and len(name) <= _MOST_DIGITS:
        idx = int(name)
    found = await get_step(tx, actor.scope, run.id, idx) if idx is not None else None
    if found is None:
        raise NotFound("this run has no such step", hint="`verderer runs show RUN` lists them.")
    return found


def no_such_run() -> NotFound:
    """The same words whether there is none or it is somebody else's."""
    return NotFound("no such run, or it is in a project that you are not a member of")
