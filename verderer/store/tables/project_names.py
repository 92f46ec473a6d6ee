"""Projects by name and number: what submissions need of them."""

from __future__ import annotations

from collections.abc import Sequence

from verderer.store.database import Tx

_ID_OF = "SELECT id FROM projects WHERE name = $1"
_NAMES = "SELECT id, name FROM projects WHERE id = ANY($1)"


async def id_of(tx: Tx, name: str) -> int | None:
    """The number of a project, or None."""
    found: int | None = await tx.fetchval(_ID_OF, name)
    return found


async def names(tx: Tx, ids: Sequence[int]) -> dict[int, str]:
    """Names by number."""
    return {row["id"]: row["name"] for row in await tx.fetch(_NAMES, ids)}
