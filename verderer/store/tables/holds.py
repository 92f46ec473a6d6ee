"""Holds: why the steps of one shape, project and resource group wait."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from verderer.core.placement import HoldKey
from verderer.store.database import Tx, columns

_PUT = """
    INSERT INTO lane_holds AS h (project_id, shape_id, resource_group_id, reasons)
    SELECT project_id, shape_id, resource_group_id, reasons::jsonb
      FROM unnest($1::int[], $2::int[], $3::int[], $4::text[])
        AS u (project_id, shape_id, resource_group_id, reasons)
     ORDER BY project_id, shape_id, resource_group_id
        ON CONFLICT (project_id, shape_id, resource_group_id)
        DO UPDATE SET reasons = excluded.reasons
"""
_DROP = """
    DELETE FROM lane_holds AS h
     USING unnest($1::int[], $2::int[], $3::int[]) AS u (project_id, shape_id, resource_group_id)
     WHERE h.project_id = u.project_id AND h.shape_id = u.shape_id
       AND h.resource_group_id = u.resource_group_id
"""


async def put(tx: Tx, reasons: Mapping[HoldKey, Sequence[Mapping[str, object]]]) -> None:
    """Write the reasons by what lanes have in common."""
    # As text: a list inside an array would be taken for one more dimension.
    rows = [(*lane, msgspec.json.encode(why).decode()) for lane, why in reasons.items()]
    if rows:
        await tx.execute(_PUT, *columns(rows, 4))


async def drop(tx: Tx, lanes: Sequence[HoldKey]) -> None:
    """Nothing of these lanes waits any more."""
    if lanes:
        await tx.execute(_DROP, *columns(lanes, 3))


_DROP_ALL = "DELETE FROM lane_holds"


async def drop_all(tx: Tx) -> None:
    """A new leader starts from nothing."""
    await tx.execute(_DROP_ALL)
