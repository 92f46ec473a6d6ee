"""What somebody with a token can find out about clusters, and about one of them in particular."""

from __future__ import annotations

from verderer.cli.commands.doctor.findings import Finding, fail, ok, warn
from verderer.cli.commands.remote import API
from verderer.core.errors import VerdererError
from verderer.wire.client import ApiClient
from verderer.wire.users import CheckOut, ClusterDetailOut, ClusterOut, Listing


async def look_at_clusters(client: ApiClient) -> list[Finding]:
    """A line for each."""
    try:
        found = (await client.get(f"{API}/clusters", Listing[ClusterOut])).items
    except VerdererError as e:
        return [warn("clusters", f"cannot be listed: {e.message}", e.hint)]
    if not found:
        remedy = "`verderer up` starts one on this machine, `verderer clusters add` lets one join."
        return [warn("clusters", "there are none: nothing can run", remedy)]
    return [_state(one) for one in found]


async def look_at_cluster(client: ApiClient, cluster: str) -> list[Finding]:
    """How it stands, and every check that its agent made."""
    try:
        found = await client.get(f"{API}/clusters/{cluster}", ClusterDetailOut)
    except VerdererError as e:
        return [fail(f"cluster {cluster}", e.message, e.hint or "verderer clusters")]
    return [_state(found), *(_check(one) for one in found.checks)]


def _state(one: ClusterOut | ClusterDetailOut) -> Finding:
    what = f"cluster {one.id}"
    silent = "" if one.silent_s is None else f" for {one.silent_s:.0f} s"
    match one.state:
        case "online" if one.ready:
            return ok(what, f"online, {one.ready} of {one.nodes} nodes ready")
        case "online":
            return warn(what, "online, no node of it is ready", "See its nodes.")
        case "disabled":
            return warn(what, "taken out of use by an admin", f"verderer clusters enable {one.id}")
        case "unfit":
            remedy = f"verderer doctor --cluster {one.id}"
            return warn(what, "not fit for work: a required check does not pass", remedy)
        case "joining":
            remedy = f"Run the command of `verderer clusters add {one.id}` beside it."
            return warn(what, "waits for its agent to join", remedy)
        case _:
            detail = f"its agent has been silent{silent}" if silent else "its agent never called"
            return warn(what, detail, "Start its agent, and see the agent's log.")


def _check(one: CheckOut) -> Finding:
    """What could not be measured has not passed: required, it keeps work away like a failure."""
    if one.level == "pass":
        return ok(one.name, one.message)
    detail = one.message
    if one.level == "unknown":
        detail = f"could not be measured: {detail}"
    bad = one.required and one.level in ("fail", "unknown")
    return fail(one.name, detail, one.remedy) if bad else warn(one.name, detail, one.remedy)
