"""The local agent's process."""

from __future__ import annotations

from pathlib import Path

from verderer.agent.run import AgentConfig, run_agent
from verderer.core.errors import Refusal
from verderer.core.version import VERSION
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
    config = AgentConfig(
        server_url=settings.agent_server_url,
        credential=_credential(settings.agent_credential_file),
        state_dir=settings.agent_spool_dir,
        version=VERSION,
    )
    spool = settings.agent.spool_limit_bytes
    return await run_agent(config, LocalDriver(settings.data_dir / "local", spool_bytes=spool))


def _credential(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError as e:
        raise Refusal(
            f"the agent's credential cannot be read: {e}",
            hint="`verderer migrate` with the local cluster enabled makes one.",
        ) from e
