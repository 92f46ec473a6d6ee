"""What tracked runs read and made: data sets and logged models."""

from __future__ import annotations

import json
from collections.abc import Sequence

from verderer.core.tracking.entities import Dataset
from verderer.store.database import Tx, columns

_ADD_DATASETS = """
    WITH given AS (
        SELECT DISTINCT ON (name, digest) *
          FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[])
            AS u (name, digest, source_type, source, schema, profile)
         ORDER BY name, digest)
    INSERT INTO tracking_datasets
        (experiment_id, name, digest, source_type, source, schema, profile)
    SELECT $1, given.* FROM given
        ON CONFLICT (experiment_id, name, digest) DO NOTHING
"""
_ADD_INPUTS = """
    INSERT INTO tracking_inputs (tracked_id, dataset_id, context, tags)
    SELECT DISTINCT ON (d.id) $1::bigint, d.id, u.context, u.tags::jsonb
      FROM unnest($3::text[], $4::text[], $5::text[], $6::text[])
        AS u (name, digest, context, tags)
      JOIN tracking_datasets AS d
        ON d.experiment_id = $2 AND d.name = u.name AND d.digest = u.digest
        ON CONFLICT (tracked_id, dataset_id) DO NOTHING
"""
_ADD_MODELS = """
    INSERT INTO tracking_run_models (tracked_id, model_id, made, step)
    SELECT DISTINCT $1::bigint, m.id, $3::boolean, u.step
      FROM unnest($4::text[], $5::bigint[]) AS u (uid, step)
      JOIN tracking_models AS m ON m.uid = u.uid::uuid AND m.project_id = $2
        ON CONFLICT DO NOTHING
"""
_KNOWN_MODELS = """
    SELECT replace(uid::text, '-', '') AS uid FROM tracking_models
     WHERE project_id = $1 AND uid = ANY($2::text[]::uuid[])
"""


async def add_datasets(
    tx: Tx, tracked_id: int, experiment: int, datasets: Sequence[Dataset]
) -> None:
    """Note that the run read them; what it is said to have read already stays as it was."""
    if not datasets:
        return
    rows = [(d.name, d.digest, d.source_type, d.source, d.schema, d.profile) for d in datasets]
    await tx.execute(_ADD_DATASETS, experiment, *columns(rows, 6))
    # As text: the client library would take lists for dimensions of the array.
    links = [(d.name, d.digest, d.context, json.dumps(d.tags)) for d in datasets]
    await tx.execute(_ADD_INPUTS, tracked_id, experiment, *columns(links, 4))


async def unknown_models(tx: Tx, project: int, uids: Sequence[str]) -> list[str]:
    """Those of `uids` that are no logged models of the project."""
    known = {row["uid"] for row in await tx.fetch(_KNOWN_MODELS, project, list(uids))}
    return [uid for uid in uids if uid not in known]


async def add_models(
    tx: Tx, tracked_id: int, project: int, models: Sequence[tuple[str, int]], *, made: bool
) -> None:
    """Note that the run read (or made) models of its own project; each with a step."""
    if models:
        await tx.execute(_ADD_MODELS, tracked_id, project, made, *columns(models, 2))
