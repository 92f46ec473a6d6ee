"""What attempts leave behind: artifacts and log chunks."""

from __future__ import annotations

from collections.abc import Sequence

from verderer.store.database import Row, Tx, columns

_ADD_ARTIFACTS = """
    INSERT INTO artifacts (step_id, number, name, key, size, files, sha256)
    SELECT * FROM unnest($1::bigint[], $2::smallint[], $3::text[], $4::text[], $5::bigint[],
                         $6::int[], $7::text[])
        ON CONFLICT DO NOTHING
"""
# Steps before attempts, as in `attempts.py`.
_PUT_CHUNKS = """
    WITH named AS MATERIALIZED (
        SELECT s.id, u.number, u.replica, u.sequence, u.first_byte, u.size, u.lines, u.lost,
               u.first_at, u.last_at, u.sealed, u.complete
          FROM unnest($2::bigint[], $3::int[], $4::smallint[], $5::smallint[], $6::int[],
                      $7::bigint[], $8::bigint[], $9::int[], $10::bigint[], $11::timestamptz[],
                      $12::timestamptz[], $13::bool[], $14::bool[])
            AS u (run_id, idx, number, replica, sequence, first_byte, size, lines, lost, first_at,
                  last_at, sealed, complete)
          JOIN steps AS s ON s.run_id = u.run_id AND s.idx = u.idx)
    INSERT INTO log_chunks AS c
        (step_id, number, replica, sequence, first_byte, size, lines, lost, first_at, last_at,
         sealed, complete)
    SELECT n.*
      FROM named AS n JOIN attempts AS a ON a.step_id = n.id AND a.number = n.number
     WHERE a.cluster_id = $1
     ORDER BY 1, 2, 3, 4
        ON CONFLICT (step_id, number, replica, sequence) DO UPDATE
       SET size = excluded.size, lines = excluded.lines, lost = excluded.lost,
           last_at = excluded.last_at, sealed = excluded.sealed, complete = excluded.complete
     WHERE NOT c.sealed AND c.size <= excluded.size
"""
_NEWEST = """
    SELECT DISTINCT ON (s.run_id, s.idx, f.name)
           s.run_id, s.idx, s.name AS step, s.template, f.name, f.key, f.files
      FROM steps AS s JOIN artifacts AS f ON f.step_id = s.id
     WHERE s.run_id = ANY($1) AND s.state = 'succeeded'
     ORDER BY s.run_id, s.idx, f.name, f.number DESC
"""


async def add_artifacts(tx: Tx, rows: Sequence[tuple[object, ...]]) -> None:
    """Insert: step, attempt, name, key, bytes, files, SHA-256 (empty for a directory)."""
    if rows:
        await tx.execute(_ADD_ARTIFACTS, *columns(rows, 7))


async def put_chunks(tx: Tx, cluster: int, rows: Sequence[tuple[object, ...]]) -> None:
    """Insert or grow chunks of attempts that were given to `cluster`; a sealed one stays."""
    if rows:
        await tx.execute(_PUT_CHUNKS, cluster, *columns(rows, 13))


async def newest_artifacts(tx: Tx, runs: Sequence[int]) -> list[Row]:
    """The artifacts of every succeeded step of `runs`, of its last attempt."""
    return list(await tx.fetch(_NEWEST, runs))
