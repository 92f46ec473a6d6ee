"""What the carriers of a step left behind: how the program's container is found beside them, what
was stored, and whose failure a failure is. Pure and total.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from verderer.core.model.attempt import End, EndCause
from verderer.drivers.contract import Stored
from verderer.drivers.kubernetes import naming
from verderer.drivers.kubernetes.intention import Named
from verderer.drivers.kubernetes.seen.sights import ContainerState, Pod, TerminatedState


class Carried(msgspec.Struct, frozen=True):
    """The last words of a carrier, as `wire.carry.Carried` writes them."""

    outputs: tuple[tuple[int, int, str, bool], ...] = ()
    """Bytes, files, SHA-256, and whether it is a folder."""
    error: str = ""


CAUSES: Final = {naming.FETCH: EndCause.START, naming.STORE: EndCause.OUTPUT}
_WORDS: Final = {
    naming.FETCH: "its inputs could not be fetched",
    naming.STORE: "it succeeded, and its outputs could not be stored",
}
_decode: Final = msgspec.json.Decoder(Carried).decode


def state_of(pod: Pod, name: str) -> ContainerState | None:
    """The state of one of its containers, wherever it stands; None when nothing is said yet."""
    for statuses in (pod.status.container_statuses, pod.status.init_container_statuses):
        for one in statuses or ():
            if one.name == name:
                return one.state
    return None


def carrier_end(pod: Pod) -> End | None:
    """The end that the failure of a carrier is; None when none has failed."""
    for name in CAUSES:
        state = state_of(pod, name)
        if state is not None and state.terminated is not None and state.terminated.exit_code:
            return _failed(name, state.terminated)
    return None


def failed_by_name(name: str, code: int) -> End | None:
    """The same, when nothing is left but the Job's word for it."""
    if name not in CAUSES:
        return None
    return _failed(name, TerminatedState(exit_code=code))


def stored(pod: Pod, outputs: Sequence[Named]) -> tuple[Stored, ...] | None:
    """What the pod's carrier says it has stored; None when that cannot be read."""
    state = state_of(pod, naming.STORE)
    if state is None or state.terminated is None:
        return None
    rows = _read(state.terminated.message).outputs
    if len(rows) != len(outputs):
        return None
    return tuple(
        Stored(
            name=one.name,
            key=f"{one.key.rstrip('/')}/" if folder else one.key,
            size=size,
            files=files,
            sha256=digest,
        )
        for one, (size, files, digest, folder) in zip(outputs, rows, strict=True)
    )


def _failed(name: str, ended: TerminatedState) -> End:
    words = _WORDS[name]
    if ended.reason == "OOMKilled":
        said = "the carrier had too little memory"
    else:
        said = _read(ended.message).error or ended.reason or f"exit code {ended.exit_code}"
    exit_code = 0 if name == naming.STORE else None
    return End(cause=CAUSES[name], exit_code=exit_code, message=f"{words}: {said}")


def _read(message: str | None) -> Carried:
    try:
        return _decode(message or "{}")
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return Carried()
