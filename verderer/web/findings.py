"""What lies behind the end of an attempt, and what helps, in the reader's language."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from verderer.core.diagnosis import Finding, find, may_tell
from verderer.core.model.attempt import AttemptKey, AttemptState
from verderer.core.model.places import log_prefix
from verderer.objects.log_chunks import ChunkInfo
from verderer.objects.log_reading import last_lines
from verderer.store.views.logs import list_log_chunks
from verderer.store.views.steps import AttemptRow, StepRow
from verderer.web.language import N_, Language
from verderer.web.parts import Parts
from verderer.web.visitor import Visitor

WORDS: Final[Mapping[Finding, tuple[str, str]]] = {
    Finding.NODE_MEMORY: (
        N_("its node ran out of memory"),
        N_("request as much memory as it uses, so that it goes where there is room"),
    ),
    Finding.NODE_DISK: (
        N_("its node ran out of disk"),
        N_("request ephemeral-storage for what it writes, or have the node's disk cleared"),
    ),
    Finding.STORAGE_LIMIT: (
        N_("it wrote more than its limit of local storage"),
        N_("raise its ephemeral-storage, or write to an output"),
    ),
    Finding.EVICTED: (
        N_("the cluster took it from its node, as when that is drained"),
        N_("give the step retries, so that it starts again elsewhere"),
    ),
    Finding.PREEMPTED: (
        N_("it made room for more important work"),
        N_("give the step retries, or a higher priority on the cluster"),
    ),
    Finding.NODE_LOST: (
        N_("its node failed, went away or was shut down"),
        N_("give the step retries, so that it starts again elsewhere; look at the node"),
    ),
    Finding.REMOVED: (
        N_("somebody removed it on the cluster, past the platform"),
        N_("cancel runs here instead; the cluster's own log says who it was"),
    ),
    Finding.DEVICE_GONE: (
        N_("its node could not give it its devices any more"),
        N_("retry it; a device that stays away needs a look at the node"),
    ),
    Finding.IMAGE: (
        N_("its image cannot be pulled"),
        N_("correct the image's name, or give the cluster access to its registry"),
    ),
    Finding.COMMAND: (
        N_("its command does not exist there or cannot be executed"),
        N_("correct the command, or take an image that has it"),
    ),
    Finding.WRONG_ARCH: (
        N_("it was built for another kind of processor"),
        N_("build the image for the nodes' architecture"),
    ),
    Finding.RULES: (
        N_("the cluster's rules refused it"),
        N_("change the step, or have an admin of the cluster change the rule"),
    ),
    Finding.CUDA_DRIVER: (
        N_("its CUDA is newer than the node's driver can run"),
        N_("take an image with an older CUDA, or have the node's driver updated"),
    ),
    Finding.CUDA_ARCH: (
        N_("it was not built for this model of GPU"),
        N_("take a build that supports the GPU, or ask for another model"),
    ),
    Finding.GPU_MEMORY: (
        N_("the memory of its GPU was not enough"),
        N_("make the batch or the model smaller, or ask for a GPU with more memory"),
    ),
    Finding.MIG_MEMORY: (
        N_("the memory of its slice of a GPU was not enough"),
        N_("ask for a larger MIG profile or a whole GPU, or make the batch smaller"),
    ),
    Finding.NO_GPU: (
        N_("it looked for a GPU and saw none"),
        N_("request one, such as nvidia.com/gpu: 1, and take an image that can use it"),
    ),
    Finding.GPU_FAULT: (
        N_("the GPU itself failed"),
        N_("retry it elsewhere, and have the node's GPU looked at"),
    ),
    Finding.COLLECTIVE: (
        N_("its replicas lost touch with each other"),
        N_("look which replica ended first; if none did, have the network looked at"),
    ),
    Finding.DISK_FULL: (
        N_("a disk that it wrote to was full"),
        N_("write less, or ask for more ephemeral-storage"),
    ),
}


class Behind(NamedTuple):
    """A finding in words."""

    sentence: str
    remedy: str


def behind(finding: Finding | None, language: Language) -> Behind | None:
    """The words of a finding."""
    if finding is None:
        return None
    sentence, remedy = WORDS[finding]
    return Behind(language.gettext(sentence), language.gettext(remedy))


async def find_behind(
    parts: Parts,
    here: Visitor,
    project: int,
    key: AttemptKey,
    step: StepRow,
    attempt: AttemptRow | None,
) -> Behind | None:
    """What lies behind the failure of an attempt; its last lines are read where they may tell."""
    end = attempt.end if attempt is not None else None
    if attempt is None or end is None or attempt.state is AttemptState.SUCCEEDED:
        return None
    last = b""
    if may_tell(end):
        last = await last_lines(parts.logs, await _chunks(parts, here, project, key))
    return behind(find(end, last, step.requests), here.language)


async def _chunks(parts: Parts, here: Visitor, project: int, key: AttemptKey) -> list[ChunkInfo]:
    """Of the first replica's output."""
    async with parts.ctx.db.reading() as tx:
        chunks = await list_log_chunks(tx, here.who.scope, key.run, key.step, key.number)
    prefix = log_prefix(project, key)
    return [ChunkInfo.below(prefix, chunk) for chunk in chunks]
