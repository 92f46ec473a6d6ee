"""What people type into the box above a list: `state:failed cluster:local team:vision name…`."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from verderer.core.model.run import RunState
from verderer.store.views.runs import RunFilter

LIVE = frozenset({RunState.QUEUED, RunState.RUNNING, RunState.CANCELLING})
_GROUPS = {
    "live": LIVE,
    "active": LIVE,
    "over": frozenset({RunState.SUCCEEDED, RunState.FAILED, RunState.CANCELLED}),
    "waiting": frozenset({RunState.QUEUED}),
}


@dataclass(frozen=True, slots=True)
class Search:
    """A filter, and the words that mean nothing."""

    filter: RunFilter
    unknown: tuple[str, ...] = ()


def parse(text: str, *, project: str = "", oldest_first: bool = False) -> Search:
    """Read a search; a key that is none of ours is the name of a label."""
    states: set[RunState] = set()
    labels: list[tuple[str, str]] = []
    words: list[str] = []
    unknown: list[str] = []
    named: dict[str, str] = {}
    for word in _words(text[:500]):
        key, colon, value = word.partition(":")
        if not colon or not key:
            words.append(word)
        elif not value:
            unknown.append(word)
        elif key == "state":
            wanted = [_states(part) for part in value.split(",")]
            states.update(*wanted)
            if not all(wanted):
                unknown.append(word)
        elif key in {"name", "cluster", "project"}:
            named[key] = value
        elif key in {"by", "user", "actor"}:
            named["actor"] = value
        else:
            labels.append((key.removeprefix("label."), value))
    return Search(
        RunFilter(
            project=named.get("project") or project or None,
            states=frozenset(states),
            name=named.get("name"),
            actor=named.get("actor"),
            cluster=named.get("cluster"),
            labels=tuple(labels),
            text=" ".join(words) or None,
            oldest_first=oldest_first,
        ),
        tuple(unknown),
    )


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:  # a quote that is still open while somebody types
        return text.split()


def _states(word: str) -> frozenset[RunState]:
    if word in _GROUPS:
        return _GROUPS[word]
    return frozenset(state for state in RunState if state.value == word)
