"""Documents and shapes: what many runs share is stored once, found by its hash."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence

from verderer.core.model.resources import Resources
from verderer.store.database import Tx

_KEEP_DOCUMENTS = """
    INSERT INTO documents (sha256, body)
    SELECT * FROM unnest($1::bytea[], $2::text[])
        ON CONFLICT DO NOTHING
"""
_READ_DOCUMENT = "SELECT body FROM documents WHERE sha256 = $1"
_KEEP_SHAPES = """
    INSERT INTO shapes (digest, requests, nodes)
    SELECT * FROM unnest($1::bytea[], $2::jsonb[], $3::int[])
        ON CONFLICT DO NOTHING
"""
_FIND_SHAPES = "SELECT digest, id FROM shapes WHERE digest = ANY($1)"
_READ_SHAPES = "SELECT id, requests, nodes FROM shapes WHERE id = ANY($1)"


async def keep_documents(tx: Tx, bodies: Mapping[bytes, str]) -> None:
    """Store texts by their SHA-256; those already there stay as they are."""
    keys = sorted(bodies)
    await tx.execute(_KEEP_DOCUMENTS, keys, [bodies[key] for key in keys])


async def read_document(tx: Tx, sha256: bytes) -> str:
    """The text of a document that a run refers to."""
    body: str = await tx.fetchval(_READ_DOCUMENT, sha256)
    return body


def shape_digest(requests: Resources, nodes: int) -> bytes:
    """What makes two shapes the same."""
    text = json.dumps([requests.as_dict(), nodes], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).digest()


async def shape_ids(tx: Tx, shapes: Mapping[bytes, tuple[Resources, int]]) -> dict[bytes, int]:
    """Ids of shapes by digest; the missing ones are stored first."""
    wanted = sorted(shapes)
    found = {row["digest"]: row["id"] for row in await tx.fetch(_FIND_SHAPES, wanted)}
    missing = [digest for digest in wanted if digest not in found]
    if missing:
        requests = [shapes[digest][0].as_dict() for digest in missing]
        nodes = [shapes[digest][1] for digest in missing]
        await tx.execute(_KEEP_SHAPES, missing, requests, nodes)
        found |= {row["digest"]: row["id"] for row in await tx.fetch(_FIND_SHAPES, missing)}
    return found


async def read_shapes(tx: Tx, ids: Sequence[int]) -> dict[int, tuple[Resources, int]]:
    """Requests of one node, and the number of nodes, by shape id."""
    rows = await tx.fetch(_READ_SHAPES, ids)
    return {row["id"]: (Resources.of(row["requests"]), row["nodes"]) for row in rows}
