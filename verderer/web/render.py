"""Turns contexts and errors into pages."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Final, Protocol
from urllib.parse import quote, urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from litestar import Response
from litestar.datastructures import Cookie
from litestar.di import NamedDependency
from litestar.enums import MediaType
from litestar.params import SkipValidation
from markupsafe import Markup

from verderer.core.model.ids import run_id_text
from verderer.web import formats, graph, states, visitor
from verderer.web.formats import Formats
from verderer.web.language import NAMES, Language
from verderer.web.parts import Parts
from verderer.web.problem_words import translated
from verderer.web.visitor import FORM_COOKIE, Connection, Visitor

_TEMPLATES: Final = Path(__file__).parent / "templates"
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:;"
    " connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Vary": "HX-Request, Cookie",
}


class Page(Protocol):
    """A frozen dataclass: the context of one template."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


class Renderer:
    """One environment for each language, since compiled templates bind their words."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._environments = {
            language.code: _environment(parts, language) for language in parts.catalogues.all()
        }

    def text(
        self, here: Visitor, template: str, page: Page, *, block: str = "", path: str = ""
    ) -> str:
        """Render a template, or one block of it. Fields of `page` are its variables."""
        found = self._environments[here.language.code].get_template(template)
        values = {f.name: getattr(page, f.name) for f in fields(page)}
        values |= {"me": here, "path": path}
        if not block:
            return found.render(values)
        return "".join(found.blocks[block](found.new_context(values)))

    def page(
        self,
        request: Connection,
        template: str,
        page: Page,
        *,
        status: int = 200,
        cookies: list[Cookie] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Response[str]:
        """Answer with a page; with the block alone when htmx asks for one by its target's id."""
        here = visitor.of(request)
        found = self._environments[here.language.code].get_template(template)
        target = request.headers.get("hx-target", "") if request.headers.get("hx-request") else ""
        block = target if target in found.blocks else ""
        body = self.text(here, template, page, block=block, path=request.url.path)
        if here.fresh_form:
            form = visitor.cookie(self._parts, FORM_COOKIE, here.fresh_form, life_s=None)
            cookies = [*(cookies or []), form]
        return Response(
            body,
            status_code=status,
            media_type=MediaType.HTML,
            headers=HEADERS | dict(headers or {}),
            cookies=cookies or [],
        )


RendererArg = NamedDependency[SkipValidation[Renderer]]


def _environment(parts: Parts, language: Language) -> Environment:
    made = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=["jinja2.ext.i18n"],
        auto_reload=False,
    )
    made.install_gettext_translations(language.words, newstyle=True)  # type: ignore[attr-defined]
    says = Formats(language)
    made.filters.update(
        t=language.gettext,
        problem=partial(translated, language),
        ticks=_ticks,
        ago=says.ago,
        moment=says.moment,
        span=says.span,
        number=says.number,
        size=says.size,
        asked=says.asked,
        iso=formats.iso,
        browser=formats.browser,
        id=run_id_text,
        query=_query,
        quoted=lambda text: quote(str(text), safe=""),
    )
    made.tests["accelerator"] = lambda resource: "/" in resource
    made.globals.update(
        asset=parts.assets.url,
        icon=parts.assets.icon,
        bar_order=states.BAR,
        look=states.look,
        event=states.event,
        node_width=graph.NODE_WIDTH,
        says=says,
        languages=NAMES,
        version=parts.version,
        words=_words(language),
    )
    made.globals["ui"] = made.get_template("macros.html").module
    return made


def _ticks(text: str) -> Markup:
    """What stands between backticks as code; everything is escaped."""
    parts = str(text).split("`")
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if n % 2 else part for n, part in enumerate(parts)
    )


def _query(values: Mapping[str, object]) -> str:
    """`?a=1&b=2` without what is empty."""
    kept = {k: str(v) for k, v in values.items() if v not in (None, "", False)}
    return f"?{urlencode(kept)}" if kept else ""


def _words(language: Language) -> Markup:
    """Texts that scripts need, as JSON that is safe inside a script element."""
    texts = {
        "ago": {unit: language.gettext(text) for unit, text in formats.AGO.items()},
        "span": {unit: language.gettext(text) for unit, text in formats.SPAN.items()},
        "copied": language.gettext("Copied"),
        "loading": language.gettext("Loading…"),
        "noMatch": language.gettext("No match"),
        "lost": language.gettext("Connection lost, trying again…"),
    }
    return Markup(json.dumps(texts, ensure_ascii=False).replace("<", "\\u003c"))  # noqa: S704
