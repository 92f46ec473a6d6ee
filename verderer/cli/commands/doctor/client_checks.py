"""What somebody with a token can find out: server, token, versions, clocks, clusters."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from verderer.cli.commands.contexts import Context
from verderer.cli.commands.doctor.cluster_checks import look_at_cluster, look_at_clusters
from verderer.cli.commands.doctor.findings import Finding, fail, ok, warn
from verderer.cli.commands.remote import API, client_of
from verderer.core.errors import Fault, NotAllowed, NotAuthenticated, Refusal, VerdererError
from verderer.core.version import VERSION
from verderer.wire.client import ApiClient
from verderer.wire.transport import Answer
from verderer.wire.users import Account, Alive, Readiness

_SKEW_WARN_S = 5.0
_SKEW_FAIL_S = 60.0


async def look_at_server(context: Context, *, cluster: str = "") -> list[Finding]:
    """Everything in the order in which one thing needs the other; of clusters, all or this one."""
    async with client_of(context) as client:
        try:
            answer = await client.exchange("GET", "/healthz")
            Alive(status="") if not answer.body else None
        except VerdererError as e:
            remedy = e.hint or "Is the server running? `verderer up` starts one on this machine."
            return [fail("server", f"{context.url} does not answer: {e.message}", remedy)]
        found = [ok("server", f"{context.url} answers"), _clock(answer)]
        found.append(await _ready(client))
        found.append(await _versions(client))
        account = await _token(client, context)
        found.append(account)
        if account.verdict == "ok":
            found += await (
                look_at_cluster(client, cluster) if cluster else look_at_clusters(client)
            )
        return found


def _clock(answer: Answer) -> Finding:
    """The server's clock, as the header `Date` tells it to the second."""
    try:
        theirs = parsedate_to_datetime(answer.headers.get("date", ""))
    except ValueError:
        return ok("clock", "the server does not tell its time")
    skew = abs((datetime.now(UTC) - theirs).total_seconds())
    if skew < _SKEW_WARN_S:
        return ok("clock", "agrees with the server's")
    detail = f"differs from the server's by {skew:.0f} s"
    remedy = "Set the clock by NTP, here or there."
    return fail("clock", detail, remedy) if skew > _SKEW_FAIL_S else warn("clock", detail, remedy)


async def _ready(client: ApiClient) -> Finding:
    try:
        found = await client.get("/readyz", Readiness)
    except VerdererError as e:
        remedy = "See the server's log; `verderer doctor --server` there says more."
        return fail("readiness", f"the server cannot work: {e.message}", remedy)
    parts = ", ".join(f"{name} {state}" for name, state in found.parts.items())
    return ok("readiness", parts)


async def _versions(client: ApiClient) -> Finding:
    try:
        document = await client.get(f"{API}/openapi.json", dict[str, object])
    except VerdererError as e:
        return warn("versions", f"the server does not tell its own: {e.message}", "")
    info = document.get("info")
    theirs = str(info.get("version", "")) if isinstance(info, dict) else ""
    if theirs == VERSION:
        return ok("versions", f"both are {VERSION}")
    detail = f"the server is {theirs or 'unknown'}, this is {VERSION}"
    return warn("versions", detail, f"Install verderer {theirs} here." if theirs else "")


async def _token(client: ApiClient, context: Context) -> Finding:
    remedy = f"verderer login {context.url}"
    if not context.token:
        return fail("token", "nobody is logged in", remedy)
    try:
        me = await client.get(f"{API}/me", Account)
    except (NotAuthenticated, NotAllowed) as e:
        return fail("token", e.message, remedy)
    except (Refusal, Fault) as e:
        return fail("token", f"cannot be checked: {e.message}", e.hint)
    return ok("token", f"{me.email}" + (", may only read" if me.read_only else ""))
