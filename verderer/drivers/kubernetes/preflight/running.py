"""Asks a cluster what `checks` judges."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from email.utils import parsedate_to_datetime
from typing import Final

from verderer.core.errors import NotFound, Refusal, VerdererError
from verderer.drivers.kubernetes import naming
from verderer.drivers.kubernetes.calls.api import Api
from verderer.drivers.kubernetes.calls.connection import Connection
from verderer.drivers.kubernetes.preflight import checks
from verderer.drivers.kubernetes.preflight.checks import Finding
from verderer.drivers.kubernetes.preflight.rights import Right, needed
from verderer.drivers.kubernetes.seen.sights import Node, Page, Seen
from verderer.drivers.kubernetes.terms import Terms

_AT_ONCE: Final = 8
_PAGE: Final = 250
_REVIEWS: Final = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


class _Version(Seen, frozen=True):
    git_version: str = ""


class _Verdict(Seen, frozen=True):
    allowed: bool = False


class _Review(Seen, frozen=True):
    status: _Verdict = _Verdict()


async def preflight(
    connection: Connection, terms: Terms, *, projects: Iterable[str] = ()
) -> list[Finding]:
    """Look at everything that work needs; changes nothing.

    `projects` are projects whose namespaces exist and are to be looked at too. Never raises for
    what it finds: a cluster out of reach is a finding.
    """
    api = Api(connection, writes_per_s=terms.writes_per_s)
    try:
        return await _look(api, terms, list(projects))
    finally:
        await api.close()


async def _look(api: Api, terms: Terms, projects: list[str]) -> list[Finding]:
    try:
        version = await api.get("/version", _Version)
    except VerdererError as error:
        return [checks.unreachable(error)]
    found = [checks.version(version.git_version)]
    found.append(checks.clock(await _skew(api)))
    found.append(checks.kind_served(served=await _served(api)))
    namespaces = [naming.namespace_of(one, prefix=terms.project_prefix) for one in projects]
    wanted = needed(terms, namespaces)
    missing = await _missing(api, wanted)
    found.append(checks.rights(missing, len(wanted), terms))
    if not any(right.resource == "nodes" for right in missing):
        found += checks.nodes(await _nodes(api))
    return found


async def _skew(api: Api) -> float:
    began = time.time()
    text = await api.date("/version")
    middle = (began + time.time()) / 2
    try:
        theirs = parsedate_to_datetime(text).timestamp()
    except ValueError:
        return 0.0
    # The header counts whole seconds: on average it is half a second behind.
    return theirs + 0.5 - middle


async def _served(api: Api) -> bool:
    try:
        await api.get(f"/apis/{naming.GROUP}/{naming.VERSION}", Seen)
    except NotFound:
        return False
    except Refusal:
        return True
    return True


async def _missing(api: Api, wanted: list[Right]) -> list[Right]:
    limit = asyncio.Semaphore(_AT_ONCE)

    async def allowed(right: Right) -> bool:
        async with limit:
            review = await api.create(_REVIEWS, right.review(), _Review)
            return review.status.allowed

    answers = await asyncio.gather(*(allowed(right) for right in wanted))
    return [right for right, yes in zip(wanted, answers, strict=True) if not yes]


async def _nodes(api: Api) -> list[Node]:
    nodes: list[Node] = []
    token = ""
    while True:
        params = {"limit": str(_PAGE), **({"continue": token} if token else {})}
        page = await api.get("/api/v1/nodes", Page[Node], params)
        nodes += page.items or ()
        token = page.metadata.continue_
        if not token:
            return nodes
