"""Where the steps of a new run stand before anything has happened."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from verderer.core.model.step import StepState
from verderer.core.pipeline.expand import Instance
from verderer.core.pipeline.expressions import combined_state
from verderer.core.pipeline.spec import DEFAULT_WHEN, Pipeline
from verderer.core.progress import Over, after_needs


@dataclass(frozen=True, slots=True)
class Opening:
    """The first state of one instance."""

    state: StepState
    waits: int = 0
    """Instances that it needs and that are not over."""
    note: str = ""


def open_run(
    pipeline: Pipeline,
    instances: Sequence[Instance],
    edges: Sequence[tuple[int, int]],
    parameters: Mapping[str, str],
) -> list[Opening]:
    """Where each of `instances` stands: ready, blocked, or skipped since its `when` is false.

    A step that is skipped at once may let its successors be decided at once, and so on.
    """
    waits = [0] * len(instances)
    for _, after in edges:
        waits[after] += 1
    if all(step.when == DEFAULT_WHEN for step in pipeline.steps):
        return [_waiting(n) for n in waits]
    return _decide(pipeline, instances, edges, parameters, waits)


def _waiting(waits: int) -> Opening:
    return Opening(StepState.BLOCKED, waits) if waits else Opening(StepState.READY)


def _decide(
    pipeline: Pipeline,
    instances: Sequence[Instance],
    edges: Sequence[tuple[int, int]],
    parameters: Mapping[str, str],
    waits: list[int],
) -> list[Opening]:
    before: defaultdict[int, list[int]] = defaultdict(list)
    after: defaultdict[int, list[int]] = defaultdict(list)
    for first, second in edges:
        before[second].append(first)
        after[first].append(second)
    opened: dict[int, Opening] = {}
    undecided = deque(i for i, n in enumerate(waits) if n == 0)
    while undecided:
        i = undecided.popleft()
        found = after_needs(
            pipeline.steps[instances[i].template],
            parameters=parameters,
            matrix=dict(instances[i].matrix),
            needs=_needs(pipeline, instances, before[i], opened),
        )
        if not isinstance(found, Over):
            opened[i] = Opening(StepState.READY)
            continue
        opened[i] = Opening(found.state, note=found.note)
        for successor in after[i]:
            waits[successor] -= 1
            if waits[successor] == 0:
                undecided.append(successor)
    return [opened.get(i) or _waiting(n) for i, n in enumerate(waits)]


def _needs(
    pipeline: Pipeline,
    instances: Sequence[Instance],
    needed: Sequence[int],
    opened: Mapping[int, Opening],
) -> dict[str, StepState]:
    states: defaultdict[str, list[StepState]] = defaultdict(list)
    for i in needed:
        states[pipeline.steps[instances[i].template].name].append(opened[i].state)
    return {name: combined_state(found) for name, found in states.items()}
