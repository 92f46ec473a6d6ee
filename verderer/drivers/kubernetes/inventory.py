"""Keeps the ConfigMap `cluster-info` in `cube-system` true: what hardware this cluster has."""

from __future__ import annotations

import asyncio
from typing import Final

import structlog

from verderer.core.errors import Conflict, Fault, NotFound, Refusal
from verderer.drivers.kubernetes import naming
from verderer.drivers.kubernetes.calls.api import APPLY, Api
from verderer.drivers.kubernetes.calls.errors import EXISTS
from verderer.drivers.kubernetes.seen.nodes import inventory
from verderer.drivers.kubernetes.seen.sights import Named
from verderer.drivers.kubernetes.views import Views

log = structlog.get_logger("verderer.kubernetes")

EVERY_S: Final = 5.0
_AGAIN_S: Final = 60.0


class Inventory:
    """Writes when something has changed, at most every `EVERY_S` seconds."""

    def __init__(self, api: Api, views: Views) -> None:
        self._api = api
        self._views = views
        self._written: dict[str, str] | None = None

    async def run(self) -> None:
        """Until cancelled."""
        complained = False
        while True:
            await self._views.nodes.synced.wait()
            self._views.changed.clear()
            try:
                await self.write()
                complained = False
            except (Fault, Refusal) as error:
                if not complained:
                    log.warning("cluster-info is not written", reason=error.message)
                complained, self._written = True, None
                await asyncio.sleep(_AGAIN_S)
                continue
            await self._views.changed.wait()
            await asyncio.sleep(EVERY_S)

    async def write(self) -> None:
        """Bring the ConfigMap up to date. Raises as the API does."""
        data = inventory(self._views.occupancy.nodes.values())
        if data == self._written:
            return
        document = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": naming.CLUSTER_INFO,
                "labels": {naming.MANAGED_BY: naming.US},
            },
            "data": data,
        }
        path = f"{naming.core_path(naming.SYSTEM_NAMESPACE, 'configmaps')}/{naming.CLUSTER_INFO}"
        try:
            await self._api.patch(path, document, Named, content=APPLY)
        except NotFound:
            await self._make_namespace()
            await self._api.patch(path, document, Named, content=APPLY)
        self._written = data

    async def _make_namespace(self) -> None:
        document = {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": naming.SYSTEM_NAMESPACE},
        }
        try:
            await self._api.create("/api/v1/namespaces", document, Named)
        except Conflict as error:
            if error.code != EXISTS:
                raise
