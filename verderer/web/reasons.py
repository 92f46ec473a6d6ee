"""Why a step waits or how it ended, in the reader's language, with numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from verderer.core.explain import NEVER, Reason, Why, nearest_first
from verderer.core.model.attempt import AttemptState, EndCause
from verderer.core.model.waiting import Pending
from verderer.store.views.steps import AttemptRow
from verderer.store.views.why import OnCluster
from verderer.web.formats import Formats
from verderer.web.language import N_

_SENTENCES: Mapping[Why, str] = {
    Why.NEEDS: N_("waits for %(others)s"),
    Why.BACKOFF: N_("the last attempt failed; the next one starts in %(time)s"),
    Why.PLACING: N_("was just queued; the scheduler looks at it next"),
    Why.NO_SCHEDULER: N_("no scheduler has led for %(time)s"),
    Why.NO_CLUSTER: N_("no cluster is connected"),
    Why.DISABLED: N_("an admin has taken this cluster out of use"),
    Why.OFFLINE: N_("its agent has been silent for %(time)s"),
    Why.FENCE: N_("it starts elsewhere in %(time)s: by then it is sure to have stopped"),
    Why.NO_FENCE: N_(
        "after %(time)s of silence it still cannot start elsewhere: nobody promises that it is "
        "stopped on this cluster"
    ),
    Why.UNFIT: N_("its check does not pass: %(others)s"),
    Why.NO_SUCH_RESOURCE: N_("asks %(asked)s %(resource)s; this cluster has none"),
    Why.NODE_TOO_SMALL: N_("asks %(asked)s %(resource)s on one node; the largest has %(total)s"),
    Why.CLUSTER_TOO_SMALL: N_(
        "asks %(asked)s %(resource)s in all; the whole cluster has %(total)s"
    ),
    Why.NOT_GRANTED: N_("its project may not use resource group %(group)s any more"),
    Why.OVER_QUOTA: N_(
        "asks %(asked)s %(resource)s; the whole quota of resource group %(group)s is %(total)s"
    ),
    Why.QUOTA: N_(
        "asks %(asked)s %(resource)s; %(held)s of %(total)s are reserved in resource group "
        "%(group)s"
    ),
    Why.OTHERS: N_(
        "asks %(asked)s %(resource)s; %(free)s of %(total)s are left by work that the platform "
        "does not run, which holds %(foreign)s"
    ),
    Why.KEPT: N_(
        "asks %(asked)s %(resource)s; what is free is kept for a step that has waited longer"
    ),
    Why.CAPACITY: N_("asks %(asked)s %(resource)s; %(free)s of %(total)s are free"),
    Why.ASSIGNED: N_("was given to this cluster; its agent takes it up next"),
    Why.STARTING: N_("its agent has it: files are fetched, or the cluster makes it"),
}
_CHANGES: Mapping[Why, str] = {
    Why.CAPACITY: N_("%(missing)s more %(resource)s free would start it"),
    Why.NOT_GRANTED: N_("request access to it anew"),
    Why.OVER_QUOTA: N_("%(missing)s more %(resource)s in the quota of %(group)s would start it"),
    Why.QUOTA: N_("%(missing)s more %(resource)s in the quota of %(group)s would start it now"),
    Why.OTHERS: N_("%(missing)s %(resource)s given back by others, or more nodes, would start it"),
    Why.NODE_TOO_SMALL: N_("ask at most %(total)s %(resource)s, or add larger nodes"),
    Why.CLUSTER_TOO_SMALL: N_("ask at most %(total)s %(resource)s in all, or add nodes"),
    Why.NO_SUCH_RESOURCE: N_("remove the request, or connect a cluster that has it"),
    Why.OFFLINE: N_("bring its agent back"),
    Why.NO_FENCE: N_(
        "bring its agent back; or whoever knows that it is off declares the cluster lost"
    ),
    Why.UNFIT: N_("its page says what to do about the check"),
    Why.DISABLED: N_("an admin can enable it"),
    Why.NO_CLUSTER: N_("connect a cluster; `verderer up` starts one on this machine"),
    Why.NO_SCHEDULER: N_("start `verderer scheduler`"),
}
_NO_CLUSTER_IN = (
    N_("resource group %(group)s has no cluster"),
    N_("a platform admin can add a cluster to the resource group"),
)
_KINDS: Mapping[Why, str] = {
    Why.NEEDS: N_("order"),
    Why.BACKOFF: N_("pause"),
    Why.PLACING: N_("queued"),
    Why.NO_SCHEDULER: N_("scheduler"),
    Why.NO_CLUSTER: N_("cluster"),
    Why.DISABLED: N_("disabled"),
    Why.OFFLINE: N_("offline"),
    Why.FENCE: N_("pause"),
    Why.NO_FENCE: N_("offline"),
    Why.UNFIT: N_("unfit"),
    Why.NO_SUCH_RESOURCE: N_("impossible"),
    Why.NODE_TOO_SMALL: N_("impossible"),
    Why.CLUSTER_TOO_SMALL: N_("impossible"),
    Why.NOT_GRANTED: N_("access"),
    Why.OVER_QUOTA: N_("impossible"),
    Why.QUOTA: N_("quota"),
    Why.OTHERS: N_("other tenants"),
    Why.KEPT: N_("turn"),
    Why.CAPACITY: N_("capacity"),
    Why.ASSIGNED: N_("starting"),
    Why.STARTING: N_("starting"),
}
_PENDING_KINDS: Mapping[Pending, str] = {
    Pending.RESOURCES: N_("capacity"),
    Pending.NODES: N_("no node"),
    Pending.PRIORITY: N_("priority"),
    Pending.QUEUE: N_("queue"),
    Pending.GANG: N_("gang"),
    Pending.QUOTA: N_("quota"),
    Pending.UNAVAILABLE: N_("out of service"),
    Pending.HELD: N_("held"),
    Pending.POLICY: N_("rules"),
    Pending.IMAGE: N_("image"),
    Pending.CONFIGURATION: N_("configuration"),
    Pending.VOLUME: N_("volume"),
    Pending.CREATING: N_("starting"),
    Pending.UNKNOWN: N_("starting"),
}
_PENDING: Mapping[Pending, str] = {
    Pending.RESOURCES: N_("the cluster's nodes lack what it asks for"),
    Pending.NODES: N_("no node of the cluster matches what it asks for"),
    Pending.PRIORITY: N_("work of a higher priority waits for the same nodes"),
    Pending.QUEUE: N_("a queue of the cluster holds it back"),
    Pending.GANG: N_("some of its replicas have a place, others have not"),
    Pending.QUOTA: N_("a quota or limit of the cluster is reached"),
    Pending.UNAVAILABLE: N_("nodes that it needs are down, drained or reserved"),
    Pending.HELD: N_("somebody holds it back on the cluster, or it waits for its time"),
    Pending.POLICY: N_("the cluster's rules refuse it"),
    Pending.IMAGE: N_("its image cannot be pulled"),
    Pending.CONFIGURATION: N_("its container cannot be made as it is described"),
    Pending.VOLUME: N_("a volume of it cannot be mounted"),
    Pending.CREATING: N_("it is being made on its node"),
    Pending.UNKNOWN: N_("the cluster has not said anything about it yet"),
}
_PENDING_CHANGES: Mapping[Pending, str] = {
    Pending.RESOURCES: N_("free what the nodes are short of, ask for less, or add nodes"),
    Pending.NODES: N_("let a node match: its labels, taints or features, or what the step asks"),
    Pending.PRIORITY: N_("wait for the work before it, or raise its priority on the cluster"),
    Pending.QUEUE: N_("the owner of the cluster's queue can admit it"),
    Pending.GANG: N_("free room for all replicas at once, or ask for fewer"),
    Pending.QUOTA: N_("end other work under this quota, or have an admin of the cluster raise it"),
    Pending.UNAVAILABLE: N_("bring the nodes or the partition back into service"),
    Pending.HELD: N_("whoever holds it can release it on the cluster"),
    Pending.POLICY: N_("change the step, or have an admin of the cluster change the rule"),
    Pending.IMAGE: N_("correct the image's name, or give the cluster access to its registry"),
    Pending.CONFIGURATION: N_("make what is missing, or correct the step"),
    Pending.VOLUME: N_("make the volume available on the cluster"),
}
_ENDS: Mapping[EndCause, str] = {
    EndCause.EXIT: N_("exited with code %(code)s"),
    EndCause.SIGNAL: N_("killed by signal %(signal)s"),
    EndCause.OOM: N_("ran out of its memory limit"),
    EndCause.TIMEOUT: N_("ran longer than its timeout"),
    EndCause.CANCELLED: N_("cancelled"),
    EndCause.LOST: N_("lost: nobody saw how it ended"),
    EndCause.START: N_("could not be started"),
    EndCause.OUTPUT: N_("an output was missing or could not be stored"),
}


@dataclass(frozen=True, slots=True)
class Line:
    """One cluster's answer to "why not here?"."""

    cluster: str
    kind: str
    sentence: str
    change: str
    never: bool
    """Waiting alone cannot help."""
    group: str = ""
    """The resource group whose rule it is."""
    said: str = ""
    """The cluster's own words, in its own language."""


def explain_all(found: Sequence[Mapping[str, Any]], formats: Formats) -> tuple[Line, ...]:
    """Stored reasons in words, the nearest to a start first.

    One that this release does not know is shown by its code.
    """
    known, strange = [], []
    for one in found:
        try:
            known.append(Reason.from_dict(one))
        except (ValueError, TypeError, KeyError):
            code = str(one.get("why", one.get("code", "?")))
            strange.append(Line(str(one.get("cluster", "")), code, "", "", never=False))
    return (*(explain(reason, formats) for reason in nearest_first(known)), *strange)


def explain_there(cluster: str, there: OnCluster, formats: Formats) -> Line:
    """Why an attempt has not begun on its cluster: what that says, with what it means."""
    _ = formats.language.gettext
    waits = there.waits
    if waits is None:
        why = Why.ASSIGNED if there.state is AttemptState.ASSIGNED else Why.STARTING
        return explain(Reason(why=why, cluster=cluster), formats)
    change = _PENDING_CHANGES.get(waits.code, "")
    return Line(
        cluster,
        _(_PENDING_KINDS[waits.code]),
        _(_PENDING[waits.code]),
        _(change) if change else "",
        never=waits.hopeless,
        said=waits.message,
    )


def explain(reason: Reason, formats: Formats) -> Line:
    """A reason in words, with its numbers."""
    _ = formats.language.gettext
    values = {
        "asked": formats.amount(reason.asked, reason.resource),
        "free": formats.amount(reason.free, reason.resource),
        "total": formats.amount(reason.total, reason.resource),
        "missing": formats.amount(reason.missing, reason.resource),
        "held": formats.amount(max(0, reason.total - reason.free), reason.resource),
        "group": reason.group,
        "foreign": formats.amount(reason.foreign, reason.resource),
        "resource": formats.resource(reason.resource),
        "time": formats.span(reason.seconds),
        "others": ", ".join(reason.others),
    }
    change, sentence = _CHANGES.get(reason.why, ""), _SENTENCES[reason.why]
    if reason.why is Why.NO_CLUSTER and reason.group:
        sentence, change = _NO_CLUSTER_IN
    return Line(
        reason.cluster,
        _(_KINDS[reason.why]),
        _(sentence) % values,
        _(change) % values if change else "",
        never=reason.why in NEVER,
        group=reason.group,
    )


def ending(attempt: AttemptRow, formats: Formats) -> str:
    """How an attempt ended, in one sentence; empty while it has not."""
    if attempt.cause is None:
        return ""
    text = formats.language.gettext(_ENDS[attempt.cause]) % {
        "code": attempt.exit_code,
        "signal": attempt.signal,
    }
    extra = _beyond(attempt)
    if extra.startswith("("):
        return f"{text} {extra}"
    return f"{text}: {extra}" if extra else text


def _beyond(attempt: AttemptRow) -> str:
    """What the driver's message adds to the cause; it often says the same in English."""
    said = f"killed by signal {attempt.signal}"
    if attempt.message in {f"exit code {attempt.exit_code}", "its memory limit was reached"}:
        return ""
    return attempt.message.removeprefix(said).strip()
