"""Why a step waits or how it ended, in the reader's language, with numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from verderer.core.explain import NEVER, Reason, Why
from verderer.core.model.attempt import EndCause
from verderer.store.views.steps import AttemptRow
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
    Why.UNFIT: N_("its check does not pass: %(others)s"),
    Why.NO_SUCH_RESOURCE: N_("asks %(asked)s %(resource)s; this cluster has none"),
    Why.NODE_TOO_SMALL: N_("asks %(asked)s %(resource)s on one node; the largest has %(total)s"),
    Why.CLUSTER_TOO_SMALL: N_(
        "asks %(asked)s %(resource)s in all; the whole cluster has %(total)s"
    ),
    Why.CAPACITY: N_("asks %(asked)s %(resource)s; %(free)s of %(total)s are free"),
}
_CHANGES: Mapping[Why, str] = {
    Why.CAPACITY: N_("%(missing)s more %(resource)s free would start it"),
    Why.NODE_TOO_SMALL: N_("ask at most %(total)s %(resource)s, or add larger nodes"),
    Why.CLUSTER_TOO_SMALL: N_("ask at most %(total)s %(resource)s in all, or add nodes"),
    Why.NO_SUCH_RESOURCE: N_("remove the request, or connect a cluster that has it"),
    Why.OFFLINE: N_("bring its agent back"),
    Why.UNFIT: N_("its page says what to do about the check"),
    Why.DISABLED: N_("an admin can enable it"),
    Why.NO_CLUSTER: N_("connect a cluster; `verderer up` starts one on this machine"),
    Why.NO_SCHEDULER: N_("start `verderer scheduler`"),
}
_KINDS: Mapping[Why, str] = {
    Why.NEEDS: N_("order"),
    Why.BACKOFF: N_("pause"),
    Why.PLACING: N_("queued"),
    Why.NO_SCHEDULER: N_("scheduler"),
    Why.NO_CLUSTER: N_("cluster"),
    Why.DISABLED: N_("disabled"),
    Why.OFFLINE: N_("offline"),
    Why.UNFIT: N_("unfit"),
    Why.NO_SUCH_RESOURCE: N_("impossible"),
    Why.NODE_TOO_SMALL: N_("impossible"),
    Why.CLUSTER_TOO_SMALL: N_("impossible"),
    Why.CAPACITY: N_("capacity"),
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


def explain(found: Mapping[str, Any], formats: Formats) -> Line:
    """A stored reason in words; one that this release does not know is shown by its code."""
    _ = formats.language.gettext
    try:
        reason = Reason.from_dict(found)
    except (ValueError, TypeError, KeyError):
        code = str(found.get("why", found.get("code", "?")))
        return Line(str(found.get("cluster", "")), code, "", "", never=False)
    values = {
        "asked": formats.amount(reason.asked, reason.resource),
        "free": formats.amount(reason.free, reason.resource),
        "total": formats.amount(reason.total, reason.resource),
        "missing": formats.amount(max(0, reason.asked - reason.free), reason.resource),
        "resource": formats.resource(reason.resource),
        "time": formats.span(reason.seconds),
        "others": ", ".join(reason.others),
    }
    change = _CHANGES.get(reason.why, "")
    return Line(
        reason.cluster,
        _(_KINDS[reason.why]),
        _(_SENTENCES[reason.why]) % values,
        _(change) % values if change else "",
        never=reason.why in NEVER,
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
