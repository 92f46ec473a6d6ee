"""Which objects an agent may read or write now."""

from __future__ import annotations

from collections.abc import Sequence

from verderer.core.errors import Conflict
from verderer.core.model.actor import Actor
from verderer.core.model.places import Owner, owner_of, probe_prefix
from verderer.store.tables import attempts, clusters
from verderer.usecases.context import Context


async def grantable(
    ctx: Context, actor: Actor, *, epoch: int, writing: bool, keys: Sequence[str]
) -> list[str]:
    """Those of `keys` that the actor's cluster may have.

    It may write what belongs to attempts that were given to it, and read the artifacts of runs of
    which something is alive on it. Objects to try the store out with are its own.

    Raises:
        Conflict: `stale_epoch`.
    """
    own = [key for key in keys if _is_probe(key, actor.id)]
    owners = {key: owner for key in keys if (owner := owner_of(key))}
    async with ctx.db.reading() as tx:
        if not await clusters.holds_epoch(tx, actor.id, epoch):
            raise Conflict("another agent speaks for this cluster now", code="stale_epoch")
        if writing:
            given = await attempts.given_to(
                tx, actor.id, list({(o.project, o.attempt) for o in owners.values()})
            )
            return own + [key for key, o in owners.items() if (o.project, o.attempt) in given]
        runs = {o.attempt.run for o in owners.values()}
        alive = await attempts.runs_live_on(tx, actor.id, sorted(runs))
    return own + [key for key, o in owners.items() if _readable(o, alive)]


def _is_probe(key: str, cluster: int) -> bool:
    """Whether the key is one by which the agent tries the store out: a short plain name."""
    name = key.removeprefix(probe_prefix(cluster))
    return name != key and len(name) <= 40 and name.isascii() and name.isalnum()


def _readable(owner: Owner, alive: set[tuple[int, int]]) -> bool:
    return owner.kind == "artifacts" and (owner.project, owner.attempt.run) in alive
