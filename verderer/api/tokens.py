"""/api/v1/me/tokens: one's own tokens for programs."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec
from litestar import delete, get, post
from litestar.params import JSONBody, PathParameter
from msgspec import Meta

from verderer.api.auth import ActorArg, ContextArg
from verderer.api.paging import USUAL, AfterArg, LimitArg, Page, page_of, read_cursor
from verderer.core.access import Action
from verderer.core.model.people import ApiToken
from verderer.usecases.people.login import NewToken
from verderer.usecases.people.tokens import (
    MOST_DAYS,
    USUAL_DAYS,
    create_token,
    list_tokens,
    revoke_token,
)

TokenId = Annotated[int, PathParameter(ge=1, lt=1 << 31)]


class NewTokenIn(msgspec.Struct, forbid_unknown_fields=True):
    """What the token is for and how long it works."""

    name: Annotated[str, Meta(min_length=1, max_length=100)]
    days: Annotated[int, Meta(ge=1, le=MOST_DAYS)] = USUAL_DAYS
    read_only: bool = False


class TokenOut(msgspec.Struct, frozen=True):
    """Everything about a token but the token."""

    id: int
    name: str
    hint: str
    """Its first characters."""
    read_only: bool
    created_at: datetime
    expires_at: datetime | None
    used_at: datetime | None
    """To the minute."""


class MadeToken(msgspec.Struct, frozen=True):
    """`token` is shown this once."""

    token: str
    info: TokenOut


@get("/me/tokens", opt={"action": Action.SELF_READ}, tags=["account"])
async def tokens(
    context: ContextArg, actor: ActorArg, limit: LimitArg = USUAL, after: AfterArg = ""
) -> Page[TokenOut]:
    """Those that were not revoked, the newest first."""
    before = read_cursor(after, int)
    rows = await list_tokens(context, actor, before=before, limit=limit + 1)
    return page_of(rows, limit, key=lambda t: t.id, show=show_token)


@post("/me/tokens", opt={"action": Action.SELF_CHANGE}, tags=["account"])
async def make(context: ContextArg, actor: ActorArg, data: JSONBody[NewTokenIn]) -> MadeToken:
    """Make a token that acts for its maker; with `read_only` it may only read."""
    made: NewToken = await create_token(
        context, actor, name=data.name, days=data.days, read_only=data.read_only
    )
    return MadeToken(made.token, show_token(made.info))


@delete("/me/tokens/{token:int}", opt={"action": Action.SELF_CHANGE}, tags=["account"])
async def revoke(context: ContextArg, actor: ActorArg, token: TokenId) -> None:
    """End a token at once, for good."""
    await revoke_token(context, actor, token)


def show_token(info: ApiToken) -> TokenOut:
    """What its owner sees of a token."""
    return TokenOut(
        id=info.id,
        name=info.name,
        hint=info.hint,
        read_only=info.read_only,
        created_at=info.created_at,
        expires_at=info.expires_at,
        used_at=info.used_at,
    )


ROUTES = (tokens, make, revoke)
