"""Runs Slurm's own commands: a bare environment, a time limit, errors in our words."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Mapping, Sequence
from typing import Final

from verderer.core.errors import Fault, Refusal
from verderer.drivers.slurm.options import SlurmOptions
from verderer.drivers.slurm.readers import configuration, jobs, nodes
from verderer.drivers.slurm.readers.configuration import Configuration
from verderer.drivers.slurm.readers.jobs import SACCT_FIELDS, SEPARATOR, SQUEUE_FORMAT, SlurmJob
from verderer.drivers.slurm.readers.nodes import Partition, SlurmNode
from verderer.drivers.slurm.readers.values import Unreadable
from verderer.drivers.slurm.trouble import explain

AT_ONCE: Final = 4
"""Commands that run at the same time: the controller serves others too."""
JSON_EVERYWHERE: Final = (23, 2)
"""From here on `scontrol` knows --json."""
_MANY: Final = 200
"""Jobs named in one command line."""
_ACCOUNT_DAYS: Final = 30
PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Slurm:
    """One cluster's commands. Each raises `Fault` when the cluster does not answer."""

    def __init__(self, options: SlurmOptions, environment: Mapping[str, str]) -> None:
        """`environment` is where PATH, HOME and the user's name come from."""
        self._options = options
        self._gate = asyncio.Semaphore(AT_ONCE)
        self._version: tuple[int, int] | None = None
        self._configuration: Configuration | None = None
        # Nothing else of the agent's: SBATCH_… and SQUEUE_… variables change what commands do.
        self._environment = {
            **{k: environment[k] for k in ("HOME", "USER", "LOGNAME") if k in environment},
            "PATH": environment.get("PATH") or PATH,
            "LC_ALL": "C",
            "TZ": "UTC",
        }
        if conf := options.conf or environment.get("SLURM_CONF"):
            self._environment["SLURM_CONF"] = conf

    async def submit(self, arguments: Sequence[str]) -> int:
        """Hand in a job and return its number.

        Raises:
            Fault: no answer came: the job may exist all the same.
            Refusal: Slurm does not take it.
        """
        told = await self._run("sbatch", "--parsable", *arguments)
        number = told.strip().splitlines()[-1].split(";")[0] if told.strip() else ""
        if not number.isdigit():
            raise Unreadable(f"sbatch does not name the job: {told[:200]!r}")
        return int(number)

    async def our_jobs(self, *, name: str = "") -> tuple[SlurmJob, ...]:
        """All jobs of the agent's user that the controller remembers, or those called `name`."""
        only = (f"--name={name}",) if name else ()
        told = await self._run(
            "squeue",
            "--noheader",
            "--states=all",
            f"--user={os.getuid()}",
            f"--format={SQUEUE_FORMAT}",
            *only,
        )
        return jobs.read_squeue(told)

    async def accounted(self, ids: Sequence[int], *, name: str = "") -> tuple[SlurmJob, ...]:
        """What accounting knows of these jobs, or of those called `name`; empty without it."""
        if not (await self.configuration()).accounting:
            return ()
        found: list[SlurmJob] = []
        for at in range(0, max(1, len(ids)), _MANY):
            some = ",".join(map(str, ids[at : at + _MANY]))
            which = (f"--jobs={some}",) if some else (f"--name={name}", f"--uid={os.getuid()}")
            told = await self._run(
                "sacct",
                "--noheader",
                "--parsable2",
                "--allocations",
                f"--delimiter={SEPARATOR}",
                f"--format={SACCT_FIELDS}",
                f"--starttime=now-{_ACCOUNT_DAYS}days",
                *which,
            )
            found += jobs.read_sacct(told)
        return tuple(found)

    async def job(self, number: int) -> SlurmJob | None:
        """One job in full, or None when the controller does not remember it."""
        wants_json = await self.version() >= JSON_EVERYWHERE
        arguments = ("--json",) if wants_json else ("--oneliner",)
        try:
            told = await self._run("scontrol", *arguments, "show", "job", str(number))
        except Refusal as problem:
            if "Invalid job id" in problem.message:
                return None
            raise
        found = jobs.read_jobs_json(told) if wants_json else jobs.read_job_text(told)
        return next((job for job in found if job.id == number), None)

    async def cancel(self, ids: Sequence[int], *options: str) -> None:
        """Have jobs cancelled, or signalled as `options` say; ended ones do not matter."""
        for at in range(0, len(ids), _MANY):
            some = map(str, ids[at : at + _MANY])
            # With `--quiet` jobs that have ended are no error.
            await self._run("scancel", "--quiet", *options, *some)

    async def nodes(self) -> tuple[SlurmNode, ...]:
        """All nodes, whoever's jobs run there."""
        if await self.version() >= JSON_EVERYWHERE:
            with contextlib.suppress(Unreadable):
                return nodes.read_nodes_json(await self._run("scontrol", "--json", "show", "nodes"))
        told = await self._run("scontrol", "--oneliner", "--details", "show", "nodes")
        return nodes.read_nodes_text(told)

    async def node(self, name: str) -> SlurmNode:
        """One node. Raises Refusal when there is none of that name."""
        told = await self._run("scontrol", "--oneliner", "--details", "show", "node", name)
        found = nodes.read_nodes_text(told)
        if len(found) != 1:
            raise Refusal(f"there is no node {name}", code="not_found")
        return found[0]

    async def partitions(self) -> tuple[Partition, ...]:
        """All partitions that the agent's user may see."""
        told = await self._run("scontrol", "--oneliner", "--all", "show", "partition")
        return nodes.read_partitions(told)

    async def update_node(self, name: str, state: str, reason: str = "") -> None:
        """Set a node's state."""
        words = (f"reason={reason}",) if reason else ()
        await self._run("scontrol", "update", f"nodename={name}", f"state={state}", *words)

    async def version(self) -> tuple[int, int]:
        """Of the commands installed here."""
        if self._version is None:
            self._version = configuration.read_version(await self._run("sbatch", "--version"))
        return self._version

    async def configuration(self) -> Configuration:
        """Of the controller, asked once."""
        if self._configuration is None:
            told = await self._run("scontrol", "show", "config")
            self._configuration = configuration.read_configuration(told)
        return self._configuration

    async def _run(self, program: str, *arguments: str) -> str:
        path = os.path.join(self._options.bin_dir, program)  # noqa: PTH118 - may be a bare name
        async with self._gate:
            out, err, code = await self._answer(path, arguments)
        if code:
            raise explain(program, err or out)
        return out

    async def _answer(self, path: str, arguments: Sequence[str]) -> tuple[str, str, int]:
        try:
            process = await asyncio.create_subprocess_exec(
                path,
                *arguments,
                env=self._environment,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
        except OSError as problem:
            raise Fault(
                f"{path} cannot be run: {problem.strerror or problem}",
                hint="install Slurm's commands beside the agent, or set slurm.bin_dir",
            ) from problem
        limit_s = self._options.command_timeout_s
        try:
            async with asyncio.timeout(limit_s):
                out, err = await process.communicate()
        except TimeoutError as problem:
            raise Fault(f"{path} did not answer within {limit_s:g} s") from problem
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await asyncio.shield(process.wait())
        return (
            out.decode("utf-8", "replace"),
            err.decode("utf-8", "replace"),
            process.returncode or 0,
        )
