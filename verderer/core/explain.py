"""Why a step waits: coded, with numbers, and the nearest change that would start it.

The codes are stable; pages translate them, `docs/reference/reasons.md` lists them. Why a cluster
lets wait what it was given already is said by the cluster, see `core.model.waiting`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from verderer.core.governance.model import Account
from verderer.core.model.cluster import Place
from verderer.core.model.resources import Resources, format_quantity


class Why(StrEnum):
    """Why a step does not start on a cluster, or at all."""

    NEEDS = "needs"  # steps that it needs are not over
    BACKOFF = "backoff"  # a failed attempt is followed by a pause
    PLACING = "placing"  # just became ready; the scheduler has not looked at it yet
    NO_SCHEDULER = "no_scheduler"  # nothing places steps: no scheduler process leads
    NO_CLUSTER = "no_cluster"  # no cluster is connected
    DISABLED = "disabled"  # an admin took the cluster out
    OFFLINE = "offline"  # its agent is silent
    FENCE = "fence"  # its cluster is silent; it starts elsewhere once it is sure to have stopped
    NO_FENCE = "no_fence"  # its cluster is silent, and nobody promises that it is stopped there
    UNFIT = "unfit"  # a check that work depends on does not pass beside the cluster
    NO_SUCH_RESOURCE = "no_such_resource"  # the cluster has none of what is asked
    NODE_TOO_SMALL = "node_too_small"  # no single node is large enough
    CLUSTER_TOO_SMALL = "cluster_too_small"  # all of its nodes together are too few
    NOT_GRANTED = "not_granted"  # its project may not use its resource group any more
    OVER_QUOTA = "over_group_quota"  # more than the whole quota of its resource group
    QUOTA = "group_quota"  # the quota of its resource group is reserved by other steps
    OTHERS = "others"  # work that the platform does not run holds what it needs
    KEPT = "kept"  # what is free is kept for a step that has waited longer
    CAPACITY = "capacity"  # enough exists, other steps use it now
    ASSIGNED = "assigned"  # given to a cluster, whose agent has not taken it up yet
    STARTING = "starting"  # its agent has it: files are fetched, or the cluster makes it


NEVER = frozenset({Why.NO_SUCH_RESOURCE, Why.NODE_TOO_SMALL, Why.CLUSTER_TOO_SMALL, Why.OVER_QUOTA})
"""Waiting alone cannot help: the request or the cluster must change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """One "no", for one cluster or for all (`cluster` empty)."""

    why: Why
    cluster: str = ""
    group: str = ""
    """The resource group whose rule it is; empty: none's."""
    resource: str = ""
    asked: int = 0
    """On one node when the node is too small, else in all; milli-units or bytes."""
    free: int = 0
    total: int = 0
    foreign: int = 0
    """Of what would be there, held by work that the platform does not run."""
    seconds: float = 0.0
    """Of silence, or until a pause or a fence is over."""
    others: tuple[str, ...] = field(default=())
    """Names of the steps that are waited for, or of the check that does not pass."""

    @property
    def missing(self) -> int:
        """What has to be added for it to start: to the quota where that is too small, else free."""
        return max(0, self.asked - (self.total if self.why is Why.OVER_QUOTA else self.free))

    @property
    def message(self) -> str:
        """The reason as one English sentence with its numbers."""
        return _sentence(self)

    @property
    def change(self) -> str:
        """The nearest change that would start it, as one English sentence; may be empty."""
        return _change(self)

    def as_dict(self) -> dict[str, object]:
        """Plain values for a row; zero and empty ones are left out."""
        found: dict[str, object] = {"why": self.why.value}
        for name in (
            "cluster",
            "group",
            "resource",
            "asked",
            "free",
            "total",
            "foreign",
            "seconds",
        ):
            if value := getattr(self, name):
                found[name] = value
        if self.others:
            found["others"] = list(self.others)
        return found

    @classmethod
    def from_dict(cls, found: Mapping[str, object]) -> Reason:
        """Read what `as_dict` gave."""
        values = dict(found)
        others = values.pop("others", ())
        why = Why(str(values.pop("why")))
        return cls(why=why, others=tuple(others), **values)  # type: ignore[arg-type]


def why_not(requests: Resources, nodes: int, place: Place, left: Mapping[str, int]) -> Reason:
    """Why `requests` on each of `nodes` nodes does not start at `place` with `left` free there.

    The hardest obstacle is named first: what can never work before what waiting may solve.
    """
    if not place.enabled:
        return Reason(why=Why.DISABLED, cluster=place.name)
    if place.unfit:
        return Reason(why=Why.UNFIT, cluster=place.name, others=(place.unfit,))
    if not place.online:
        return Reason(why=Why.OFFLINE, cluster=place.name, seconds=round(place.silent_s))
    worst: Reason | None = None
    for resource, amount in requests.items():
        found = _obstacle(resource, amount, nodes, place, left)
        if found and (worst is None or _HARDNESS[found.why] < _HARDNESS[worst.why]):
            worst = found
    return worst or Reason(why=Why.PLACING, cluster=place.name)


def over_quota(total: Resources, group: str, accounts: Mapping[str, Account]) -> Reason | None:
    """What of a resource group's quota keeps a step that asks `total` away, the hardest first."""
    worst: Reason | None = None
    for resource, amount in total.items():
        account = accounts.get(resource)
        if account is None or account.quota is None or account.quota - account.reserved >= amount:
            continue
        whole = account.quota < amount
        if worst is None or (whole and worst.why is Why.QUOTA):
            worst = Reason(
                why=Why.OVER_QUOTA if whole else Why.QUOTA,
                group=group,
                resource=resource,
                asked=amount,
                free=max(0, account.quota - account.reserved),
                total=account.quota,
            )
    return worst


_HARDNESS = {
    Why.NO_SUCH_RESOURCE: 0,
    Why.NODE_TOO_SMALL: 1,
    Why.CLUSTER_TOO_SMALL: 2,
    Why.OTHERS: 3,
    Why.KEPT: 4,
    Why.CAPACITY: 4,
}
_ORDER = {why: place for place, why in enumerate(Why)} | {Why.PLACING: len(Why)}


def nearest_first(reasons: Iterable[Reason]) -> list[Reason]:
    """What a resource group's rules say, then clusters, that which lacks the least part first."""
    return sorted(reasons, key=_distance)


def _distance(reason: Reason) -> tuple[bool, int, float]:
    missing = max(0, reason.asked - reason.free) / reason.asked if reason.asked else 0.0
    return not reason.group, -_ORDER[reason.why], missing


def _obstacle(
    resource: str, amount: int, nodes: int, place: Place, left: Mapping[str, int]
) -> Reason | None:
    room = place.rooms.get(resource)
    if room is None or room.whole == 0:
        return Reason(why=Why.NO_SUCH_RESOURCE, cluster=place.name, resource=resource, asked=amount)
    asked, free, total = amount * nodes, left.get(resource, 0), room.whole
    biggest = max(room.biggest, room.largest)
    if biggest < amount:
        why, asked, total = Why.NODE_TOO_SMALL, amount, biggest
    elif room.whole < asked:
        why = Why.CLUSTER_TOO_SMALL
    elif room.largest < amount:
        why, asked, free, total = Why.OTHERS, amount, room.largest, biggest
    elif room.allocatable < asked:
        why = Why.OTHERS
    elif free < asked:
        why = Why.CAPACITY
    else:
        return None
    return Reason(
        why=why,
        cluster=place.name,
        resource=resource,
        asked=asked,
        free=free,
        total=total,
        foreign=room.others,
    )


def _sentence(r: Reason) -> str:  # noqa: C901 - one line for each code
    def amount(value: int) -> str:
        return f"{format_quantity(value, resource=r.resource)} {r.resource}"

    match r.why:
        case Why.NEEDS:
            return f"waits for {', '.join(r.others)}"
        case Why.BACKOFF:
            return f"the last attempt failed; the next one starts in {r.seconds:.0f} s"
        case Why.PLACING:
            return "was just queued; the scheduler looks at it next"
        case Why.NO_SCHEDULER:
            return f"no scheduler has led for {r.seconds:.0f} s"
        case Why.NO_CLUSTER if r.group:
            return f"resource group {r.group} has no cluster"
        case Why.NO_CLUSTER:
            return "no cluster is connected"
        case Why.NOT_GRANTED:
            return f"its project may not use resource group {r.group or 'that it asked for'}"
        case Why.OVER_QUOTA:
            whole = amount(r.total)
            return f"asks {amount(r.asked)}; the whole quota of resource group {r.group} is {whole}"
        case Why.QUOTA:
            held = format_quantity(r.total - r.free, resource=r.resource)
            of = f"{held} of {amount(r.total)} are reserved in resource group {r.group}"
            return f"asks {amount(r.asked)}; {of}"
        case Why.DISABLED:
            return "an admin has taken this cluster out of use"
        case Why.OFFLINE:
            return f"its agent has been silent for {r.seconds:.0f} s"
        case Why.FENCE:
            return f"it starts elsewhere in {r.seconds:.0f} s: by then it is sure to have stopped"
        case Why.NO_FENCE:
            return (
                f"after {r.seconds:.0f} s of silence it still cannot start elsewhere: nobody "
                "promises that it is stopped on this cluster"
            )
        case Why.UNFIT:
            return f"its check does not pass: {', '.join(r.others)}"
        case Why.NO_SUCH_RESOURCE:
            return f"asks {amount(r.asked)}; this cluster has none"
        case Why.NODE_TOO_SMALL:
            return f"asks {amount(r.asked)} on one node; the largest has {amount(r.total)}"
        case Why.CLUSTER_TOO_SMALL:
            return f"asks {amount(r.asked)} in all; the whole cluster has {amount(r.total)}"
        case Why.OTHERS:
            held = format_quantity(r.foreign, resource=r.resource)
            free = format_quantity(r.free, resource=r.resource)
            return (
                f"asks {amount(r.asked)}; {free} of {amount(r.total)} is left by work that the "
                f"platform does not run, which holds {held}"
            )
        case Why.KEPT:
            return f"asks {amount(r.asked)}; what is free is kept for a step that has waited longer"
        case Why.CAPACITY:
            free = format_quantity(r.free, resource=r.resource)
            return f"asks {amount(r.asked)}; {free} of {amount(r.total)} is free"
        case Why.ASSIGNED:
            return "was given to this cluster; its agent takes it up next"
        case Why.STARTING:
            return "its agent has it: files are fetched, or the cluster makes it"


def _change(r: Reason) -> str:  # noqa: C901 - one line for each code
    match r.why:
        case Why.CAPACITY:
            missing = format_quantity(r.missing, resource=r.resource)
            return f"{missing} more {r.resource} free would start it"
        case Why.QUOTA | Why.OVER_QUOTA:
            missing = format_quantity(r.missing, resource=r.resource)
            return f"{missing} more {r.resource} in the quota of {r.group} would start it"
        case Why.NOT_GRANTED:
            return "an admin of its project group can request access anew"
        case Why.OTHERS:
            missing = format_quantity(r.missing, resource=r.resource)
            return f"{missing} {r.resource} given back by others, or more nodes, would start it"
        case Why.NODE_TOO_SMALL | Why.CLUSTER_TOO_SMALL:
            most = format_quantity(r.total, resource=r.resource)
            return f"ask at most {most} {r.resource}, or add larger nodes"
        case Why.NO_SUCH_RESOURCE:
            return f"remove the request for {r.resource}, or connect a cluster that has it"
        case Why.OFFLINE:
            return "bring its agent back"
        case Why.NO_FENCE:
            return "bring its agent back; or whoever knows that it is off declares the cluster lost"
        case Why.UNFIT:
            return "its page says what to do about the check"
        case Why.DISABLED:
            return "an admin can enable it"
        case Why.NO_CLUSTER if r.group:
            return "a platform admin can add a cluster to the resource group"
        case Why.NO_CLUSTER:
            return "connect a cluster; `verderer up` starts one on this machine"
        case Why.NO_SCHEDULER:
            return "start `verderer scheduler`"
        case _:
            return ""
