"""Say whether a caller may read or change artifacts, and where they are kept.

The bytes themselves are the door's and the object store's business.
"""

from __future__ import annotations

from dataclasses import dataclass

from verderer.core.access import Action, require
from verderer.core.errors import Invalid
from verderer.core.tracking.artifact_path import Address
from verderer.core.tracking.names import no_model, no_run
from verderer.store.database import Tx
from verderer.store.tables import audit
from verderer.store.views.tracked import models, runs
from verderer.usecases.context import Context
from verderer.usecases.tracking.caller import Caller, scope_of


@dataclass(frozen=True, slots=True)
class Owned:
    """An artifact's address, with the project that it belongs to."""

    project: int
    address: Address


async def readable(ctx: Context, caller: Caller, address: Address) -> Owned:
    """The artifact when the caller may read it.

    Raises:
        NotFound: run or model are not there, or not the caller's to see.
    """
    async with ctx.db.reading() as tx:
        project, _ = await _owner(tx, caller, address)
    require(caller.actor, Action.TRACKING_READ, project=project)
    return Owned(project, address)


async def writable(ctx: Context, caller: Caller, address: Address) -> Owned:
    """The artifact when the caller may write it.

    Raises:
        NotFound: run or model are not there, or not the caller's to see.
        NotAllowed: the caller may only read.
        Invalid: the run or model is deleted.
    """
    async with ctx.db.reading() as tx:
        project, deleted = await _owner(tx, caller, address)
    require(caller.actor, Action.TRACKING_WRITE, project=project)
    if deleted:
        raise Invalid("what the artifact belongs to is deleted")
    return Owned(project, address)


async def note_deleted(ctx: Context, caller: Caller, owned: Owned, *, files: int) -> None:
    """Write into the audit that the caller removed an artifact, or a folder of them."""
    address = owned.address
    owner = (
        f"logged_model:m-{address.owner}" if address.of_model else f"tracked_run:{address.owner}"
    )
    entry = audit.Entry(
        action="tracked_artifacts.deleted",
        project=owned.project,
        object=owner,
        detail={"path": address.path, "files": files},
    )
    async with ctx.db.transaction() as tx:
        await audit.add(tx, caller.actor, [entry])


async def _owner(tx: Tx, caller: Caller, address: Address) -> tuple[int, bool]:
    """The project of the run or model, and whether it is deleted."""
    scope = await scope_of(tx, caller)
    if address.of_model:
        model = await models.get(tx, scope, address.owner)
        if model is None or model.experiment != address.experiment:
            raise no_model(f"m-{address.owner}")
        return model.project, model.deleted
    run = await runs.get(tx, scope, address.owner)
    if run is None or run.experiment != address.experiment:
        raise no_run(address.owner)
    return run.project, run.deleted
