"""Makes what an attempt consists of, in an order in which no crash can start it twice.

First the Secret, which harms nobody alone; then our own object, which says that the attempt is
owed; then the Service and the Job. Names are fixed, so that making anything again finds it there.
Whatever stands under one of these names and is not ours is left alone and reported.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final

from verderer.core.errors import Conflict, Fault, NotFound, Refusal
from verderer.core.model.attempt import AttemptKey, End, EndCause
from verderer.drivers.contract import Order
from verderer.drivers.kubernetes import intention, manifests, naming
from verderer.drivers.kubernetes.calls.api import Api
from verderer.drivers.kubernetes.calls.errors import EXISTS
from verderer.drivers.kubernetes.intention import Blueprinted, Intention
from verderer.drivers.kubernetes.namespaces import Namespaces
from verderer.drivers.kubernetes.roster import Tracked
from verderer.drivers.kubernetes.seen import devices
from verderer.drivers.kubernetes.seen.clocks import unix_ms
from verderer.drivers.kubernetes.seen.sights import Event, Job, Named, Page
from verderer.drivers.kubernetes.terms import Terms
from verderer.drivers.kubernetes.views import Views

_EVENTS_KEPT_MS: Final = 50 * 60 * 1000
"""Clusters keep events for an hour, most of them."""
_KUEUE: Final = "/apis/kueue.x-k8s.io"


class Launching:
    """Called with the attempt's lock held."""

    def __init__(self, api: Api, terms: Terms, views: Views, namespaces: Namespaces) -> None:
        self._api = api
        self._terms = terms
        self._views = views
        self._namespaces = namespaces
        self._queue: str | None = None

    async def begin(self, order: Order) -> None:
        """Make the attempt of `order` exist.

        Raises:
            Refusal: it never will; when our object stands already, that is on record in it.
            Fault: it may or may not exist; call again.
        """
        manifests.check(order, self._terms)
        nodes = self._views.occupancy.nodes.values()
        placement = devices.place(order.requests, order.limits, nodes)
        queue = await self._kueue()
        made = manifests.compose(order, self._terms, placement, queue=queue)
        namespace = await self._namespaces.ensure(order.project)
        if made.secret is not None:
            await self._in_namespace(namespace, self._secret(namespace, made.secret))
        document = intention.document(
            order,
            namespace,
            made.job,
            service=made.service,
            secret=made.secret is not None,
        )
        ours = await self.write_down(order.key, document)
        if ours.spec.stop is None:
            await self._make(ours, made.job, made.service)

    async def write_down(self, key: AttemptKey, document: Mapping[str, Any]) -> Intention:
        """Create our object, or find the one that an earlier try made.

        Raises:
            Conflict: an object of that name is not ours.
        """
        path = naming.intentions_path(self._terms.namespace)
        try:
            ours = await self._api.create(path, document, Intention)
        except Conflict as error:
            if error.code != EXISTS:
                raise
            ours = await self._api.get(f"{path}/{key}", Intention)
            if ours.key != key:
                raise _foreign(naming.KIND, str(key), self._terms.namespace) from error
        self._views.intentions.put(ours)
        return ours

    async def recover(self, tracked: Tracked) -> None:
        """Make the Job of an attempt whose maker went away in between.

        When a Job of it may have existed and be gone again, it is recorded as lost instead: it
        must not run a second time.
        """
        ours = tracked.intention
        if ours is None:
            return
        if await self._may_have_run(ours):
            message = "its Job is gone, and it may have run: the agent was away meanwhile"
            await self.record_end(ours, End(cause=EndCause.LOST, message=message))
            return
        path = f"{naming.intentions_path(self._terms.namespace)}/{tracked.key}"
        plan = (await self._api.get(path, Blueprinted)).spec
        if plan.job is None:
            message = "the object of this attempt holds no Job"
            await self.record_end(ours, End(cause=EndCause.START, message=message))
            return
        try:
            await self._make(ours, plan.job, plan.service)
        except Refusal:
            return  # on record now

    async def record_end(self, ours: Intention, end: End) -> None:
        """Write down an end that was decided here."""
        now = time.time_ns() // 1_000_000
        status = {"status": intention.ended_status(end, ended_ms=now)}
        path = f"{naming.intentions_path(self._terms.namespace)}/{ours.metadata.name}/status"
        self._views.intentions.put(await self._api.patch(path, status, Intention))

    async def _make(
        self,
        ours: Intention,
        job: Mapping[str, Any],
        service: Mapping[str, Any] | None,
    ) -> None:
        namespace, uid = ours.spec.namespace, ours.metadata.uid
        try:
            if service is not None:
                path = naming.core_path(namespace, "services")
                await self._in_namespace(
                    namespace, self._create(path, manifests.stamped(service, uid), Named, uid)
                )
            path = naming.jobs_path(namespace)
            made = await self._in_namespace(
                namespace, self._create(path, manifests.stamped(job, uid), Job, uid)
            )
        except Refusal as refusal:
            words = f"{refusal.message}{f' ({refusal.hint})' if refusal.hint else ''}"
            await self.record_end(ours, End(cause=EndCause.START, message=words[:2_000]))
            raise
        self._views.jobs.put(made)

    async def _create(
        self, path: str, document: Mapping[str, Any], kind: type[Any], uid: str
    ) -> Any:
        """Create, or find what an earlier try for the same intention created."""
        try:
            return await self._api.create(path, document, kind)
        except Conflict as error:
            if error.code != EXISTS:
                raise
            name, what = document["metadata"]["name"], document["kind"]
            found = await self._api.get(f"{path}/{name}", kind)
            if found.metadata.annotation(naming.INTENTION) != uid:
                raise _foreign(what, name, found.metadata.namespace) from error
            return found

    async def _secret(self, namespace: str, document: Mapping[str, Any]) -> None:
        path, name = naming.core_path(namespace, "secrets"), document["metadata"]["name"]
        try:
            await self._api.create(path, document, Named)
        except Conflict as error:
            if error.code != EXISTS:
                raise
            found = await self._api.get(f"{path}/{name}", Named)
            if found.metadata.label(naming.ATTEMPT) != name:
                raise _foreign("Secret", name, namespace) from error

    async def _in_namespace(self, namespace: str, making: Any) -> Any:
        try:
            return await making
        except NotFound as error:
            self._namespaces.doubt(namespace)
            raise Fault(
                f"namespace {namespace} is gone: {error.message}",
                hint="it is made again where kubernetes.create_namespaces says so",
            ) from error

    async def _may_have_run(self, ours: Intention) -> bool:
        born = unix_ms(ours.metadata.creation_timestamp)
        if born is None or time.time_ns() // 1_000_000 - born > _EVENTS_KEPT_MS:
            return True
        fields = (
            f"involvedObject.kind=Job,involvedObject.name={ours.metadata.name},"
            "reason=SuccessfulCreate"
        )
        path = naming.core_path(ours.spec.namespace, "events")
        page = await self._api.get(path, Page[Event], {"fieldSelector": fields, "limit": "1"})
        return bool(page.items)

    async def _kueue(self) -> str:
        """The queue to stand in: only where the cluster serves Kueue's API. Asked once."""
        if self._queue is None:
            self._queue = self._terms.queue if await self._has_kueue() else ""
        return self._queue

    async def _has_kueue(self) -> bool:
        if not self._terms.queue:
            return False
        try:
            await self._api.get(_KUEUE, Named)
        except NotFound:
            return False
        return True


def _foreign(what: str, name: str, namespace: str) -> Conflict:
    return Conflict(
        f"a {what} named {name} exists in namespace {namespace} and is not ours: left alone",
        hint="remove or rename it, and run the step again",
        code="name_conflict",
    )
