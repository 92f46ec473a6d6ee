"""What lies behind the end of an attempt, where something tells: one code, sentence and remedy.

The cause says what happened (`exit`, `oom`, `lost`, …); the finding says why, as far as the
cluster's words or the program's last lines give it away. Signs are texts that runtimes, kernels
and clusters print literally; what no rule knows stays without a finding, and is never guessed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple

from verderer.core.model.attempt import End, EndCause

TAIL_BYTES: Final = 16 * 1024
"""Signs stand at the end of what a failing program prints."""
TAIL_LINES: Final = 200


class Finding(StrEnum):
    """What lies behind an end."""

    NODE_MEMORY = "node_memory"  # the node ran out of memory, not the step out of its limit
    NODE_DISK = "node_disk"  # the node ran out of disk
    STORAGE_LIMIT = "storage_limit"  # it wrote more than its own limit of local storage
    EVICTED = "evicted"  # the cluster took it from its node, as for a drain
    PREEMPTED = "preempted"  # it made room for more important work
    NODE_LOST = "node_lost"  # its node failed, went away or was shut down
    REMOVED = "removed"  # somebody removed it on the cluster, past the platform
    DEVICE_GONE = "device_gone"  # the node could not give it its devices any more
    IMAGE = "image"  # its image cannot be pulled or does not exist
    COMMAND = "command"  # its command does not exist or cannot be executed
    WRONG_ARCH = "wrong_arch"  # it was built for another kind of processor
    RULES = "rules"  # the cluster's rules refused it
    CUDA_DRIVER = "cuda_driver"  # its CUDA is newer than the node's driver can run
    CUDA_ARCH = "cuda_arch"  # it was not built for this model of GPU
    GPU_MEMORY = "gpu_memory"  # the memory of its GPU was not enough
    MIG_MEMORY = "mig_memory"  # the memory of its slice of a GPU was not enough
    NO_GPU = "no_gpu"  # it looked for a GPU and saw none
    GPU_FAULT = "gpu_fault"  # the GPU itself failed
    COLLECTIVE = "collective"  # its replicas lost touch with each other
    DISK_FULL = "disk_full"  # a disk that it wrote to was full


class Advice(NamedTuple):
    """What to tell people about a finding."""

    sentence: str
    remedy: str


ADVICE: Final[Mapping[Finding, Advice]] = MappingProxyType(
    {
        Finding.NODE_MEMORY: Advice(
            "its node ran out of memory",
            "request as much memory as it uses, so that it goes where there is room",
        ),
        Finding.NODE_DISK: Advice(
            "its node ran out of disk",
            "request ephemeral-storage for what it writes, or have the node's disk cleared",
        ),
        Finding.STORAGE_LIMIT: Advice(
            "it wrote more than its limit of local storage",
            "raise its ephemeral-storage, or write to an output",
        ),
        Finding.EVICTED: Advice(
            "the cluster took it from its node, as when that is drained",
            "give the step retries, so that it starts again elsewhere",
        ),
        Finding.PREEMPTED: Advice(
            "it made room for more important work",
            "give the step retries, or a higher priority on the cluster",
        ),
        Finding.NODE_LOST: Advice(
            "its node failed, went away or was shut down",
            "give the step retries, so that it starts again elsewhere; look at the node",
        ),
        Finding.REMOVED: Advice(
            "somebody removed it on the cluster, past the platform",
            "cancel runs here instead; the cluster's own log says who it was",
        ),
        Finding.DEVICE_GONE: Advice(
            "its node could not give it its devices any more",
            "retry it; a device that stays away needs a look at the node",
        ),
        Finding.IMAGE: Advice(
            "its image cannot be pulled",
            "correct the image's name, or give the cluster access to its registry",
        ),
        Finding.COMMAND: Advice(
            "its command does not exist there or cannot be executed",
            "correct the command, or take an image that has it",
        ),
        Finding.WRONG_ARCH: Advice(
            "it was built for another kind of processor",
            "build the image for the nodes' architecture",
        ),
        Finding.RULES: Advice(
            "the cluster's rules refused it",
            "change the step, or have an admin of the cluster change the rule",
        ),
        Finding.CUDA_DRIVER: Advice(
            "its CUDA is newer than the node's driver can run",
            "take an image with an older CUDA, or have the node's driver updated",
        ),
        Finding.CUDA_ARCH: Advice(
            "it was not built for this model of GPU",
            "take a build that supports the GPU, or ask for another model",
        ),
        Finding.GPU_MEMORY: Advice(
            "the memory of its GPU was not enough",
            "make the batch or the model smaller, or ask for a GPU with more memory",
        ),
        Finding.MIG_MEMORY: Advice(
            "the memory of its slice of a GPU was not enough",
            "ask for a larger MIG profile or a whole GPU, or make the batch smaller",
        ),
        Finding.NO_GPU: Advice(
            "it looked for a GPU and saw none",
            "request one, such as nvidia.com/gpu: 1, and take an image that can use it",
        ),
        Finding.GPU_FAULT: Advice(
            "the GPU itself failed",
            "retry it elsewhere, and have the node's GPU looked at",
        ),
        Finding.COLLECTIVE: Advice(
            "its replicas lost touch with each other",
            "look which replica ended first; if none did, have the network looked at",
        ),
        Finding.DISK_FULL: Advice(
            "a disk that it wrote to was full",
            "write less, or ask for more ephemeral-storage",
        ),
    }
)

# Of what a program prints, and of what a container runtime says. The first that is found counts.
_SIGNS: Final = tuple(
    (finding, re.compile(pattern))
    for finding, pattern in (
        (
            Finding.CUDA_DRIVER,
            rb"CUDA driver version is insufficient for CUDA runtime version"
            rb"|NVIDIA driver on your system is too old"
            rb"|requirement error: unsatisfied condition: (?:cuda|driver)"
            rb"|cudaErrorInsufficientDriver|CUDA_ERROR_UNSUPPORTED_PTX_VERSION"
            rb"|PTX was compiled with an unsupported toolchain"
            rb"|forward compatibility was attempted on non supported HW",
        ),
        (
            Finding.CUDA_ARCH,
            rb"no kernel image is available for execution on the device"
            rb"|cudaErrorNoKernelImageForDevice|CUDA_ERROR_NO_BINARY_FOR_GPU",
        ),
        (
            Finding.GPU_FAULT,
            rb"uncorrectable (?:NVLink error|ECC error)|CUDA_ERROR_ECC_UNCORRECTABLE"
            rb"|GPU is lost|has fallen off the bus|NVRM: Xid",
        ),
        (
            Finding.GPU_MEMORY,
            rb"CUDA out of memory|CUDA error: out of memory|CUDA_ERROR_OUT_OF_MEMORY"
            rb"|torch\.(?:cuda\.)?OutOfMemoryError|cudaErrorMemoryAllocation"
            rb"|RESOURCE_EXHAUSTED: Out of memory|HIP out of memory",
        ),
        (
            Finding.NO_GPU,
            rb"No CUDA GPUs are available|no CUDA-capable device is detected"
            rb"|Found no NVIDIA driver on your system",
        ),
        (
            Finding.COLLECTIVE,
            rb"Watchdog caught collective operation timeout|ncclSystemError|ncclRemoteError"
            rb"|NCCL communicator was aborted",
        ),
        (Finding.WRONG_ARCH, rb"[Ee]xec format error"),
        (Finding.DISK_FULL, rb"No space left on device|ENOSPC|Disk quota exceeded"),
    )
)
# Of what clusters, and our drivers for them, say about an end.
_WORDS: Final = tuple(
    (finding, re.compile(pattern))
    for finding, pattern in (
        (Finding.STORAGE_LIMIT, r"ephemeral local storage usage exceeds|local ephemeral storage"),
        (Finding.NODE_MEMORY, r"low on resource: memory|machine ran out of memory"),
        (Finding.NODE_DISK, r"low on resource: (?:ephemeral-storage|inodes|nodefs|imagefs)"),
        (Finding.PREEMPTED, r"more important pod|gave its place to another job"),
        (
            Finding.NODE_LOST,
            r"its node (?:was lost|was shut down|became unusable|is gone)|a node failed"
            r"|the machine was restarted",
        ),
        (Finding.EVICTED, r"the node evicted it|evicted, as when|the cluster took its pod away"),
        (
            Finding.REMOVED,
            r"was deleted by somebody else|cancelled the job in Slurm|back into Slurm's queue",
        ),
        (
            Finding.DEVICE_GONE,
            r"UnexpectedAdmissionError|[Aa]llocate failed due to|could not align its devices",
        ),
        (
            Finding.IMAGE,
            r"ErrImagePull|ImagePullBackOff|InvalidImageName|ErrImageNeverPull|ImageInspectError"
            r"|SignatureValidationFailed|RegistryUnavailable",
        ),
        (
            Finding.COMMAND,
            r"command not found|permission denied: |executable file not found"
            r"|interpreter named in its first line|no such file or directory: unknown",
        ),
        (
            Finding.RULES,
            r"violates PodSecurity|denied the request|is forbidden|exceeded quota",
        ),
    )
)
_SIGNS_OF: Final = frozenset({EndCause.EXIT, EndCause.SIGNAL, EndCause.START, EndCause.OUTPUT})


def read_signs(data: bytes) -> Finding | None:
    """The first sign of trouble among the last `TAIL_BYTES` of what a program printed."""
    tail = data[-TAIL_BYTES:]
    return next((finding for finding, sign in _SIGNS if sign.search(tail)), None)


def diagnose(end: End) -> Finding | None:
    """What the words about an end give away; None for a success and for what nothing tells of."""
    if not end.message or end.cause is EndCause.TIMEOUT:
        return None
    if end.cause is EndCause.CANCELLED and "in Slurm" not in end.message:
        return None
    found = next((finding for finding, words in _WORDS if words.search(end.message)), None)
    if end.cause in _SIGNS_OF:
        return read_signs(end.message.encode("utf-8", "replace")) or found
    return found


def of_devices(finding: Finding | None, resources: Iterable[str]) -> Finding | None:
    """The finding for a step that asked for `resources`: a slice of a GPU is no whole one."""
    if finding is Finding.GPU_MEMORY and any("/mig-" in name for name in resources):
        return Finding.MIG_MEMORY
    return finding


def find(end: End, last: bytes, resources: Iterable[str]) -> Finding | None:
    """What lies behind the end of a step that asked for `resources`.

    `last` is what the program printed at its end, where that `may_tell` more; empty where not.
    """
    return of_devices(diagnose(end) or read_signs(last), resources)


def may_tell(end: End) -> bool:
    """Whether the program's last lines could say what the words about its end do not."""
    return end.cause in _SIGNS_OF and end.exit_code != 0 and diagnose(end) is None
