"""Why clusters let attempts wait: one row an attempt, written when the reason changes."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from verderer.core.model.attempt import AttemptKey
from verderer.core.model.waiting import Waiting
from verderer.store.database import Tx, columns

# Steps are found before attempts, as in `attempts.py`.
_NAMED = """
    WITH named AS MATERIALIZED (
        SELECT s.id, s.run_id, u.*
          FROM unnest($2::bigint[], $3::int[], $4::int[]) WITH ORDINALITY
            AS u (run, idx, number, place)
          JOIN steps AS s ON s.run_id = u.run AND s.idx = u.idx),
    waiting AS (
        SELECT n.id, n.run_id, n.number::smallint AS number, n.place
          FROM named AS n JOIN attempts AS a ON a.step_id = n.id AND a.number = n.number
         WHERE a.cluster_id = $1 AND a.state IN ('assigned', 'starting'))
"""
_PUT = f"""
    {_NAMED},
    put AS (
        INSERT INTO attempt_waits AS t (step_id, number, code, message, numbers, hopeless)
        SELECT w.id, w.number, v.code, v.message, v.numbers::jsonb, v.hopeless
          FROM waiting AS w
          JOIN unnest($5::text[], $6::text[], $7::text[], $8::bool[]) WITH ORDINALITY
            AS v (code, message, numbers, hopeless, place) USING (place)
         ORDER BY w.id
            ON CONFLICT (step_id, number) DO UPDATE
           SET code = excluded.code, message = excluded.message, numbers = excluded.numbers,
               hopeless = excluded.hopeless,
               since = CASE WHEN t.code = excluded.code THEN t.since ELSE now() END
         WHERE (t.code, t.message, t.numbers, t.hopeless) IS DISTINCT FROM
               (excluded.code, excluded.message, excluded.numbers, excluded.hopeless)
     RETURNING step_id)
    SELECT DISTINCT w.run_id FROM put AS p JOIN waiting AS w ON w.id = p.step_id
"""  # noqa: S608 - nothing but our own words
_DROP = f"""
    {_NAMED},
    gone AS (
        DELETE FROM attempt_waits AS t USING waiting AS w
         WHERE t.step_id = w.id AND t.number = w.number
     RETURNING t.step_id)
    SELECT DISTINCT w.run_id FROM gone AS g JOIN waiting AS w ON w.id = g.step_id
"""  # noqa: S608


async def put(tx: Tx, cluster: int, told: Mapping[AttemptKey, Waiting | None]) -> set[int]:
    """Keep the newest reasons of attempts of this cluster that have not begun; runs concerned.

    None: the attempt does not wait any more.
    """
    rows = [(*_named(key), *_words(waits)) for key, waits in told.items() if waits is not None]
    gone = [_named(key) for key, waits in told.items() if waits is None]
    changed = await tx.fetch(_PUT, cluster, *columns(rows, 7)) if rows else []
    changed += await tx.fetch(_DROP, cluster, *columns(gone, 3)) if gone else []
    return {row["run_id"] for row in changed}


def _named(key: AttemptKey) -> tuple[int, int, int]:
    return key.run, key.step, key.number


def _words(waits: Waiting) -> tuple[str, str, str, bool]:
    numbers = msgspec.json.encode(dict(waits.numbers)).decode()
    return waits.code.value, waits.message, numbers, waits.hopeless
