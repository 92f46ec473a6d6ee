"""Writes `docs/reference/reasons.md`: every reason to wait and every way to end, from the core."""

from __future__ import annotations

import inspect
import re
from enum import StrEnum
from pathlib import Path

from verderer.core.diagnosis import ADVICE
from verderer.core.explain import NEVER, Reason, Why
from verderer.core.model.attempt import EndCause
from verderer.core.model.waiting import Pending, Waiting

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "reasons.md"
_HEAD = """# Reasons

This page is generated from `verderer/core`; `python -m verderer.cli.reasons_reference` writes it
again. The codes are stable: programs may decide by them.

## Why a step waits

`verderer why RUN`, the run's page and `GET /api/v1/runs/{run}/why` say for every waiting step, and
for every cluster that was considered, one of these. With each come the numbers that it is about
and, where there is one, the nearest change that would start the step.
"""
_THERE = """## Why a step that was given to a cluster has not begun

Then the cluster's own word is the answer: what its scheduler, its quota, its admission rules, its
nodes or Slurm say, taken apart into one of these codes, with the message as it stands and what
was counted in it. It is told once it has lasted for two seconds, and again when it changes.
"""
_ENDS = """## How an attempt ended

The `cause` of an attempt that is over. A step is tried again after any of them but `cancelled`, as
long as its `retries` allow.
"""
_BEHIND = """
## What lies behind an end

Where the cluster's words or the program's last lines give it away; what no rule knows is not
guessed. `verderer why RUN/STEP` and the step's panel tell it.
"""
_EXAMPLES = {
    Why.QUOTA: Reason(
        why=Why.QUOTA,
        group="rg-proj-b",
        resource="nvidia.com/gpu",
        asked=8000,
        free=4000,
        total=64_000,
    ),
    Why.OVER_QUOTA: Reason(
        why=Why.OVER_QUOTA,
        group="rg-proj-b",
        resource="nvidia.com/gpu",
        asked=128_000,
        total=64_000,
    ),
    Why.NOT_GRANTED: Reason(why=Why.NOT_GRANTED, group="common"),
    Why.NEEDS: Reason(why=Why.NEEDS, others=("prepare", "split")),
    Why.BACKOFF: Reason(why=Why.BACKOFF, seconds=20),
    Why.NO_SCHEDULER: Reason(why=Why.NO_SCHEDULER, seconds=42),
    Why.OFFLINE: Reason(why=Why.OFFLINE, cluster="proj-b-tpu", seconds=240),
    Why.FENCE: Reason(why=Why.FENCE, cluster="proj-b-tpu", seconds=50),
    Why.NO_FENCE: Reason(why=Why.NO_FENCE, cluster="proj-b-tpu", seconds=240),
    Why.NO_SUCH_RESOURCE: Reason(
        why=Why.NO_SUCH_RESOURCE, cluster="lab", resource="nvidia.com/gpu", asked=8000
    ),
    Why.NODE_TOO_SMALL: Reason(
        why=Why.NODE_TOO_SMALL, cluster="lab", resource="memory", asked=512 << 30, total=256 << 30
    ),
    Why.CLUSTER_TOO_SMALL: Reason(
        why=Why.CLUSTER_TOO_SMALL,
        cluster="lab",
        resource="nvidia.com/gpu",
        asked=64_000,
        total=32_000,
    ),
    Why.OTHERS: Reason(
        why=Why.OTHERS,
        cluster="lab",
        resource="nvidia.com/gpu",
        asked=8000,
        free=2000,
        total=16_000,
        foreign=14_000,
    ),
    Why.CAPACITY: Reason(
        why=Why.CAPACITY,
        cluster="lab",
        resource="nvidia.com/gpu",
        asked=8000,
        free=4000,
        total=64_000,
    ),
}


def reference() -> str:
    """The whole page."""
    parts = [_HEAD]
    for code, meaning in _comments(Why).items():
        reason = _EXAMPLES.get(Why(code), Reason(why=Why(code)))
        never = " Waiting alone cannot help." if Why(code) in NEVER else ""
        parts.append(f"### `{code}`\n\n{_sentence(meaning)}.{never}\n")
        parts.append(f"> {reason.message}\n")
        if reason.change:
            parts.append(f"What helps: {reason.change}.\n")
    parts.append(_THERE)
    for code, meaning in _comments(Pending).items():
        waits = Waiting(code=Pending(code))
        parts.append(f"### `{code}`\n\n{_sentence(meaning)}.\n")
        if waits.change:
            parts.append(f"What helps: {waits.change}.\n")
    parts.append(_ENDS)
    parts.append("| cause | meaning |\n|---|---|")
    rows = [f"| `{code}` | {meaning} |" for code, meaning in _comments(EndCause).items()]
    parts += [*rows, _BEHIND, "| code | what it is | what helps |\n|---|---|---|"]
    parts += [f"| `{f}` | {a.sentence} | {a.remedy} |" for f, a in ADVICE.items()]
    return "\n".join(parts) + "\n"


def _comments(codes: type[StrEnum]) -> dict[str, str]:
    """What the comment beside each member says, by its value.

    Raises:
        ValueError: a member has none.
    """
    found = dict(
        re.findall(r'^ +[A-Z_]+ = "(\w+)"  # (.+)$', inspect.getsource(codes), re.MULTILINE)
    )
    if missing := {member.value for member in codes} - set(found):
        raise ValueError(f"without a comment: {sorted(missing)}")
    return found


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:]


def main() -> None:
    """Write the page."""
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(reference(), encoding="utf-8")


if __name__ == "__main__":
    main()
