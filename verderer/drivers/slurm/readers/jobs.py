"""Jobs: what `squeue`, `scontrol show job` and `sacct` say about them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from verderer.drivers.slurm.readers import hostlists
from verderer.drivers.slurm.readers.values import (
    Unreadable,
    document,
    duration_s,
    fields,
    number,
    rows,
    states,
    text_of,
    unix_s,
)

SEPARATOR: Final = "\x1f"
"""Between the columns: no name holds it."""
SQUEUE_FORMAT: Final = SEPARATOR.join(("%A", "%T", "%r", "%S", "%e", "%l", "%N", "%B", "%j", "%Z"))
SACCT_FIELDS: Final = "JobIDRaw,State,ExitCode,Start,End,NodeList,JobName,WorkDir"

ENDED: Final = frozenset(
    {
        *("COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "PREEMPTED", "BOOT_FAIL"),
        *("DEADLINE", "OUT_OF_MEMORY", "REVOKED"),
    }
)
_FLAGS: Final = frozenset(
    {
        *("COMPLETING", "CONFIGURING", "LAUNCH_FAILED", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED"),
        *("SPECIAL_EXIT", "RESIZING", "STOPPED", "RECONFIG_FAIL", "POWER_UP_NODE", "SIGNALING"),
        *("RESV_DEL_HOLD", "STAGE_OUT", "EXPEDITING"),
    }
)
_WAITING: Final = frozenset({"PENDING", "SUSPENDED", "REQUEUED", "REQUEUE_HOLD", "SPECIAL_EXIT"})


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmJob:
    """One job as Slurm describes it."""

    id: int
    name: str
    state: str
    """In upper case; flags such as COMPLETING stand in `flags` where Slurm shows the state too."""
    flags: frozenset[str] = frozenset()
    reason: str = ""
    """Why it waits or failed, Slurm's code."""
    cancelled_by: str = ""
    """The user, or the number of the user, where accounting knows it."""
    directory: str = ""
    node: str = ""
    """The first of its nodes, where the batch script runs."""
    started_s: int | None = None
    ended_s: int | None = None
    limit_s: int | None = None
    exit_code: int | None = None
    signal: int | None = None
    restarts: int | None = None

    @property
    def over(self) -> bool:
        """Whether nothing of it runs any more, its epilog included."""
        return self.state in ENDED and "COMPLETING" not in self.flags

    @property
    def completing(self) -> bool:
        """Whether its program has ended and its nodes are still being tidied."""
        return self.state == "COMPLETING" or "COMPLETING" in self.flags

    @property
    def waiting(self) -> bool:
        """Whether it holds no nodes that work for it."""
        return self.state in _WAITING


def read_squeue(text: str) -> tuple[SlurmJob, ...]:
    """Jobs of `squeue --noheader --format=SQUEUE_FORMAT`, times in UTC.

    A job whose name holds a line break is passed over: it is none of ours, and must not keep us
    from seeing those.

    Raises:
        Unreadable: no line has these columns.
    """
    lines = [line for line in text.split("\n") if line.strip()]
    cells = [line.split(SEPARATOR) for line in lines]
    good = [one for one in cells if len(one) == SQUEUE_FORMAT.count(SEPARATOR) + 1]
    if lines and not good:
        raise Unreadable(f"a line of squeue has {len(cells[0])} columns: {lines[0][:200]!r}")
    return tuple(_from_cells(one) for one in good if one[0].strip().isdigit())


def _from_cells(cells: Sequence[str]) -> SlurmJob:
    number, told, reason, start, end, limit, nodes, batch, name, directory = cells
    state, flags = _state(told)
    return SlurmJob(
        id=_id(number),
        name=name.strip(),
        state=state,
        flags=flags,
        reason=text_of(reason),
        directory=directory.strip(),
        node=text_of(batch) or hostlists.first(nodes),
        started_s=unix_s(start),
        ended_s=unix_s(end),
        limit_s=duration_s(limit),
    )


def read_job_text(text: str) -> tuple[SlurmJob, ...]:
    """Jobs of `scontrol --oneliner show job`, times in UTC.

    Raises:
        Unreadable: a line names no job.
    """
    found = [fields(line) for line in text.splitlines() if line.strip()]
    if any("JobId" not in one for one in found):
        if "No jobs in the system" in text:
            return ()
        raise Unreadable(f"scontrol does not show a job: {text[:200]!r}")
    return tuple(_from_fields(one) for one in found)


def read_jobs_json(text: str) -> tuple[SlurmJob, ...]:
    """Jobs of `squeue --json` or `scontrol show job --json`, any version.

    Raises:
        Unreadable: it is not such a document, or a job in it has no number.
    """
    found = document(text)
    if not isinstance(found.get("jobs"), list):
        raise Unreadable("Slurm's JSON has no jobs")
    return tuple(_from_json(one) for one in rows(found, "jobs"))


def read_sacct(text: str) -> tuple[SlurmJob, ...]:
    """Jobs of `sacct --parsable2 --noheader --allocations --format=SACCT_FIELDS`, times in UTC.

    Raises:
        Unreadable: a line has other columns.
    """
    jobs = []
    for line in text.splitlines():
        if not line.strip():
            continue
        cells = line.split(SEPARATOR)
        if len(cells) != SACCT_FIELDS.count(",") + 1:
            raise Unreadable(f"a line of sacct has {len(cells)} columns: {line[:200]!r}")
        told, _, who = cells[1].partition(" by ")
        code, signal = _exit(cells[2])
        state, flags = _state(told)
        jobs.append(
            SlurmJob(
                id=_id(cells[0]),
                name=cells[6].strip(),
                state=state,
                flags=flags,
                cancelled_by=who.strip(),
                directory=cells[7].strip(),
                node=hostlists.first(cells[5]) if "assigned" not in cells[5] else "",
                started_s=unix_s(cells[3]),
                ended_s=unix_s(cells[4]),
                exit_code=code,
                signal=signal,
            )
        )
    return tuple(jobs)


def _from_fields(found: Mapping[str, str]) -> SlurmJob:
    code, signal = _exit(found.get("ExitCode", ""))
    state, flags = _state(found.get("JobState"))
    return SlurmJob(
        id=_id(found["JobId"].split()[0] if found["JobId"] else ""),
        name=found.get("JobName", ""),
        state=state,
        flags=flags,
        reason=text_of(found.get("Reason")),
        directory=text_of(found.get("WorkDir")),
        node=text_of(found.get("BatchHost")) or hostlists.first(found.get("NodeList", "")),
        started_s=unix_s(found.get("StartTime")),
        ended_s=unix_s(found.get("EndTime")),
        limit_s=duration_s(found.get("TimeLimit")),
        exit_code=code,
        signal=signal,
        restarts=number(found.get("Restarts")),
    )


def _from_json(found: Mapping[str, Any]) -> SlurmJob:
    code, signal = _exit_json(found.get("exit_code"))
    state, flags = _state(found.get("job_state"), found.get("flags_of_state"))
    limit_min = number(found.get("time_limit"))
    return SlurmJob(
        id=_id(found.get("job_id")),
        name=text_of(found.get("name")),
        state=state,
        flags=flags,
        reason=text_of(found.get("state_reason")),
        directory=text_of(found.get("current_working_directory")),
        node=text_of(found.get("batch_host")) or hostlists.first(text_of(found.get("nodes"))),
        started_s=unix_s(found.get("start_time")),
        ended_s=unix_s(found.get("end_time")),
        limit_s=limit_min * 60 if limit_min is not None else None,
        exit_code=code,
        signal=signal,
        restarts=number(found.get("restart_cnt")),
    )


def _id(value: object) -> int:
    found = number(value)
    if found is None or found <= 0:
        raise Unreadable(f"{str(value)[:80]!r} is no number of a job")
    return found


def _state(*values: object) -> tuple[str, frozenset[str]]:
    """The base state with its flags; a state of flags alone keeps the first as its base."""
    first, rest = states(*values)
    everything: Iterable[str] = [first, *sorted(rest)] if first else []
    bases = [word for word in everything if word not in _FLAGS]
    base = bases[0] if bases else first
    return base, frozenset(word for word in everything if word != base)


def _exit(text: str) -> tuple[int | None, int | None]:
    """`3:0` is exit code 3, `0:9` signal 9."""
    found = re.fullmatch(r"([0-9]{1,5}):([0-9]{1,5})", text.strip())
    if found is None:
        return None, None
    code, signal = int(found[1]), int(found[2])
    return (None, signal) if signal else (code, None)


def _exit_json(value: object) -> tuple[int | None, int | None]:
    """A raw wait status, wrapped or not, or `{return_code, signal: {id}}` from 23.11 on."""
    if isinstance(value, dict) and "return_code" in value:
        told = value.get("signal")
        signal = number(told.get("id", told.get("signal_id"))) if isinstance(told, dict) else None
        return (None, signal) if signal else (number(value["return_code"]), None)
    status = number(value)
    if status is None or status < 0:
        return None, None
    signal = status & 0x7F
    return (None, signal) if signal else (status >> 8 & 0xFF, None)
