"""A cluster in a process of its own: the real agent over a cluster in memory.

`python -m bench.platform.fleet` takes its orders as JSON in the environment (`Orders`). On SIGTERM
it writes what it started, so that a bench can prove that nothing was started twice.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import uvloop

from verderer.agent.run import AgentConfig, run_agent
from verderer.cli.settling import settled
from verderer.core.version import VERSION
from verderer.drivers.contract import Order
from verderer.drivers.fake.cluster import FakeCluster
from verderer.drivers.fake.driver import FakeDriver, fake_nodes
from verderer.drivers.fake.script import Behaviour
from verderer.telemetry import logs

VARIABLE = "VERDERER_BENCH_FLEET"
GPU = "nvidia.com/gpu"


@dataclass(frozen=True, slots=True, kw_only=True)
class Orders:
    """How the cluster behaves."""

    server_url: str
    credential: str
    state_dir: str
    nodes: int = 4
    cpu: int = 1_000_000_000
    """Thousandths of a core on each node: by default more than any bench asks for."""
    run_s: float | None = 0.0
    """How long a step runs; None: until it is stopped."""
    moments: str = ""
    """File for a line at each start: run, step, monotonic nanoseconds. Empty: not written."""
    summary: str = ""
    """File for what was started, written at the end."""

    def variable(self) -> dict[str, str]:
        return {VARIABLE: json.dumps(asdict(self))}


class Noting(FakeDriver):
    """Writes down when each attempt arrived."""

    def __init__(self, cluster: FakeCluster, path: Path) -> None:
        super().__init__(cluster)
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    async def start(self, order: Order, *, workspace: str) -> None:
        at = time.monotonic_ns()
        await super().start(order, workspace=workspace)
        os.write(self._file, f"{order.key.run} {order.key.step} {at}\n".encode())


async def run(orders: Orders) -> int:
    """Serve until SIGTERM."""
    usual, holding = Behaviour(run_s=orders.run_s), Behaviour(run_s=None)
    # Steps on accelerators hold them, so that others of their kind wait for ever.
    cluster = FakeCluster(
        fake_nodes(orders.nodes, **{"cpu": orders.cpu, "memory": 1 << 50, GPU: 8_000}),
        behave=lambda order: holding if GPU in dict(order.requests.items()) else usual,
        epoch_ms=time.time_ns() // 1_000_000 - _monotonic_ms(),
    )
    driver = Noting(cluster, Path(orders.moments)) if orders.moments else FakeDriver(cluster)
    config = AgentConfig(
        server_url=orders.server_url,
        credential=orders.credential,
        state_dir=Path(orders.state_dir),
        version=VERSION,
    )
    code = await run_agent(config, driver)
    if orders.summary:
        twice = [str(key) for key, n in cluster.starts.items() if n > 1]
        keys = [str(key) for key in cluster.starts]
        Path(orders.summary).write_text(json.dumps({"twice": twice, "started": keys}))
    return code


def _monotonic_ms() -> int:
    return int(time.monotonic() * 1000)


def main() -> None:
    logs.configure(role="agent", format="json", level="warning")
    raise SystemExit(uvloop.run(settled(run(Orders(**json.loads(os.environ[VARIABLE]))))))


if __name__ == "__main__":
    main()
