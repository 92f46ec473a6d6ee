"""The nodes, and what pods of others hold on each: kept small for tens of thousands of pods."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Final, NamedTuple

from verderer.core.model.resources import Resources
from verderer.drivers.contract import NodeFacts
from verderer.drivers.kubernetes.seen.nodes import facts, usage
from verderer.drivers.kubernetes.seen.sights import AnyPod, Node

_SHAPES: Final = 4_096


class Taken(NamedTuple):
    """What one pod holds."""

    node: str
    amounts: Resources


class Occupancy:
    """Fed by two watches. Only what a change touches is worked out again."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self._taken: dict[str, dict[Resources, int]] = {}
        self._facts: dict[str, NodeFacts] = {}
        self._shapes: dict[Resources, Resources] = {}

    def keep(self, pod: AnyPod) -> Taken:
        """All that is remembered of a pod. Pods of one shape share their amounts."""
        amounts = usage(pod)
        if len(self._shapes) >= _SHAPES:
            self._shapes.clear()
        return Taken(sys.intern(pod.spec.node_name), self._shapes.setdefault(amounts, amounts))

    def pod_changed(self, before: Taken | None, now: Taken | None) -> None:
        """A pod of somebody else came, moved on or went."""
        for taken, step in ((before, -1), (now, 1)):
            if taken is None:
                continue
            held = self._taken.setdefault(taken.node, {})
            held[taken.amounts] = held.get(taken.amounts, 0) + step
            if held[taken.amounts] <= 0:
                del held[taken.amounts]
            if not held:
                del self._taken[taken.node]
            self._facts.pop(taken.node, None)

    def node_changed(self, before: Node | None, now: Node | None) -> None:
        """A node came, changed or went."""
        seen = now or before
        if seen is None:
            return
        name = seen.metadata.name
        self._facts.pop(name, None)
        if now is None:
            self.nodes.pop(name, None)
        else:
            self.nodes[name] = now

    def all(self) -> Sequence[NodeFacts]:
        """Every node, by name."""
        found = []
        for name in sorted(self.nodes):
            known = self._facts.get(name)
            if known is None:
                known = self._facts[name] = facts(self.nodes[name], self._taken.get(name, {}))
            found.append(known)
        return found
