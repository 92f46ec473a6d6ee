"""POST /api/v1/login/first: replace the one-time password and get a token, in one step."""

from __future__ import annotations

from typing import Any

from litestar import Request, post
from litestar.params import JSONBody

from verderer.api.auth import ContextArg
from verderer.api.gate import origin_of
from verderer.usecases.first_login import first_login
from verderer.wire.users import FirstLogin, TokenGiven


@post(
    "/login/first",
    opt={"public": "this is where a first token comes from"},
    tags=["account"],
    summary="Replace the one-time password and log in",
)
async def log_in_first(
    request: Request[Any, Any, Any], context: ContextArg, data: JSONBody[FirstLogin]
) -> TokenGiven:
    """Exchange a one-time password and a new one for a token of 90 days.

    401 `wrong_password`; 409 `conflict` when the password is not a one-time password; 422
    `weak_password` about the new one; 429 `too_many` after ten failures in five minutes.
    """
    made = await first_login(
        context,
        email=data.email,
        password=data.password,
        new=data.new,
        machine=data.machine,
        origin=origin_of(request.scope),
    )
    return TokenGiven(
        token=made.token, email=data.email.strip().lower(), expires_at=made.info.expires_at
    )


ROUTES = (log_in_first,)
