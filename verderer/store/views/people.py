"""People, for pages and lists."""

from __future__ import annotations

from verderer.core.model.actor import Scope
from verderer.core.model.people import User
from verderer.store.database import Tx

# A reader who does not see everything sees those who share a project.
_LIST = """
    SELECT id, email, name, platform_admin, active, must_change, language, created_at
      FROM users AS u
     WHERE email > $3
       AND ($1 OR EXISTS (SELECT FROM project_roles AS m
                           WHERE m.user_id = u.id AND m.project_id = ANY($2::int[])))
     ORDER BY email LIMIT $4
"""


async def visible(tx: Tx, scope: Scope, *, after: str = "", limit: int = 50) -> list[User]:
    """Users by e-mail address, beginning behind the address `after`."""
    rows = await tx.fetch(_LIST, scope.everything, list(scope.projects), after, limit)
    return [User(**row) for row in rows]
