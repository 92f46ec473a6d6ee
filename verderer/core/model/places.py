"""Where an attempt's bytes live in object storage, and whose an object is.

`logs/{project}/{run}/{step}/{attempt}/…` and `artifacts/{project}/{run}/{step}/{attempt}/{output}…`
with the project's number and the run's id as people see it.
"""

from __future__ import annotations

from dataclasses import dataclass

from verderer.core.model.attempt import AttemptKey
from verderer.core.model.ids import parse_run_id, run_id_text


@dataclass(frozen=True, slots=True)
class Owner:
    """The project and the attempt that an object belongs to."""

    kind: str
    project: int
    attempt: AttemptKey


def log_prefix(project: int, key: AttemptKey) -> str:
    """Every log chunk of an attempt lies below; ends in `/`."""
    return f"logs/{project}/{run_id_text(key.run)}/{key.step}/{key.number}/"


def output_key(project: int, key: AttemptKey, name: str) -> str:
    """The object of an output that is a file; the folder of one that is a directory."""
    return f"artifacts/{project}/{run_id_text(key.run)}/{key.step}/{key.number}/{name}"


def owner_of(object_key: str) -> Owner | None:
    """Say whose an object is, or None when it is not an attempt's."""
    parts = object_key.split("/", 5)
    if len(parts) < 6 or parts[0] not in ("logs", "artifacts") or not parts[5]:
        return None
    try:
        key = AttemptKey(parse_run_id(parts[2]), int(parts[3]), int(parts[4]))
        owner = Owner(parts[0], int(parts[1]), key)
    except ValueError:
        return None
    # Only the one spelling that the builders above use: `+1`, ` 1` or an upper-case id is nobody's.
    canonical = (str(owner.project), run_id_text(key.run), str(key.step), str(key.number))
    return owner if tuple(parts[1:5]) == canonical else None


def probe_prefix(cluster: int) -> str:
    """Below it the agent of a cluster may write and read, to see whether it can; ends in `/`.

    `cluster` is the row's number. What is left there goes away with everything under `tmp/`.
    """
    return f"tmp/agents/{cluster}/"
