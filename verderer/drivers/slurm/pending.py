"""Why Slurm lets a job wait: its codes, and a sentence for each."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from verderer.core.model.waiting import Pending, Waiting

SENTENCES: Final = MappingProxyType(
    {
        "None": "Slurm has not looked at it yet.",
        "Resources": "The nodes that it needs are busy with other jobs.",
        "Priority": "Jobs of a higher priority wait for the same nodes.",
        "Dependency": "It waits for another job.",
        "DependencyNeverSatisfied": "It waits for another job that will never end as required.",
        "BeginTime": "Its begin time has not come.",
        "JobHeldUser": "Its owner holds it back (`scontrol release` lets it go).",
        "JobHeldAdmin": "An administrator of the cluster holds it back.",
        "Licenses": "All licences of a kind that it needs are taken.",
        "ReqNodeNotAvail": "Nodes that it needs are down, drained, or reserved for others.",
        "NodeDown": "A node that it needs is down.",
        "BadConstraints": "No node has the features that it asks for.",
        "Reservation": "Its reservation has not begun.",
        "ReservationDeleted": "Its reservation has been removed.",
        "PartitionDown": "The partition is down.",
        "PartitionInactive": "The partition is inactive.",
        "PartitionNodeLimit": "It asks for more nodes than the partition gives to one job.",
        "PartitionTimeLimit": "Its time limit is longer than the partition allows.",
        "PartitionConfig": "The partition does not allow a job like this.",
        "AccountNotAllowed": "The partition does not take jobs of this account.",
        "QOSNotAllowed": "The partition does not take jobs of this quality of service.",
        "InvalidAccount": "Slurm does not know the account.",
        "InvalidQOS": "Slurm does not know the quality of service.",
        "QOSUsageThreshold": "Usage is past what the quality of service allows.",
        "JobArrayTaskLimit": "As many tasks of the array run as may run at once.",
        "JobLaunchFailure": "The job could not be launched; an administrator can say why.",
        "NonZeroExitCode": "It ended with an exit code other than 0.",
        "Cleaning": "It was put back into the queue and an earlier run is still being tidied.",
        "Prolog": "The prolog of its nodes still runs.",
        "SystemFailure": "Slurm itself, the file system or the network failed.",
        "FrontEndDown": "No front end is up to start it.",
        "FedJobLock": "Clusters of the federation settle which of them runs it.",
        "MaxRequeue": "It was put back into the queue as often as the cluster allows.",
        "MaxPoweredUpNodes": "As many nodes are switched on as may be.",
        "DeadLine": "It cannot end before its deadline any more.",
        "BurstBufferResources": "The burst buffer has no room for it.",
        "BurstBufferStageIn": "Its data is being brought into the burst buffer.",
    }
)
"""By Slurm's code. Limits of accounts and qualities of service are put together by a rule."""

_OWNERS: Final = {
    "Assoc": "the account's association",
    "Association": "the account's association",
    "QOS": "the quality of service",
}
_THINGS: Final = {
    "CPU": "processors",
    "Cpu": "processors",
    "Mem": "memory",
    "Memory": "memory",
    "GRES": "devices",
    "Gres": "devices",
    "Node": "nodes",
    "BB": "burst buffer",
    "Billing": "billing units",
    "Energy": "energy",
    "License": "licences",
    "Resource": "resources",
    "Jobs": "running jobs",
    "Job": "running jobs",
    "SubmitJobs": "submitted jobs",
    "SubmitJob": "submitted jobs",
    "WallDuration": "time",
    "Wall": "time",
    "Time": "time",
    "": "resources",
}
_LIMIT: Final = re.compile(
    r"(?P<owner>Assoc(?:iation)?|QOS)(?P<group>Grp|Group)?(?P<bound>Max|Min)?"
    r"(?P<thing>CPU|Cpu|Memory|Mem|GRES|Gres|Node|BB|Billing|Energy|License|Resource|SubmitJobs?|Jobs?"
    r"|WallDuration|Wall|Time|)(?P<run>Run)?(?P<minutes>Minutes|Mins?)?"
    r"(?P<per>Per(?:Job|Node|User|Account|Acct))?(?P<limit>Limit)?"
)
_PER: Final = {
    "PerJob": " of one job",
    "PerNode": " on one node",
    "PerUser": " of one user",
    "PerAccount": " of one account",
    "PerAcct": " of one account",
}


_CODES: Final[Mapping[str, Pending]] = MappingProxyType(
    {
        "None": Pending.UNKNOWN,
        "Resources": Pending.RESOURCES,
        "Licenses": Pending.RESOURCES,
        "BurstBufferResources": Pending.RESOURCES,
        "MaxPoweredUpNodes": Pending.RESOURCES,
        "Priority": Pending.PRIORITY,
        "Dependency": Pending.HELD,
        "DependencyNeverSatisfied": Pending.HELD,
        "BeginTime": Pending.HELD,
        "JobHeldUser": Pending.HELD,
        "JobHeldAdmin": Pending.HELD,
        "ReqNodeNotAvail": Pending.UNAVAILABLE,
        "NodeDown": Pending.UNAVAILABLE,
        "Reservation": Pending.UNAVAILABLE,
        "ReservationDeleted": Pending.UNAVAILABLE,
        "PartitionDown": Pending.UNAVAILABLE,
        "PartitionInactive": Pending.UNAVAILABLE,
        "FrontEndDown": Pending.UNAVAILABLE,
        "SystemFailure": Pending.UNAVAILABLE,
        "BadConstraints": Pending.NODES,
        "PartitionNodeLimit": Pending.POLICY,
        "PartitionTimeLimit": Pending.POLICY,
        "PartitionConfig": Pending.POLICY,
        "AccountNotAllowed": Pending.POLICY,
        "QOSNotAllowed": Pending.POLICY,
        "InvalidAccount": Pending.CONFIGURATION,
        "InvalidQOS": Pending.CONFIGURATION,
        "QOSUsageThreshold": Pending.QUOTA,
        "JobArrayTaskLimit": Pending.QUOTA,
        "JobLaunchFailure": Pending.CONFIGURATION,
        "FedJobLock": Pending.QUEUE,
        "Prolog": Pending.CREATING,
        "Cleaning": Pending.CREATING,
        "BurstBufferStageIn": Pending.CREATING,
    }
)
_HOPELESS: Final = frozenset(
    {
        *("DependencyNeverSatisfied", "BadConstraints", "PartitionNodeLimit", "PartitionTimeLimit"),
        *("PartitionConfig", "AccountNotAllowed", "QOSNotAllowed", "InvalidAccount", "InvalidQOS"),
        *("ReservationDeleted", "MaxRequeue", "DeadLine"),
    }
)


def waiting(reason: str) -> Waiting | None:
    """The reason with its code; None when there is no reason at all.

    A limit of an account or a quality of service is a quota; what no rule knows is unknown, and
    shown as it is.
    """
    words = explain(reason)
    if not words:
        return None
    code = _code(reason)
    demands = code.startswith("QOSMin") and bool(_limit(code))
    known = Pending.QUOTA if _limit(code) and code not in SENTENCES else Pending.UNKNOWN
    return Waiting(
        code=Pending.POLICY if demands else _CODES.get(code, known),
        message=words,
        hopeless=demands or code in _HOPELESS,
    )


def _code(reason: str) -> str:
    return reason.strip().partition(",")[0].strip("() ")


def explain(reason: str) -> str:
    """`CODE: sentence`, with what Slurm adds to its code; empty when there is no reason at all.

    A code that no rule knows is shown as it is.
    """
    told = reason.strip()
    if not told:
        return ""
    code, more = _code(told), told.partition(",")[2]
    sentence = SENTENCES.get(code) or _limit(code)
    added = f" ({more.strip(' ()')})" if more.strip(" ()") else ""
    return f"{code}: {sentence}{added}" if sentence else told


def _limit(code: str) -> str:
    """A sentence for a limit of an association or of a quality of service."""
    found = _LIMIT.fullmatch(code)
    if found is None or not any(found[part] for part in ("group", "bound", "limit", "per")):
        return ""
    thing = _THINGS[found["thing"]] + (" over time" if found["minutes"] else "")
    owner, per = _OWNERS[found["owner"]], _PER.get(found["per"] or "", "")
    if found["bound"] == "Min":
        return f"It asks for too little: {owner} demands a least of {thing}{per}."
    if found["group"]:
        per = per or " of all its jobs together"
    return f"The limit of {owner} on {thing}{per} is reached."


def table() -> str:
    """The table of codes in `docs/slurm.md`."""
    examples = (
        *("QOSMaxGRESPerUser", "QOSMaxJobsPerUserLimit", "QOSGrpCpuLimit", "QOSMinGRES"),
        *("AssocGrpCPUMinutesLimit", "AssocMaxJobsLimit", "AssocGrpGRES", "QOSTimeLimit"),
    )
    lines = ["| Slurm's code | what it means |", "|---|---|"]
    lines += [f"| `{code}` | {sentence} |" for code, sentence in SENTENCES.items()]
    lines += [f"| `{code}` | {_limit(code)} |" for code in examples]
    return "\n".join(lines) + "\n"
