"""A namespace for each project, made on demand: walls, limits, an account without rights."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from verderer.core.errors import Conflict, NotAllowed, NotFound
from verderer.drivers.kubernetes import naming
from verderer.drivers.kubernetes.calls.api import APPLY, Api
from verderer.drivers.kubernetes.calls.errors import EXISTS
from verderer.drivers.kubernetes.seen.sights import Named
from verderer.drivers.kubernetes.terms import Terms

_LABELS: Final = {naming.MANAGED_BY: naming.US}
_NAME: Final = "verderer"


class Namespaces:
    """Remembers what is in order, so that ten thousand steps look once."""

    def __init__(self, api: Api, terms: Terms) -> None:
        self._api = api
        self._terms = terms
        self._ready: set[str] = set()
        self._locks: dict[str, asyncio.Lock] = {}

    def name(self, project: str) -> str:
        """The namespace of a project."""
        return naming.namespace_of(project, prefix=self._terms.project_prefix)

    async def ensure(self, project: str) -> str:
        """The namespace of `project`, ready to take work.

        Raises:
            Conflict: one of that name belongs to somebody else, and is left alone.
            Refusal: the agent may not make it.
            Fault: no answer.
        """
        namespace = self.name(project)
        async with self._locks.setdefault(namespace, asyncio.Lock()):
            if namespace not in self._ready:
                if self._terms.create_namespaces:
                    await self._make(namespace, project)
                self._ready.add(namespace)
        return namespace

    def doubt(self, namespace: str) -> None:
        """Look again next time: something in it was not as expected."""
        self._ready.discard(namespace)

    async def _make(self, namespace: str, project: str) -> None:
        labels = {
            **_LABELS,
            naming.PROJECT: naming.label_value(project),
            "pod-security.kubernetes.io/enforce": self._terms.pod_security,
            "pod-security.kubernetes.io/warn": self._terms.pod_security,
        }
        document = {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": namespace, "labels": labels},
        }
        try:
            await self._api.create("/api/v1/namespaces", document, Named)
        except Conflict as error:
            if error.code != EXISTS:
                raise
            found = await self._api.get(f"/api/v1/namespaces/{namespace}", Named)
            if found.metadata.label(naming.MANAGED_BY) != naming.US:
                raise Conflict(
                    f"namespace {namespace} exists and is not ours",
                    hint=f"label it {naming.MANAGED_BY}={naming.US} if project {project} "
                    "may use it, or choose another kubernetes.project_prefix",
                    code="name_conflict",
                ) from error
        if self._terms.bind_project_role:
            await self._create(namespace, "rolebindings", self._binding())
        await self._apply(namespace, "serviceaccounts", naming.STEP_ACCOUNT, _account())
        await self._limit(namespace)

    async def _limit(self, namespace: str) -> None:
        if self._terms.quota:
            spec = {"spec": {"hard": dict(self._terms.quota)}}
            await self._apply(namespace, "resourcequotas", _NAME, spec, kind="ResourceQuota")
        limits, requests = self._terms.default_limits, self._terms.default_requests
        if limits or requests:
            item: dict[str, Any] = {"type": "Container"}
            if limits:
                item["default"] = dict(limits)
            if requests:
                item["defaultRequest"] = dict(requests)
            bounds = {"spec": {"limits": [item]}}
            await self._apply(namespace, "limitranges", _NAME, bounds, kind="LimitRange")

    def _binding(self) -> dict[str, Any]:
        return {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {"name": naming.AGENT, "labels": _LABELS},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": self._terms.bind_project_role,
            },
            "subjects": [
                {
                    "kind": "ServiceAccount",
                    "name": self._terms.agent_account,
                    "namespace": self._terms.namespace,
                }
            ],
        }

    async def _create(self, namespace: str, plural: str, document: Mapping[str, Any]) -> None:
        path = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/{plural}"
        try:
            await self._api.create(path, document, Named)
        except Conflict as error:
            if error.code != EXISTS:
                raise

    async def _apply(
        self,
        namespace: str,
        plural: str,
        name: str,
        body: Mapping[str, Any],
        *,
        kind: str = "ServiceAccount",
    ) -> None:
        document = {
            "apiVersion": "v1",
            "kind": kind,
            "metadata": {"name": name, "labels": _LABELS},
            **body,
        }
        path = f"{naming.core_path(namespace, plural)}/{name}"
        # A right that was bound a moment ago may not have reached every API server yet.
        for pause in (0.1, 0.3, 1.0):
            try:
                await self._api.patch(path, document, Named, content=APPLY)
            except (NotFound, NotAllowed):
                await asyncio.sleep(pause)
            else:
                return
        await self._api.patch(path, document, Named, content=APPLY)


def _account() -> dict[str, Any]:
    return {"automountServiceAccountToken": False}
