"""One replica's output as the store keeps it: its chunks, and whether more will come."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from verderer.api.runs.found import the_run, the_step
from verderer.core.errors import NotFound
from verderer.core.model.actor import Actor
from verderer.core.model.attempt import AttemptKey, AttemptState
from verderer.core.model.places import log_prefix
from verderer.objects.log_chunks import ChunkInfo, ChunkSource
from verderer.store.database import Tx
from verderer.store.views.logs import LogChunk, list_log_chunks, list_replicas
from verderer.store.views.run_parts import RunHead
from verderer.store.views.steps import AttemptRow, StepRow, list_attempts

_CACHE_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """The output of one replica of one attempt as it stands."""

    step: StepRow
    attempt: AttemptRow | None
    """None: there is no attempt yet."""
    replica: int
    infos: Sequence[ChunkInfo]
    complete: bool
    """Nothing of this replica follows."""

    @property
    def over(self) -> bool:
        """Whether the attempt has ended, or there will be none."""
        if self.attempt is None:
            return self.step.state.over
        return self.attempt.state.over

    @property
    def cut_off(self) -> bool:
        """Whether the attempt is over and the end of its output never came."""
        if self.attempt is None or not self.over or self.complete:
            return False
        return bool(self.infos) or self.attempt.state is AttemptState.LOST

    @property
    def awaited(self) -> bool:
        """Whether the attempt is over and its cluster will still deliver the rest."""
        one = self.attempt
        if one is None or not self.over or self.complete or one.state is AttemptState.LOST:
            return False
        began = bool(self.infos) or one.started_at is not None
        return began and not one.settled and not one.offline

    @property
    def end_note(self) -> str:
        """What to say below the last line that is here; empty when it is the last of all."""
        if not self.cut_off:
            return ""
        if self.awaited:
            return "the attempt is over and the rest of its output is on its way"
        one = self.attempt
        if one is not None and one.offline and one.state is not AttemptState.LOST:
            return f"the rest of the output is with cluster {one.cluster_id}, which is silent"
        return "the end of the output was never received"


async def read_output(
    tx: Tx,
    actor: Actor,
    run: RunHead,
    step: StepRow,
    *,
    number: int | None,
    replica: int,
    from_sequence: int = 0,
) -> Output:
    """The chunks of attempt `number` (None: the newest) as they are now, from `from_sequence` on.

    Raises:
        NotFound: there is no such attempt.
    """
    attempts = {a.number: a for a in await list_attempts(tx, actor.scope, run.id, step.idx)}
    if number is None:
        number = max(attempts, default=0)
    elif number not in attempts:
        raise NotFound(f"step {step.name} has no attempt {number}")
    chunks: list[LogChunk] = []
    if number:
        chunks = await list_log_chunks(
            tx, actor.scope, run.id, step.idx, number, replica, from_sequence=from_sequence
        )
    prefix = log_prefix(run.project, AttemptKey(run.id, step.idx, number))
    return Output(
        step=step,
        attempt=attempts.get(number),
        replica=replica,
        infos=[ChunkInfo.below(prefix, chunk) for chunk in chunks],
        complete=any(chunk.complete for chunk in chunks),
    )


async def find_output(
    tx: Tx, actor: Actor, run: str, step: str, number: int | None, replica: int
) -> tuple[RunHead, Output]:
    """The same by the names in an address.

    Raises:
        NotFound: there is no such run, step or attempt for this actor.
    """
    head = await the_run(tx, actor, run)
    found = await the_step(tx, actor, head, step)
    return head, await read_output(tx, actor, head, found, number=number, replica=replica)


async def replicas_of(tx: Tx, actor: Actor, run: RunHead, output: Output) -> int:
    """How many replicas the attempt has: one for each node."""
    if output.attempt is None:
        return output.step.nodes
    seen = await list_replicas(tx, actor.scope, run.id, output.step.idx, output.attempt.number)
    return max([output.step.nodes, *(r.replica + 1 for r in seen)])


def source_of(state: Any) -> ChunkSource:
    """The application's reader of chunks, made when it is first needed."""
    if "log_source" not in state:
        state.log_source = ChunkSource(state.objects, cache_bytes=_CACHE_BYTES)
    source: ChunkSource = state.log_source
    return source
