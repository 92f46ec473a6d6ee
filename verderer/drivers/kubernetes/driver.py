"""The `kubernetes` driver: fulfils the contract over one cluster's API server."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from verderer.core.errors import Conflict, NotFound
from verderer.core.model.attempt import AttemptKey, EndCause
from verderer.core.model.cluster import CheckReport
from verderer.drivers.contract import LogPiece, NodeFacts, Observed, Order
from verderer.drivers.kubernetes import intention as intentions
from verderer.drivers.kubernetes import naming
from verderer.drivers.kubernetes.calls.api import Api
from verderer.drivers.kubernetes.calls.connection import Connection
from verderer.drivers.kubernetes.intention import Intention
from verderer.drivers.kubernetes.inventory import Inventory
from verderer.drivers.kubernetes.keeper import Keeper
from verderer.drivers.kubernetes.launching import Launching
from verderer.drivers.kubernetes.logs.following import Logs
from verderer.drivers.kubernetes.namespaces import Namespaces
from verderer.drivers.kubernetes.preflight.running import preflight
from verderer.drivers.kubernetes.roster import Tracked
from verderer.drivers.kubernetes.seen.sights import Named
from verderer.drivers.kubernetes.terms import Terms
from verderer.drivers.kubernetes.views import Views
from verderer.drivers.kubernetes.watching import SILENCE_S


class KubernetesDriver:
    """Keeps all that it must remember in the cluster; see `docs/kubernetes.md`.

    A new driver over the same cluster and namespace takes over what an earlier one left.
    """

    kind = "kubernetes"
    carries_apart = True

    def __init__(
        self,
        connection: Connection,
        terms: Terms | None = None,
        *,
        state_dir: Path | None = None,
        silence_s: float = SILENCE_S,
    ) -> None:
        """Talks to nobody yet. `state_dir` keeps places in logs over restarts.

        A watch that says nothing for `silence_s` seconds, not even a bookmark, is opened again.

        Raises:
            Invalid: the connection's certificates cannot be used.
        """
        self._connection = connection
        self._terms = terms or Terms()
        self._api = Api(connection, writes_per_s=self._terms.writes_per_s)
        self._keeper = Keeper(self._api, self._terms)
        self._views = Views(self._api, self._terms.namespace, self._touched, silence_s=silence_s)
        namespaces = Namespaces(self._api, self._terms)
        self._launching = Launching(self._api, self._terms, self._views, namespaces)
        self._logs = Logs(self._api, state_dir / "log-marks" if state_dir is not None else None)
        self._inventory = Inventory(self._api, self._views)
        self._news = asyncio.Event()
        self._opened = False

    async def observe(self) -> Sequence[Observed]:
        """Every attempt with an object of ours.

        Raises:
            Fault: the watches are broken for longer than is good.
        """
        self._open()
        await self._views.of_work()
        self._news.clear()
        found = (tracked.observed() for tracked in self._views.roster.all())
        return [one for one in found if one is not None]

    async def examine(self) -> Sequence[CheckReport]:
        """Look at what any step here needs; see the contract."""
        findings = await preflight(self._connection, self._terms)
        return [one.report() for one in findings]

    async def changed(self, *, timeout_s: float) -> None:
        """Return when something of ours changed since the last `observe`, or on time-out."""
        self._open()
        try:
            async with asyncio.timeout(timeout_s):
                await self._news.wait()
        except TimeoutError:
            return

    async def start(self, order: Order, *, workspace: str) -> None:
        """Make our object and the Job of `order`; see the contract.

        Raises:
            Refusal: it can never run here, or something foreign stands in its place.
            Fault: the cluster does not answer, or has no room in a quota.
        """
        del workspace  # files go straight between the pod and the object store
        self._open()
        await self._views.of_work()
        tracked = self._views.roster.entry(order.key)
        async with tracked.lock:
            if tracked.intention is None:
                await self._views.of_nodes()
                await self._launching.begin(order)
            elif _has_no_job(tracked, tracked.intention):
                await self._launching.recover(tracked)

    async def stop(self, key: AttemptKey, *, grace_s: float) -> None:
        """Write down that it must end, or never begin; its end is observed as cancelled.

        Raises:
            Refusal: an object of that name is not ours.
            Fault: the cluster does not answer.
        """
        self._open()
        await self._views.of_work()
        now = time.time_ns() // 1_000_000
        wish = intentions.stop(EndCause.CANCELLED, grace_s=grace_s, at_ms=now)
        tracked = self._views.roster.entry(key)
        async with tracked.lock:
            ours = tracked.intention
            if ours is None:
                ours = await self._launching.write_down(key, intentions.barred(key, wish))
            if ours.end is not None:
                return
            told = ours.spec.stop
            if told is not None and told.grace_seconds <= grace_s:
                return
            path = f"{naming.intentions_path(self._terms.namespace)}/{key}"
            tracked.hurried.clear()
            body = {"spec": {"stop": wish}}
            self._views.intentions.put(await self._api.patch(path, body, Intention))

    async def forget(self, key: AttemptKey) -> None:
        """Remove the Job, what stands beside it, and last our own object.

        Raises:
            Conflict: it has not ended.
            Fault: the cluster does not answer.
        """
        self._open()
        await self._views.of_work()
        tracked = self._views.roster.get(key)
        if tracked is None:
            return
        async with tracked.lock:
            ours = tracked.intention
            if ours is not None:
                if ours.end is None:
                    raise Conflict(f"{key} has not ended", hint="stop it first")
                await self._remove(tracked, ours)
                self._logs.drop(key, ours.spec.nodes)
        self._views.roster.tidy(tracked)

    async def nodes(self) -> Sequence[NodeFacts]:
        """Every node, with what pods of others leave of it.

        Raises:
            Fault: the watches are broken for longer than is good.
        """
        self._open()
        await self._views.of_nodes()
        return self._views.occupancy.all()

    async def logs(self, key: AttemptKey, *, replica: int, after: int) -> AsyncIterator[LogPiece]:
        """Output from byte `after` on; stdout and stderr are one stream.

        Raises:
            NotFound: there is no such attempt.
            Fault: the cluster does not give it now.
        """
        self._open()
        await self._views.of_work()
        tracked = self._views.roster.get(key)
        if tracked is None:
            raise NotFound(f"there is no attempt {key} here")
        async for piece in self._logs.follow(tracked, replica, after):
            yield piece

    async def release_logs(self, key: AttemptKey, *, replica: int, upto: int) -> None:
        """Remember where to go on when all before `upto` is safe elsewhere."""
        self._logs.release(key, replica, upto)

    async def close(self) -> None:
        """Stop watching; what runs goes on, and the next driver finds it."""
        self._keeper.end()
        await self._views.end()
        await self._api.close()

    def _open(self) -> None:
        if not self._opened:
            self._opened = True
            self._views.begin()
            self._keeper.begin(self._views, self._launching)
            if self._terms.publish_inventory:
                self._views.spawn(self._inventory.run)

    def _touched(self, tracked: Tracked) -> None:
        self._news.set()
        self._keeper.touched(tracked)

    async def _remove(self, tracked: Tracked, ours: Intention) -> None:
        namespace, name = ours.spec.namespace, ours.metadata.name
        if tracked.job_uid:
            path = f"{naming.jobs_path(namespace)}/{name}"
            await self._api.delete(path, uid=tracked.job_uid, propagation="Background")
        for plural, exists in (("services", ours.spec.nodes > 1), ("secrets", ours.spec.secret)):
            if exists:
                await self._remove_ours(f"{naming.core_path(namespace, plural)}/{name}", name)
        path = f"{naming.intentions_path(self._terms.namespace)}/{name}"
        await self._api.delete(path, uid=ours.metadata.uid)
        # The watch says so too, a moment later; nobody may see it until then.
        self._views.intentions.gone(ours)

    async def _remove_ours(self, path: str, name: str) -> None:
        try:
            found = await self._api.get(path, Named)
        except NotFound:
            return
        if found.metadata.label(naming.ATTEMPT) == name:
            await self._api.delete(path, uid=found.metadata.uid)


def _has_no_job(tracked: Tracked, ours: Intention) -> bool:
    return not tracked.job_uid and ours.spec.stop is None and ours.end is None
