"""Give an attempt the token with which its program reaches its project's tracking."""

from __future__ import annotations

from datetime import timedelta

from verderer.core.credentials import StepClaim
from verderer.core.credentials import make_step_token as sign
from verderer.core.model.attempt import AttemptKey
from verderer.usecases.context import Context

LONGEST = timedelta(days=366)
"""Only a second bound: the end of the attempt ends the token."""


def make_step_token(
    ctx: Context, attempt: AttemptKey, *, project: int, life: timedelta = LONGEST
) -> str:
    """A token that works while `attempt` is not over, and for `life` at most.

    Nothing is stored: made twice within one second it is the same token.
    """
    expires = ctx.clock() + min(life, LONGEST)
    return sign(ctx.key, StepClaim(attempt, project, int(expires.timestamp())))
