"""The process of an agent beside a Slurm cluster."""

from __future__ import annotations

from verderer.agent.run import run_agent
from verderer.cli.agents.identity import agent_config
from verderer.core.errors import Refusal
from verderer.drivers.slurm.driver import SlurmDriver
from verderer.drivers.slurm.options import SlurmOptions, parse_choices, parse_gres
from verderer.settings import Settings


async def run(settings: Settings) -> int:
    """Serve the Slurm cluster until a signal; return the process's exit code.

    Raises:
        Refusal: the shared folder is not set, a setting is malformed, or there is no credential.
    """
    driver = SlurmDriver(options(settings))
    config = await agent_config(settings)
    return await run_agent(config, driver)


def options(settings: Settings) -> SlurmOptions:
    """What the driver is told.

    Raises:
        Refusal: the shared folder is not set, or a setting is malformed.
    """
    given = settings.slurm
    if given.shared_dir is None:
        raise Refusal(
            "slurm.shared_dir is not set",
            hint="Set it to a folder that this machine and all nodes see under the same path.",
            code="settings",
        )
    return SlurmOptions(
        shared_dir=given.shared_dir,
        bin_dir=str(given.bin_dir or ""),
        conf=str(given.conf or ""),
        partition=given.partition,
        account=given.account,
        qos=given.qos,
        reservation=given.reservation,
        constraint=given.constraint,
        choices=parse_choices(given.choices),
        gres=parse_gres(given.gres),
        python=given.python,
        poll_s=given.poll_s,
        command_timeout_s=given.command_timeout_s,
        submissions_per_s=given.submissions_per_s,
    )
