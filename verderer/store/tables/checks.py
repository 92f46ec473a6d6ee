"""What agents found beside their clusters."""

from __future__ import annotations

from collections.abc import Sequence

from verderer.core.model.cluster import CheckReport
from verderer.store.database import Tx, columns

_PUT = """
    INSERT INTO cluster_checks AS k (cluster_id, name, place, level, required, message, remedy)
    SELECT $1, name, place, level, required, message, remedy
      FROM unnest($2::text[], $3::smallint[], $4::text[], $5::bool[], $6::text[], $7::text[])
        AS u (name, place, level, required, message, remedy)
     ORDER BY name
        ON CONFLICT (cluster_id, name) DO UPDATE
       SET place = excluded.place, level = excluded.level, required = excluded.required,
           message = excluded.message, remedy = excluded.remedy, checked_at = now()
"""
_GONE = "DELETE FROM cluster_checks WHERE cluster_id = $1 AND NOT name = ANY($2)"
_UNFIT = """
    UPDATE clusters SET unfit = $2 WHERE id = $1 AND unfit <> $2 RETURNING id
"""


async def put_checks(tx: Tx, cluster: int, checks: Sequence[CheckReport]) -> None:
    """Replace everything that is known of the cluster's checks; of one name the last counts."""
    named = {c.name: c for c in checks}
    rows = [
        (c.name, place, c.level.value, c.required, c.message, c.remedy)
        for place, c in enumerate(named.values())
    ]
    await tx.execute(_PUT, cluster, *columns(rows, 6))
    await tx.execute(_GONE, cluster, [c.name for c in checks])


async def set_unfit(tx: Tx, cluster: int, check: str) -> bool:
    """Name the required check that keeps work away, "" for none; whether that is news."""
    return await tx.fetchval(_UNFIT, cluster, check) is not None
