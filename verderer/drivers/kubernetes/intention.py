"""Our own object in the cluster: what is owed, what became of it, and whether it must stop.

One per attempt, named by its key, made before anything else of it and deleted last. Its
specification holds the very Job that is to be made, so that a later life of the agent can make it
without having been told anything; its status holds the end once that is decided, and an end that
stands there is never decided again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from verderer.core.model.attempt import AttemptKey, AttemptState, End, EndCause
from verderer.drivers.contract import Order, Stored
from verderer.drivers.kubernetes import naming
from verderer.drivers.kubernetes.seen.clocks import rfc3339, unix_ms
from verderer.drivers.kubernetes.seen.sights import Meta, Seen


class Stop(Seen, frozen=True):
    """The wish that it ends."""

    cause: str = EndCause.CANCELLED.value
    message: str = ""
    grace_seconds: float = 0.0
    at: str = ""


class Named(Seen, frozen=True):
    """A declared output."""

    name: str = ""
    key: str = ""


class Kept(Seen, frozen=True):
    """A stored output."""

    name: str = ""
    key: str = ""
    size: int = 0
    files: int = 1
    sha256: str = ""


class Spec(Seen, frozen=True):
    """All but the Job, which is read only when it has to be made."""

    attempt: str = ""
    namespace: str = ""
    nodes: int = 1
    timeout_seconds: float | None = None
    grace_seconds: float = 30.0
    secret: bool = False
    """A Secret of the attempt's name belongs to it."""
    stop: Stop | None = None
    outputs: tuple[Named, ...] = ()
    """What its carrier stores."""


class Ended(Seen, frozen=True):
    cause: str = ""
    exit_code: int | None = None
    signal: int | None = None
    message: str = ""


class Status(Seen, frozen=True):
    phase: str = ""
    node: str = ""
    reason: str = ""
    message: str = ""
    job_uid: str = ""
    started_at: str = ""
    ended_at: str = ""
    end: Ended | None = None
    outputs: tuple[Kept, ...] = ()


class Intention(Seen, frozen=True):
    metadata: Meta = Meta()
    spec: Spec = Spec()
    status: Status = Status()

    @property
    def key(self) -> AttemptKey | None:
        """The attempt, or None for an object of somebody else."""
        if self.metadata.label(naming.MANAGED_BY) != naming.US:
            return None
        try:
            return AttemptKey.parse(self.metadata.name)
        except ValueError:
            return None

    @property
    def end(self) -> End | None:
        """How it ended, once that is decided."""
        ended = self.status.end
        if ended is None:
            return None
        cause = EndCause(ended.cause) if ended.cause in _CAUSES else EndCause.LOST
        return End(
            cause=cause, exit_code=ended.exit_code, signal=ended.signal, message=ended.message
        )

    @property
    def stored(self) -> tuple[Stored, ...]:
        """What was stored, once its end is decided."""
        return tuple(
            Stored(name=one.name, key=one.key, size=one.size, files=one.files, sha256=one.sha256)
            for one in self.status.outputs
        )

    @property
    def started_ms(self) -> int | None:
        return unix_ms(self.status.started_at)

    @property
    def ended_ms(self) -> int | None:
        return unix_ms(self.status.ended_at)


_CAUSES = frozenset(cause.value for cause in EndCause)

PHASES: Mapping[AttemptState, str] = {state: state.value.capitalize() for state in AttemptState}


class Blueprint(Seen, frozen=True):
    """What is still to be made of an intention: manifests as they were written."""

    job: dict[str, Any] | None = None
    service: dict[str, Any] | None = None


class Blueprinted(Seen, frozen=True):
    """An intention read for its manifests."""

    metadata: Meta = Meta()
    spec: Blueprint = Blueprint()


def document(
    order: Order,
    namespace: str,
    job: Mapping[str, Any],
    *,
    service: Mapping[str, Any] | None,
    secret: bool,
) -> dict[str, Any]:
    """The object of a new attempt. `secret`: a Secret of its name stands in its namespace."""
    spec: dict[str, Any] = {
        "attempt": str(order.key),
        "project": order.project,
        "runName": order.run_name,
        "step": order.step,
        "number": order.key.number,
        "namespace": namespace,
        "nodes": order.nodes,
        "graceSeconds": order.grace_s,
        "secret": secret,
        "job": job,
    }
    if order.timeout_s is not None:
        spec["timeoutSeconds"] = order.timeout_s
    if service is not None:
        spec["service"] = service
    if order.outputs:
        spec["outputs"] = [{"name": one.name, "key": one.key} for one in order.outputs]
    labels = {
        naming.RUN: f"{order.key.run:016x}",
        naming.PROJECT: naming.label_value(order.project),
    }
    return _wrapped(order.key, spec, labels)


def barred(key: AttemptKey, stop: Mapping[str, Any]) -> dict[str, Any]:
    """The object of an attempt that must never start."""
    spec = {"attempt": str(key), "number": key.number, "nodes": 1, "stop": stop}
    return _wrapped(key, spec, {naming.RUN: f"{key.run:016x}"})


def stop(cause: EndCause, *, grace_s: float, at_ms: int, message: str = "") -> dict[str, Any]:
    """The wish that it ends, for `spec.stop`."""
    return {
        "cause": cause.value,
        "message": message,
        "graceSeconds": max(0.0, grace_s),
        "at": rfc3339(at_ms),
    }


def ended_status(end: End, *, ended_ms: int, stored: Sequence[Stored] = ()) -> dict[str, Any]:
    """The part of a status that says how it ended."""
    outputs = [
        {
            "name": one.name,
            "key": one.key,
            "size": one.size,
            "files": one.files,
            "sha256": one.sha256,
        }
        for one in stored
    ]
    return {
        **({"outputs": outputs} if outputs else {}),
        "phase": PHASES[end.state],
        "reason": end.cause.value,
        "message": end.message,
        "endedAt": rfc3339(ended_ms),
        "end": {
            "cause": end.cause.value,
            "exitCode": end.exit_code,
            "signal": end.signal,
            "message": end.message,
        },
    }


def whole_seconds(seconds: float) -> int:
    """Kubernetes counts whole seconds, at least one."""
    return max(1, math.ceil(seconds))


def _wrapped(key: AttemptKey, spec: Mapping[str, Any], labels: Mapping[str, str]) -> dict[str, Any]:
    return {
        "apiVersion": f"{naming.GROUP}/{naming.VERSION}",
        "kind": naming.KIND,
        "metadata": {
            "name": str(key),
            "labels": {naming.MANAGED_BY: naming.US, **labels},
        },
        "spec": dict(spec),
    }
