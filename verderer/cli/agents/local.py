"""The local agent's process."""

from __future__ import annotations

from verderer.agent.run import run_agent
from verderer.cli.agents.identity import agent_config
from verderer.core.errors import Invalid, Refusal
from verderer.core.model.resources import Resources, parse_quantity
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
    driver = LocalDriver(
        settings.data_dir / "local",
        capacity=capacity_of(settings.local_cluster.capacity),
        spool_bytes=settings.agent.spool_limit_bytes,
    )
    return await run_agent(config, driver)


def capacity_of(text: str) -> Resources | None:
    """`cpu=4,memory=8Gi` as amounts; None for an empty text.

    Raises:
        Invalid: it is not written like that.
    """
    amounts = {}
    for part in filter(None, (one.strip() for one in text.split(","))):
        name, equals, amount = part.partition("=")
        try:
            amounts[name] = parse_quantity(amount, resource=name) if name and equals else 0
        except ValueError as e:
            raise Invalid(f"local_cluster.capacity: {e}") from e
        if not amounts[name]:
            hint = "Write it like cpu=4,memory=8Gi."
            raise Invalid(f"local_cluster.capacity: {part!r} is not NAME=AMOUNT", hint=hint)
    return Resources.of(amounts) if amounts else None
