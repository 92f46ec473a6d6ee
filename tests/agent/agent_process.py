"""A real agent over the local driver in a process of its own, for tests that kill it.

Arguments: server URL, state directory, root of the local driver.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from tests.agent.fake_control_plane import CREDENTIAL
from verderer.agent.run import AgentConfig, run_agent
from verderer.drivers.local.driver import LocalDriver


def main() -> int:
    url, state_dir, root = sys.argv[1:]
    config = AgentConfig(
        server_url=url,
        credential=CREDENTIAL,
        state_dir=Path(state_dir),
        version="test",
        settle_s=2.0,
    )
    return asyncio.run(run_agent(config, LocalDriver(Path(root), cgroup="off")))


if __name__ == "__main__":
    raise SystemExit(main())
