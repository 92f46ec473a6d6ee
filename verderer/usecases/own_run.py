"""Hold a run that its caller may act on; a stranger is not told that it exists."""

from __future__ import annotations

from verderer.core.access import Action, require
from verderer.core.errors import NotFound
from verderer.core.model.actor import Actor
from verderer.store.database import Tx
from verderer.store.tables import runs


async def lock_own(tx: Tx, actor: Actor, action: Action, run_id: int) -> runs.LockedRun:
    """Hold one run until the transaction ends.

    Raises:
        NotFound: there is none, or it is in a project that is not the actor's to know about:
            the two read alike.
        NotAllowed: the actor may see it and may not do this.
    """
    run = await runs.lock_one(tx, run_id)
    try:
        require(actor, action, project=run.project)
    except NotFound:
        raise NotFound("no such run") from None
    return run
