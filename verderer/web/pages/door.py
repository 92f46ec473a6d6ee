"""Log in, replace a one-time password, log out; theme, language and project of a reader."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from litestar import Response, get, post
from litestar.response import Redirect

from verderer.core.access import Action
from verderer.core.credentials import SESSION_COOKIE
from verderer.core.errors import Refusal
from verderer.core.passwords import MIN_PASSWORD
from verderer.usecases.people import account, login
from verderer.web import visitor
from verderer.web.errors import SENTENCES, status_of
from verderer.web.gate import anybody, asks
from verderer.web.parts import PartsArg
from verderer.web.render import RendererArg
from verderer.web.visitor import (
    LANGUAGE_COOKIE,
    PROJECT_COOKIE,
    THEME_COOKIE,
    THEMES,
    HttpRequest,
    cookie,
)

_WHY_LOGIN = "nobody is logged in yet"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginPage:
    """Context of `login.html`."""

    email: str = ""
    error: str = ""
    next: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PasswordPage:
    """Context of `password.html`."""

    error: str = ""
    hints: tuple[str, ...] = ()
    least: int = MIN_PASSWORD


@get("/login", opt=anybody(_WHY_LOGIN))
async def login_page(request: HttpRequest, renderer: RendererArg) -> Response[str]:
    """The form."""
    after = local_path(request.query_params.get("next", ""))
    return renderer.page(request, "login.html", LoginPage(next=after))


@post("/login", opt=anybody(_WHY_LOGIN))
async def log_in(request: HttpRequest, parts: PartsArg, renderer: RendererArg) -> Response[str]:
    """Open a session; the browser is sent to where it wanted to go."""
    form = await request.form()
    email, after = str(form.get("email", ""))[:254], local_path(str(form.get("next", "")))
    try:
        opened = await login.login(
            parts.ctx,
            email=email,
            password=str(form.get("password", "")),
            origin=request.client.host if request.client else "",
            user_agent=request.headers.get("user-agent", ""),
        )
    except Refusal as e:
        page = LoginPage(email=email, error=SENTENCES.get(e.code, e.message), next=after)
        return renderer.page(request, "login.html", page, status=status_of(e))
    life = int(parts.ctx.session_life.total_seconds())
    session = cookie(parts, SESSION_COOKIE, opened.token, life_s=life)
    target = "/password" if opened.user.must_change else after or "/"
    return Redirect(target, status_code=303, cookies=[session])


@post("/logout", opt=asks(Action.SELF_READ))
async def log_out(request: HttpRequest, parts: PartsArg) -> Response[str]:
    """End this browser's session."""
    here = visitor.of(request)
    await login.logout(parts.ctx, here.session, origin=here.who.origin)
    gone = cookie(parts, SESSION_COOKIE, "", life_s=0)
    return Redirect("/login", status_code=303, cookies=[gone])


@get("/password", opt=asks(Action.SELF_PASSWORD))
async def password_page(request: HttpRequest, renderer: RendererArg) -> Response[str]:
    """Replace the password; the only page that a one-time password opens."""
    return renderer.page(request, "password.html", PasswordPage())


@post("/password", opt=asks(Action.SELF_PASSWORD))
async def set_password(
    request: HttpRequest, parts: PartsArg, renderer: RendererArg
) -> Response[str]:
    """Replace it, and end every other session."""
    here = visitor.of(request)
    form = await request.form()
    new = str(form.get("new", ""))
    if new != str(form.get("again", "")):
        page = PasswordPage(error=here.language.gettext("The two new passwords differ."))
        return renderer.page(request, "password.html", page, status=422)
    try:
        await account.change_password(
            parts.ctx, here.who, old=str(form.get("old", "")), new=new, session=here.session
        )
    except Refusal as e:
        problems = tuple(p.message for p in getattr(e, "problems", ()))
        page = PasswordPage(error=SENTENCES.get(e.code, e.message), hints=problems)
        return renderer.page(request, "password.html", page, status=status_of(e))
    return Redirect("/", status_code=303)


@post("/preferences", opt=anybody("theme and language are wanted before logging in, too"))
async def set_preferences(request: HttpRequest, parts: PartsArg) -> Response[str]:
    """Remember theme, language or project, and go back to where the reader was."""
    here = visitor.of(request)
    form = await request.form()
    cookies = []
    if (theme := str(form.get("theme", ""))) in THEMES:
        cookies.append(cookie(parts, THEME_COOKIE, theme))
    if "language" in form:
        language = parts.catalogues.choose(str(form["language"]))
        cookies.append(cookie(parts, LANGUAGE_COOKIE, language.code))
        if here.actor and not here.actor.must_change and not here.actor.read_only:
            await account.set_language(parts.ctx, here.actor, language.tag)
    if "project" in form:
        cookies.append(cookie(parts, PROJECT_COOKIE, str(form["project"])[:63]))
    return Redirect(local_path(str(form.get("back", ""))) or "/", status_code=303, cookies=cookies)


def local_path(text: str) -> str:
    """The text if it is a path of ours, else empty: a link must not lead people elsewhere."""
    parsed = urlsplit(text)
    safe = text.startswith("/") and not text.startswith(("//", "/\\")) and "\\" not in text
    plain = not parsed.scheme and not parsed.netloc and text.isprintable()
    return text if safe and plain and len(text) < 2_000 else ""


ROUTES = (login_page, log_in, log_out, password_page, set_password, set_preferences)
