"""Pipelines by the hash of their text, parsed once a process."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import replace

from verderer.core.model.resources import Resources
from verderer.core.pipeline.expand import Expansion, expand
from verderer.core.pipeline.parameters import merge_parameters
from verderer.core.pipeline.parse import parse
from verderer.core.pipeline.spec import Pipeline
from verderer.store.database import Tx
from verderer.store.tables import documents

_KEPT = 512
_KEPT_EXPANDED = 64
"""Fewer, since one may have 10,000 instances."""
_KEPT_SHAPES = 10_000


class Pipelines:
    """Remembers the pipelines used last; a fleet submits the same few again and again."""

    def __init__(self) -> None:
        self._parsed: OrderedDict[bytes, Pipeline] = OrderedDict()
        self._expanded: dict[bytes, Expansion] = {}
        self._stored: set[bytes] = set()
        self._totals: dict[int, Resources] = {}

    def parse(self, body: bytes) -> tuple[bytes, Pipeline]:
        """Return the SHA-256 and meaning of a document.

        Raises:
            Invalid: with everything that is wrong with it.
        """
        sha256 = hashlib.sha256(body).digest()
        return sha256, self._get(sha256) or self._put(sha256, parse(body))

    async def load(self, tx: Tx, sha256: bytes) -> Pipeline:
        """The meaning of a document that was stored with a run."""
        if found := self._get(sha256):
            return found
        body = await documents.read_document(tx, sha256)
        return self._put(sha256, parse(body.encode()))

    def expand(self, sha256: bytes, pipeline: Pipeline, parameters: Mapping[str, str]) -> Expansion:
        """The instances and edges of a run; the same for every run of a document.

        Raises:
            Invalid: a parameter is missing, unknown or not allowed.
        """
        known = self._expanded.get(sha256)
        if known is None:
            known = expand(pipeline, parameters)
            if len(self._expanded) >= _KEPT_EXPANDED:
                self._expanded.clear()
            self._expanded[sha256] = known
            return known
        return replace(known, parameters=merge_parameters(pipeline.parameters, parameters))

    async def totals(self, tx: Tx, shapes: Iterable[int]) -> Mapping[int, Resources]:
        """What a step of each shape asks for on all its nodes together; shapes never change."""
        if missing := [shape for shape in shapes if shape not in self._totals]:
            found = await documents.read_shapes(tx, sorted(missing))
            if len(self._totals) + len(found) > _KEPT_SHAPES:
                self._totals = {s: self._totals[s] for s in shapes if s in self._totals}
            self._totals |= {s: requests.scaled(nodes) for s, (requests, nodes) in found.items()}
        return self._totals

    def is_stored(self, sha256: bytes) -> bool:
        """Whether this process has seen the document committed."""
        return sha256 in self._stored

    def was_stored(self, sha256: bytes) -> None:
        """Remember that the document is committed; documents are never deleted while used."""
        if len(self._stored) >= _KEPT:
            self._stored.clear()
        self._stored.add(sha256)

    def _get(self, sha256: bytes) -> Pipeline | None:
        found = self._parsed.get(sha256)
        if found is not None:
            self._parsed.move_to_end(sha256)
        return found

    def _put(self, sha256: bytes, pipeline: Pipeline) -> Pipeline:
        self._parsed[sha256] = pipeline
        if len(self._parsed) > _KEPT:
            self._parsed.popitem(last=False)
        return pipeline
