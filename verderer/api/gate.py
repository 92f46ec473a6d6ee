"""What every request passes before its handler: host, origin of the page, credential, action.

Nothing is open unless its route says so. A route carries one of
- `opt={"action": Action.RUN_READ}`: a program's token is asked for, and may do this;
- the same with `"session": True`: a browser's session instead, for pages;
- `opt={"public": "why"}`: anybody; with `"session": True` whoever is logged in is still known.
An answer that stays open calls `scope["state"]["recheck"]()` now and then, which raises once the
credential no longer opens the route.
`check_routes` refuses to start with a route that carries neither, whichever router it is in.

A program's routes never look at cookies, so no page of somebody else's can use them. A route of
pages does not answer what another site's page makes a browser send.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from urllib.parse import urlsplit

from litestar import Litestar
from litestar.handlers import HTTPRouteHandler
from litestar.handlers.base import BaseRouteHandler
from litestar.types import ASGIApp, Receive, Scope, Send

from verderer.api.credentials import bearer_of, one_header, session_of
from verderer.core.access import Action, admit
from verderer.core.errors import NotAllowed, NotAuthenticated, Refusal
from verderer.core.model.actor import Actor
from verderer.usecases.authenticate import authenticate
from verderer.usecases.context import Context

_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_LOOPBACK = ("127.", "::1", "localhost")
_MOST_HOSTS = 1_000


class Gate:
    """An ASGI middleware of every route; leaves the actor in `scope["user"]`."""

    def __init__(self, app: ASGIApp, *, context: Context) -> None:
        self.app = app
        self._context = context
        public = urlsplit(context.public_url)
        self._public_host = (public.hostname or "").lower()
        self._public_origin = f"{public.scheme}://{public.netloc}".lower()
        self._good_hosts: set[bytes] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or raise the `Refusal` that the door translates."""
        self._check_host(scope)
        if "\x00" in scope["path"] or b"%00" in scope.get("query_string", b""):
            raise Refusal("an address holds no NUL character", code="malformed")
        opt = scope["route_handler"].opt
        if opt.get("session") or "public" in opt:
            self._check_site(scope)
        scope["user"] = await self._actor(scope, opt)
        scope["state"]["recheck"] = partial(self._actor, scope, opt)
        await self.app(scope, receive, send)

    async def _actor(self, scope: Scope, opt: dict[str, object]) -> Actor | None:
        action = opt.get("action")
        origin = origin_of(scope)
        if "public" in opt:
            return await self._whoever(scope, origin) if opt.get("session") else None
        if opt.get("session"):
            actor = await authenticate(
                self._context, session=session_of(scope["headers"]), origin=origin
            )
        else:
            actor = await authenticate(
                self._context, bearer=bearer_of(scope["headers"]), origin=origin
            )
        if isinstance(action, Action):
            admit(actor, action)
        elif scope.get("method") != "OPTIONS":
            raise NotAllowed("this route says nothing about who may use it")
        return actor

    async def _whoever(self, scope: Scope, origin: str) -> Actor | None:
        try:
            session = session_of(scope["headers"])
            return await authenticate(self._context, session=session, origin=origin)
        except NotAuthenticated:
            return None

    def _check_host(self, scope: Scope) -> None:
        """A name that somebody else's DNS points at this machine's loopback is refused."""
        server = scope.get("server")
        if not server or not str(server[0]).startswith(_LOOPBACK):
            return
        for name, value in scope["headers"]:
            if name != b"host" or value in self._good_hosts:
                continue
            if not self._is_ours(value):
                raise NotAllowed(
                    "this server is not known by that name",
                    hint="Set server.public_url to the address that people use.",
                    code="wrong_host",
                )
            if len(self._good_hosts) < _MOST_HOSTS:
                self._good_hosts.add(value)

    def _is_ours(self, host: bytes) -> bool:
        try:
            name = (urlsplit("//" + host.decode("ascii")).hostname or "").lower()
        except ValueError:
            return False
        ours = {"localhost", "127.0.0.1", "::1", self._public_host}
        return name in ours or name.endswith(".localhost")

    def _check_site(self, scope: Scope) -> None:
        """Refuse what another site's page makes a browser send.

        Browsers say which (Sec-Fetch-Site), on plain HTTP at least from where (Origin); a request
        with neither comes from no browser.
        """
        if scope.get("method") in _SAFE:
            return
        headers = scope["headers"]
        site = one_header(headers, b"sec-fetch-site")
        if site:
            if site in ("same-origin", "none"):
                return
        else:
            origin = one_header(headers, b"origin").lower()
            host = one_header(headers, b"host").lower()
            own = {f"http://{host}", f"https://{host}", self._public_origin}
            if not origin or origin in own:
                return
        raise NotAllowed("another site's page may not do this", code="cross_site")


def origin_of(scope: Scope) -> str:
    """The address that the request came from, as the server's proxy settings read it."""
    client = scope.get("client")
    return str(client[0]) if client else ""


def check_routes(app: Litestar) -> None:
    """Refuse to start while a route says neither who may use it nor why everybody may.

    Raises:
        ValueError: names the routes.
    """
    bad = []
    for path, handler in all_handlers(app):
        action, why = handler.opt.get("action"), handler.opt.get("public")
        if isinstance(action, Action) == bool(why):
            bad.append(f"{path} ({handler.handler_name})")
    if bad:
        raise ValueError(f"these routes need either an action or a reason to be public: {bad}")


def all_handlers(app: Litestar) -> Iterable[tuple[str, BaseRouteHandler]]:
    """Every handler with its path, without the answers to OPTIONS that the framework adds."""
    for route in app.routes:
        single = getattr(route, "route_handler", None)
        handlers = [single] if single else getattr(route, "route_handlers", [])
        for handler in handlers:
            added = isinstance(handler, HTTPRouteHandler) and handler.http_methods == {"OPTIONS"}
            if not added:
                yield route.path, handler
