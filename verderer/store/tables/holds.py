"""Holds: why the steps of one shape in one project wait."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from verderer.store.database import Tx, columns

_PUT = """
    INSERT INTO holds AS h (project_id, shape_id, reasons)
    SELECT project_id, shape_id, reasons::jsonb
      FROM unnest($1::int[], $2::int[], $3::text[]) AS u (project_id, shape_id, reasons)
     ORDER BY project_id, shape_id
        ON CONFLICT (project_id, shape_id) DO UPDATE SET reasons = excluded.reasons
"""
_DROP = """
    DELETE FROM holds AS h USING unnest($1::int[], $2::int[]) AS u (project_id, shape_id)
     WHERE h.project_id = u.project_id AND h.shape_id = u.shape_id
"""


async def put(tx: Tx, reasons: Mapping[tuple[int, int], Sequence[Mapping[str, object]]]) -> None:
    """Write the reasons by (project id, shape id)."""
    # As text: a list inside an array would be taken for one more dimension.
    rows = [
        (project, shape, msgspec.json.encode(why).decode())
        for (project, shape), why in reasons.items()
    ]
    if rows:
        await tx.execute(_PUT, *columns(rows, 3))


async def drop(tx: Tx, lanes: Sequence[tuple[int, int]]) -> None:
    """Nothing of these lanes waits any more."""
    if lanes:
        await tx.execute(_DROP, *columns(lanes, 2))


_DROP_ALL = "DELETE FROM holds"


async def drop_all(tx: Tx) -> None:
    """A new leader starts from nothing."""
    await tx.execute(_DROP_ALL)
