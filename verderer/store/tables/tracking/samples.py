"""Samples of metrics: the hottest write there is, one statement for each request."""

from __future__ import annotations

from verderer.core.tracking.samples import Packed
from verderer.store.database import Tx

# What makes a sample the latest; NaN counts as 0, as `core.tracking.samples.recency` says.
_NEWER = """
    (excluded.step, excluded.at_ms, coalesce(nullif(excluded.value, 'NaN'), 0))
    > (old.step, old.at_ms, coalesce(nullif(old.value, 'NaN'), 0))
"""
_ADD = f"""
    WITH series AS (
        INSERT INTO tracking_series AS old (tracked_id, key, step, at_ms, value)
        SELECT $1, key, step, at_ms, value
          FROM unnest($2::text[], $3::bigint[], $4::bigint[], $5::float8[])
            AS u (key, step, at_ms, value)
            ON CONFLICT (tracked_id, key) DO UPDATE
           SET step = CASE WHEN {_NEWER} THEN excluded.step ELSE old.step END,
               at_ms = CASE WHEN {_NEWER} THEN excluded.at_ms ELSE old.at_ms END,
               value = CASE WHEN {_NEWER} THEN excluded.value ELSE old.value END
     RETURNING id, key)
    INSERT INTO tracking_points (series_id, steps, times_ms, samples)
    SELECT series.id, ($9::bigint[])[low:high], ($10::bigint[])[low:high],
           ($11::float8[])[low:high]
      FROM unnest($6::text[], $7::int[], $8::int[]) AS c (key, low, high)
      JOIN series USING (key)
"""  # noqa: S608 - the pieces are our own


async def add(tx: Tx, tracked_id: int, packed: Packed) -> None:
    """Write a batch, and keep the latest sample of each of its metrics.

    Repeating it changes nothing that a reader sees.
    """
    if not packed.keys:
        return
    await tx.execute(
        _ADD,
        tracked_id,
        packed.keys,
        packed.last_steps,
        packed.last_times_ms,
        packed.last_values,
        packed.row_keys,
        packed.row_from,
        packed.row_to,
        packed.steps,
        packed.times_ms,
        packed.values,
    )
