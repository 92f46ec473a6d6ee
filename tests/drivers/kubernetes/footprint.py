"""How much memory an agent needs: `python -m tests.drivers.kubernetes.footprint PORT` prints it.

It loads all that the agent's process loads, watches, and asks for nodes as the agent does.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path

import uvloop
from lightkube.config.kubeconfig import KubeConfig
from lightkube.config.models import User

from verderer.cli.agents.kubernetes import run as _the_whole_agent
from verderer.drivers.kubernetes.calls.connection import Connection
from verderer.drivers.kubernetes.driver import KubernetesDriver
from verderer.drivers.kubernetes.terms import Terms


def memory(name: str) -> int:
    """Kilobytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1])
    raise AssertionError(name)


async def watch(port: int) -> None:
    before = memory("VmRSS")
    config = KubeConfig.from_server(f"http://127.0.0.1:{port}").get()
    assert config is not None
    connection = Connection(config._replace(user=User()))
    driver = KubernetesDriver(connection, Terms(publish_inventory=False))
    began = time.monotonic()
    nodes = await driver.nodes()
    listed = time.monotonic() - began
    for _ in range(5):
        nodes = await driver.nodes()
        await driver.observe()
        await asyncio.sleep(0.1)
    print(
        json.dumps(
            {
                "before": before,
                "rss": memory("VmRSS"),
                "peak": memory("VmHWM"),
                "nodes": len(nodes),
                "taken": sum(1 for n in nodes if "verderer.dev/taken-by-others" in n.labels),
                "listed_s": round(listed, 2),
            }
        )
    )
    await driver.close()


if __name__ == "__main__":
    assert _the_whole_agent
    uvloop.run(watch(int(sys.argv[1])))
