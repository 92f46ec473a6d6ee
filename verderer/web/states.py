"""How a state looks: one word, one shape and one colour, the same on every page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from verderer.web.language import N_


@dataclass(frozen=True, slots=True)
class Look:
    """What stands for a state. `shape` names a symbol of the page, `tone` a colour."""

    word: str
    shape: str
    tone: str


LOOKS: Mapping[str, Look] = MappingProxyType(
    {
        "waiting": Look(N_("waiting"), "ring", "wait"),
        "queued": Look(N_("queued"), "ring", "wait"),
        "blocked": Look(N_("waiting"), "ring", "wait"),
        "ready": Look(N_("waiting"), "ring", "wait"),
        "assigned": Look(N_("starting"), "half", "start"),
        "starting": Look(N_("starting"), "half", "start"),
        "active": Look(N_("running"), "disc", "run"),
        "running": Look(N_("running"), "disc", "run"),
        "stopping": Look(N_("stopping"), "half", "stop"),
        "cancelling": Look(N_("cancelling"), "half", "stop"),
        "succeeded": Look(N_("succeeded"), "check", "good"),
        "failed": Look(N_("failed"), "cross", "bad"),
        "lost": Look(N_("lost"), "cross", "bad"),
        "cancelled": Look(N_("cancelled"), "slash", "off"),
        "skipped": Look(N_("skipped"), "slash", "off"),
        "unknown": Look(N_("unknown"), "question", "unsure"),
        "attention": Look(N_("needs you"), "bang", "warn"),
        "online": Look(N_("online"), "disc", "good"),
        "offline": Look(N_("offline"), "question", "unsure"),
        "disabled": Look(N_("disabled"), "slash", "off"),
        "never": Look(N_("never connected"), "ring", "wait"),
        "joining": Look(N_("waits for its agent"), "ring", "wait"),
        "unfit": Look(N_("not fit for work"), "bang", "warn"),
        "pass": Look(N_("passed"), "check", "good"),
        "warn": Look(N_("to look at"), "bang", "warn"),
        "fail": Look(N_("failed"), "cross", "bad"),
    }
)

ORDER = (
    "failed",
    "unknown",
    "running",
    "starting",
    "stopping",
    "waiting",
    "succeeded",
    "cancelled",
    "skipped",
)
"""In which states are counted on a bar: what needs a look comes first."""

BAR = ("succeeded", "failed", "lost", "unknown", "stopping", "running", "starting")
"""From left to right on a bar that fills up; the rest of it is what has not begun."""


def look(state: str) -> Look:
    """The look of any state; what is not known looks unknown."""
    return LOOKS.get(str(state), LOOKS["unknown"])


_EVENTS = {
    "run.submitted": N_("run submitted"),
    "run.queued": N_("run queued"),
    "run.running": N_("run began"),
    "run.retried": N_("run retried"),
    "run.cancelling": N_("cancel asked for"),
    "run.cancelled": N_("run cancelled"),
    "run.succeeded": N_("run succeeded"),
    "run.failed": N_("run failed"),
    "step.skipped": N_("step skipped"),
    "step.cancelled": N_("step cancelled"),
    "step.failed": N_("step failed"),
    "step.succeeded": N_("step succeeded"),
    "attempt.assigned": N_("attempt given to a cluster"),
    "attempt.starting": N_("attempt starting"),
    "attempt.running": N_("attempt running"),
    "attempt.stopping": N_("attempt asked to stop"),
    "attempt.succeeded": N_("attempt succeeded"),
    "attempt.failed": N_("attempt failed"),
    "attempt.cancelled": N_("attempt cancelled"),
    "attempt.lost": N_("attempt lost"),
}


def event(action: str) -> str:
    """What was done, in words to be translated; an action without any is shown by its code."""
    return _EVENTS.get(action, action)


CHECKS = (
    N_("clock"),
    N_("object store"),
    N_("cluster"),
    N_("Slurm's commands"),
    N_("Slurm controller"),
    N_("partition"),
    N_("shared folder"),
    N_("API server"),
    N_("version"),
    N_("rights"),
    N_("API server's clock"),
    N_("nodes"),
    N_("not checked yet"),
    N_("agent"),
)
"""Names of agents' checks that have a translation; their messages are shown as they came."""
