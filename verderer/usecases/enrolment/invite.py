"""Make a cluster and the token with which its agent joins, once."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from verderer.core.access import Action, require
from verderer.core.credentials import TokenKind, hash_token, hint_of, make_token
from verderer.core.enrolment import JOIN_LIFE, LONGEST_JOIN_LIFE
from verderer.core.errors import Conflict, Invalid, Problem
from verderer.core.labels import check_name
from verderer.core.model.actor import Actor
from verderer.core.model.cluster import ClusterKind
from verderer.store.tables import audit, enrolment
from verderer.usecases.context import Context

_TAKEN = frozenset({"add", "live"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Invitation:
    """`token` is shown this once."""

    cluster_id: str
    kind: str
    token: str
    expires_at: datetime


async def invite_agent(
    ctx: Context, actor: Actor, cluster_id: str, kind: str, *, life: timedelta = JOIN_LIFE
) -> Invitation:
    """Make the cluster if there is none, and a join token for its agent.

    An earlier token that nobody has used stops working; an agent that has joined goes on until
    another one uses the new token.

    Raises:
        NotAllowed: the actor is not a platform admin.
        Invalid: the name, the kind or the time is not acceptable.
        Conflict: there is a cluster of that name and of another kind.
    """
    require(actor, Action.CLUSTER_MANAGE)
    check_name(cluster_id, field="id")
    if cluster_id in _TAKEN:
        problem = Problem(field="id", message="is the name of a page")
        raise Invalid("choose another id", problems=[problem])
    _check(kind, life)
    token = make_token(TokenKind.JOIN, ctx.secret())
    async with ctx.db.transaction() as tx:
        cluster = await enrolment.add_cluster(tx, cluster_id, kind)
        if cluster is None:
            raise Conflict(
                f"cluster {cluster_id} exists and is of another kind",
                hint="Choose another id.",
            )
        until = await enrolment.add_join_token(
            tx, cluster, hash_token(token), hint=hint_of(token), by=actor.name, life=life
        )
        detail = {"kind": kind, "token": hint_of(token), "expires_at": until.isoformat()}
        entry = audit.Entry(
            action="cluster.agent_invited", object=f"cluster:{cluster_id}", detail=detail
        )
        await audit.add(tx, actor, [entry])
    ctx.wakeups.wake({"clusters"})
    return Invitation(cluster_id=cluster_id, kind=kind, token=token, expires_at=until)


def _check(kind: str, life: timedelta) -> None:
    if kind not in {one.value for one in ClusterKind}:
        kinds = ", ".join(one.value for one in ClusterKind)
        problem = Problem(field="kind", message=f"must be one of {kinds}")
        raise Invalid("there is no such kind of cluster", problems=[problem])
    if not timedelta(minutes=1) <= life <= LONGEST_JOIN_LIFE:
        problem = Problem(field="minutes", message="must be from 1 to 10,080, which is a week")
        raise Invalid("a join token lives for a minute to a week", problems=[problem])


def join_command(public_url: str, made: Invitation) -> str:
    """What a person runs beside the cluster to let its agent join.

    Id and token are of letters, digits, `-` and `_` alone, so a shell takes them as they are.
    """
    where = f"--server {public_url} --token {made.token}"
    if made.kind == ClusterKind.KUBERNETES.value:
        install = f"verderer agent install --kubernetes --cluster {made.cluster_id} {where}"
        return f"{install} | kubectl apply --server-side -f -"
    return f"verderer agent join --kind {made.kind} {where}"
