"""Which projects a reader may see."""

from __future__ import annotations

from dataclasses import dataclass

from verderer.core.model.actor import Scope
from verderer.store.database import Tx

_PROJECTS = """
    SELECT id, name, title FROM projects
     WHERE ($1 OR id = ANY($2::int[])) AND ($3::text IS NULL OR name = $3)
     ORDER BY name
"""


@dataclass(frozen=True, slots=True)
class ProjectRow:
    """A project that the reader may see."""

    id: int
    name: str
    title: str


async def list_projects(tx: Tx, scope: Scope, name: str | None = None) -> list[ProjectRow]:
    """The projects in `scope` by name, or the one called `name`."""
    rows = await tx.fetch(_PROJECTS, scope.everything, list(scope.projects), name)
    return [ProjectRow(**dict(row)) for row in rows]


async def visible_projects(tx: Tx, scope: Scope, name: str | None = None) -> list[int]:
    """Ids of `list_projects`."""
    return [project.id for project in await list_projects(tx, scope, name)]
