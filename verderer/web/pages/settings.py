"""A reader's own settings: password, tokens for programs, browsers that are logged in."""

from __future__ import annotations

from dataclasses import dataclass

from litestar import Response, get, post
from litestar.params import FromPath
from litestar.response import Redirect

from verderer.core.access import Action
from verderer.core.model.people import ApiToken, Session
from verderer.usecases.people import account, tokens
from verderer.web import visitor
from verderer.web.gate import asks
from verderer.web.parts import PartsArg
from verderer.web.render import RendererArg
from verderer.web.visitor import HttpRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsPage:
    """Context of `settings.html`."""

    account: account.Account
    tokens: tuple[ApiToken, ...]
    sessions: tuple[Session, ...]
    made: str
    """A token that was made a moment ago: shown now and never again."""
    usual_days: int
    most_days: int
    public_url: str


@get("/settings", opt=asks(Action.SELF_READ))
async def settings_page(
    request: HttpRequest, parts: PartsArg, renderer: RendererArg
) -> Response[str]:
    """All of them."""
    return await _page(request, parts, renderer, made="")


@post("/settings/tokens", opt=asks(Action.SELF_CHANGE), status_code=200)
async def make_token(request: HttpRequest, parts: PartsArg, renderer: RendererArg) -> Response[str]:
    """Make a token and show it once."""
    form = await request.form()
    days = str(form.get("days", ""))
    made = await tokens.create_token(
        parts.ctx,
        visitor.of(request).who,
        name=str(form.get("name", "")),
        days=int(days) if days.isascii() and days.isdigit() and len(days) < 6 else 0,
        read_only=form.get("read_only") == "1",
    )
    return await _page(request, parts, renderer, made=made.token)


@post("/settings/tokens/{token:int}/revoke", opt=asks(Action.SELF_CHANGE))
async def revoke_token(
    request: HttpRequest, parts: PartsArg, token: FromPath[int]
) -> Response[str]:
    """End a token at once."""
    await tokens.revoke_token(parts.ctx, visitor.of(request).who, token)
    return Redirect("/settings#tokens", status_code=303)


@post("/settings/sessions/end", opt=asks(Action.SELF_CHANGE))
async def end_session(request: HttpRequest, parts: PartsArg) -> Response[str]:
    """End one browser's session, or all but this one."""
    here = visitor.of(request)
    form = await request.form()
    if session := str(form.get("session", "")):
        await account.end_session(parts.ctx, here.who, session)
    else:
        await account.end_sessions(parts.ctx, here.who, but=here.session)
    return Redirect("/settings#sessions", status_code=303)


async def _page(
    request: HttpRequest, parts: PartsArg, renderer: RendererArg, *, made: str
) -> Response[str]:
    who = visitor.of(request).who
    page = SettingsPage(
        account=await account.read_account(parts.ctx, who),
        tokens=tuple(await tokens.list_tokens(parts.ctx, who, limit=200)),
        sessions=tuple(await account.list_sessions(parts.ctx, who)),
        made=made,
        usual_days=tokens.USUAL_DAYS,
        most_days=tokens.MOST_DAYS,
        public_url=parts.ctx.public_url,
    )
    return renderer.page(request, "settings.html", page)


ROUTES = (settings_page, make_token, revoke_token, end_session)
