"""The local agent's process."""

from __future__ import annotations

from verderer.agent.run import run_agent
from verderer.cli.agents.identity import agent_config
from verderer.core.errors import Refusal
from verderer.drivers.local.driver import LocalDriver
from verderer.settings import Settings


async def run(settings: Settings) -> int:
    """Serve the local cluster until a signal; return the process's exit code.

    Raises:
        Refusal: the local cluster is not enabled here, or there is no credential.
    """
    if not settings.local_cluster.enabled:
        raise Refusal(
            "the local cluster is not enabled: it runs commands as this very user",
            hint="Set local_cluster.enabled to true if everybody who may submit may do that.",
        )
    config = await agent_config(settings)
    spool = settings.agent.spool_limit_bytes
    return await run_agent(config, LocalDriver(settings.data_dir / "local", spool_bytes=spool))
