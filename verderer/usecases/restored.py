"""A database that was restored is made fit for work, and says what became of it."""

from __future__ import annotations

from collections.abc import Mapping

from verderer.core.model.actor import Actor, ActorKind
from verderer.store.tables import audit, rewound
from verderer.usecases.context import Context

_OPERATOR = Actor(kind=ActorKind.SYSTEM, name="operator")


async def note_restored(ctx: Context, detail: Mapping[str, object]) -> None:
    """To be called once, before any server, scheduler or agent meets the database."""
    async with ctx.db.transaction() as tx:
        await rewound.move_ahead(tx)
        entry = audit.Entry(action="installation.restored", detail=dict(detail))
        await audit.add(tx, _OPERATOR, [entry])
