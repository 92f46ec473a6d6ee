"""Logged models, their parameters, tags and metrics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from verderer.core.tracking.entities import ModelStatus, Pairs
from verderer.core.tracking.samples import Sample
from verderer.store.database import Tx, columns

_ADD = """
    INSERT INTO tracking_models
        (uid, experiment_id, project_id, tracked_id, name, model_type, created_ms, updated_ms)
    VALUES ($1::uuid, $2, $3, $4, $5, $6, $7, $7)
 RETURNING id
"""
_SET_STATUS = """
    UPDATE tracking_models SET status = $2::text::tracking_model_status, updated_ms = $3
     WHERE id = $1
"""
_DELETE = """
    UPDATE tracking_models SET deleted_at = now(), updated_ms = $2
     WHERE id = $1 AND deleted_at IS NULL
"""
_ADD_PARAMS = """
    INSERT INTO tracking_model_params (model_id, key, value)
    SELECT $1, key, value FROM unnest($2::text[], $3::text[]) AS u (key, value)
        ON CONFLICT (model_id, key) DO UPDATE SET value = excluded.value
"""
_SET_TAGS = """
    INSERT INTO tracking_model_tags (model_id, key, value)
    SELECT $1, key, value FROM unnest($2::text[], $3::text[]) AS u (key, value)
        ON CONFLICT (model_id, key) DO UPDATE SET value = excluded.value
"""
_REMOVE_TAG = "DELETE FROM tracking_model_tags WHERE model_id = $1 AND key = $2"
_ADD_METRICS = """
    INSERT INTO tracking_model_metrics
        (model_id, tracked_id, key, step, at_ms, value, dataset, digest)
    SELECT m.id, $1, u.key, u.step, u.at_ms, u.value, u.dataset, u.digest
      FROM unnest($3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::float8[], $8::text[],
                  $9::text[]) AS u (uid, key, step, at_ms, value, dataset, digest)
      JOIN tracking_models AS m ON m.uid = u.uid::uuid AND m.project_id = $2
        ON CONFLICT DO NOTHING
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewModel:
    """A logged model that is to be."""

    uid: str
    experiment: int
    project: int
    tracked_id: int | None
    name: str
    model_type: str
    now_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A sample that says which model it measured, and on what."""

    model: str
    """Hexadecimal digits."""
    sample: Sample
    dataset: str | None
    digest: str | None


async def add(tx: Tx, new: NewModel) -> int:
    """Insert a model whose files are still to come; return the store's id for it."""
    found: int = await tx.fetchval(
        _ADD,
        new.uid,
        new.experiment,
        new.project,
        new.tracked_id,
        new.name,
        new.model_type,
        new.now_ms,
    )
    return found


async def set_status(tx: Tx, model: int, status: ModelStatus, *, now_ms: int) -> None:
    """Say whether its files are there."""
    await tx.execute(_SET_STATUS, model, status, now_ms)


async def delete(tx: Tx, model: int, *, now_ms: int) -> bool:
    """Delete it; return whether it was there."""
    return await tx.execute(_DELETE, model, now_ms) != "UPDATE 0"


async def set_params(tx: Tx, model: int, params: Pairs) -> None:
    """Write parameters over what was there; each key at most once."""
    if params:
        await tx.execute(_ADD_PARAMS, model, *columns(params, 2))


async def set_tags(tx: Tx, model: int, tags: Pairs) -> None:
    """Write tags over what was there; each key at most once."""
    if tags:
        await tx.execute(_SET_TAGS, model, *columns(tags, 2))


async def remove_tag(tx: Tx, model: int, key: str) -> bool:
    """Remove a tag; return whether it was there."""
    return await tx.execute(_REMOVE_TAG, model, key) != "DELETE 0"


async def add_metrics(tx: Tx, tracked_id: int, project: int, measured: Sequence[Measured]) -> None:
    """Write what a run measured of models of its project; repeating it changes nothing."""
    if not measured:
        return
    rows = [
        (m.model, m.sample.key, m.sample.step, m.sample.at_ms, m.sample.value, m.dataset, m.digest)
        for m in measured
    ]
    await tx.execute(_ADD_METRICS, tracked_id, project, *columns(rows, 7))
