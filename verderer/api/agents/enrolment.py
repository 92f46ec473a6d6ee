"""/api/v1/agent/join and /renew: how an agent comes by its credential."""

from __future__ import annotations

from typing import Any

from litestar import Request, post
from litestar.params import JSONBody

from verderer.api.auth import ContextArg
from verderer.api.gate import origin_of
from verderer.usecases.context import Context
from verderer.usecases.enrolment.join import Admitted, Signed, join, renew
from verderer.wire.enrolment import Admission, JoinIn, RenewIn

_TOKEN = "a join token in the body opens it, once"
_SIGNATURE = "a signature of the agent's key in the body opens it"


@post("/agent/join", opt={"public": _TOKEN}, tags=["agents"], status_code=200)
async def join_cluster(
    request: Request[Any, Any, Any], context: ContextArg, data: JSONBody[JoinIn]
) -> Admission:
    """Spend a join token: from now on the agent is known by its key.

    401 `join_token_used`, `join_token_expired`, `join_token_unknown` or `clock_skew`.
    """
    signed = Signed(public_key=data.public_key, unix_ms=data.unix_ms, signature=data.signature)
    origin = origin_of(request.scope)
    admitted = await join(context, data.token, signed, kind=data.kind, origin=origin)
    return _show(context, admitted)


@post("/agent/renew", opt={"public": _SIGNATURE}, tags=["agents"], status_code=200)
async def renew_credential(
    request: Request[Any, Any, Any], context: ContextArg, data: JSONBody[RenewIn]
) -> Admission:
    """Fetch the next credential, and change the key if another one is sent.

    401 `unknown_agent`, `replayed` or `clock_skew`.
    """
    signed = Signed(public_key=data.public_key, unix_ms=data.unix_ms, signature=data.signature)
    admitted = await renew(
        context,
        data.cluster,
        signed,
        new_signature=data.new_signature,
        origin=origin_of(request.scope),
    )
    return _show(context, admitted)


def _show(context: Context, admitted: Admitted) -> Admission:
    return Admission(
        cluster=admitted.cluster_id,
        kind=admitted.kind,
        credential=admitted.credential,
        life_s=admitted.life_s,
        server_unix_ms=int(context.clock().timestamp() * 1000),
    )


ROUTES = (join_cluster, renew_credential)
