"""The contract's rig over a real API server and KWOK's make-believe kubelets."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime
from typing import Any

from testbeds.kubernetes.cluster import Cluster
from tests.drivers.contract import TALK_OUTPUT, Work
from tests.drivers.kubernetes.bed import agent_config
from tests.drivers.rigs import plain_order
from verderer.core.model.attempt import AttemptKey
from verderer.drivers.contract import Order
from verderer.drivers.kubernetes.calls.connection import connect
from verderer.drivers.kubernetes.driver import KubernetesDriver
from verderer.drivers.kubernetes.terms import Terms

# The first word tells KWOK what is to become of the pod; see testbeds/kubernetes/stages.yaml.
COMMANDS: dict[Work, tuple[str, ...]] = {
    Work.SUCCEED: ("succeed",),
    Work.EXIT_3: ("exit", "3"),
    Work.KILLED: ("exit", "137"),
    Work.HANG: ("hang",),
    Work.STUBBORN: ("stubborn",),
    Work.NO_SUCH_PROGRAM: ("cannot start",),
    Work.OOM: ("oom",),
    Work.TALK: ("say",),
}
OURS = "/apis/execution.cube.studio/v1/namespaces/cube-execution/cubepipelines"
_steps = itertools.count()


def jobs(project: str = "vision") -> str:
    return f"/apis/batch/v1/namespaces/verderer-{project}/jobs"


class KubernetesRig:
    """Restarting closes the driver and opens another over the same cluster."""

    def __init__(
        self, cluster: Cluster, *, url: str = "", silence_s: float = 90.0, **terms: Any
    ) -> None:
        self.cluster = cluster
        self._silence_s = silence_s
        self.terms = Terms(**{"timeout_margin_s": 0.5, "default_image": "any", **terms})
        self.connection = connect(agent_config(cluster, url=url))
        self.driver = self._make()

    def _make(self) -> KubernetesDriver:
        return KubernetesDriver(self.connection, self.terms, silence_s=self._silence_s)

    async def restart(self) -> None:
        await self.driver.close()
        self.driver = self._make()

    def order(self, work: Work, **changes: Any) -> Order:
        if work is Work.TALK:
            self.say(TALK_OUTPUT)
        return self.program(command=COMMANDS[work], **changes)

    def program(self, **fields: Any) -> Order:
        return plain_order(next(_steps), **fields)

    def say(self, output: bytes, *, stamp: str = "") -> None:
        """What every container on this cluster has said, in the format of the runtime."""
        when = stamp or datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f000Z")
        lines = output.splitlines(keepends=True)
        text = b"".join(when.encode() + b" stdout F " + line for line in lines)
        (self.cluster.folder / "said.log").write_bytes(text)

    def intention(self, key: AttemptKey) -> dict[str, Any]:
        """Our own object, as people see it."""
        found: dict[str, Any] = self.cluster.call("GET", f"{OURS}/{key}")
        return found

    def job(self, key: AttemptKey, project: str = "vision") -> dict[str, Any]:
        found: dict[str, Any] = self.cluster.call("GET", f"{jobs(project)}/{key}")
        return found

    def pods(self, key: AttemptKey, project: str = "vision") -> list[dict[str, Any]]:
        path = f"/api/v1/namespaces/verderer-{project}/pods"
        found: list[dict[str, Any]] = self.cluster.call(
            "GET", f"{path}?labelSelector=verderer.dev/attempt={key}"
        )["items"]
        return found

    async def end(self) -> None:
        """Remove what a test left behind."""
        for observed in await self.driver.observe():
            await self.driver.stop(observed.key, grace_s=0)
        while left := await self.driver.observe():
            for observed in left:
                if observed.state.over:
                    await self.driver.forget(observed.key)
            await self.driver.changed(timeout_s=0.2)
        await self.driver.close()
