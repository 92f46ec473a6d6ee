"""What a failed Slurm command means: try again, never, or nobody knows whether it was done."""

from __future__ import annotations

import re
from typing import Final

from verderer.core.errors import Fault, NotAllowed, Refusal, VerdererError

_LONGEST: Final = 600
_AWAY: Final = re.compile(
    "|".join(
        (
            "unable to contact slurm controller",
            "unable to contact slurmctld",
            "socket timed out",
            "connection refused",
            "connect failure",
            "communication connection failure",
            "transport endpoint",
            "zero bytes were transmitted",
            "insane message length",
            "message receive failure",
            "message send failure",
            "in standby mode",
            "temporarily unable to accept",
            "resource temporarily unavailable",
            "too many open files",
            "munge",
            "authentication error",
            "protocol authentication",
            "unable to process configuration",
            "could not establish a configuration source",
            "could not resolve",
            "unable to establish control machine address",
            "rate limit",
            "unable to open slurm.conf",
            "slurm database",
            "slurmdbd",
            "read-only file system",
            "i/o error writing",
            "error creating slurm batch script",
        )
    ),
    re.IGNORECASE,
)
_FULL: Final = re.compile(
    "MaxSubmit|SubmitJobsLimit|job submit limit reached|maximum (number|count) of jobs",
    re.IGNORECASE,
)
_FORBIDDEN: Final = re.compile(
    "access/permission denied|invalid user id|user's group not permitted", re.IGNORECASE
)
_NOISE: Final = re.compile(r"^\s*(?:s\w+|slurm\w*): (?:error|fatal|warning|info): ", re.MULTILINE)
FULL_AGAIN_S: Final = 60.0
"""When to try again after Slurm has said that it takes no more jobs of ours."""


def explain(program: str, stderr: str) -> VerdererError:
    """The error that `program` has failed with.

    A `Fault` when waiting may help, a `Refusal` when only other words would. What Slurm is not
    known to say is taken as a refusal when it comes from `sbatch`: sites' own filters say what
    they like, and waiting does not change their minds.
    """
    told = "; ".join(dict.fromkeys(_NOISE.sub("", stderr).strip().splitlines())).strip()[:_LONGEST]
    words = f"{program}: {told or 'it failed without a word'}"
    if not told or _AWAY.search(told):
        return Fault(words, detail={"program": program})
    if _FULL.search(told):
        return Fault(words, retry_after_s=FULL_AGAIN_S, hint="a limit of the cluster is reached")
    if _FORBIDDEN.search(told):
        return NotAllowed(
            words, hint="the agent's user needs that right in Slurm", code="slurm_permission"
        )
    if program in ("sbatch", "scontrol", "scancel"):
        return Refusal(words, code="slurm_refused")
    return Fault(words, detail={"program": program})
