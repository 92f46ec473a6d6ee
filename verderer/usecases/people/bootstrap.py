"""The very first start: somebody who may log in, and a project to try things in."""

from __future__ import annotations

from dataclasses import dataclass

from verderer.core.credentials import make_one_time_password
from verderer.core.model.actor import Actor, ActorKind, Role
from verderer.store.tables import audit, people, projects
from verderer.usecases.context import Context
from verderer.usecases.people.passwords import hash_password

EMAIL = "admin@localhost"
PROJECT = "demo"
_SYSTEM = Actor(kind=ActorKind.SYSTEM, name="bootstrap")


@dataclass(frozen=True, slots=True)
class FirstLogin:
    """To be shown once on the terminal, and written nowhere."""

    email: str
    password: str
    project: str


async def bootstrap(ctx: Context) -> FirstLogin | None:
    """Make the first platform admin and the project `demo`; None when anybody exists already.

    Safe to call from many processes at every start: one of them makes both.
    """
    async with ctx.db.reading() as connection:
        if await people.any_user(connection):
            return None
    password = make_one_time_password(ctx.secret())
    hashed = await hash_password(password)
    async with ctx.db.transaction() as tx:
        await people.lock_admins(tx)
        if await people.any_user(tx):
            return None
        user = await people.add_user(
            tx, email=EMAIL, name="Administrator", password_hash=hashed, platform_admin=True
        )
        project = await projects.add(tx, name=PROJECT, title="Demo")
        await projects.put_member(tx, project.id, user.id, Role.ADMIN)
        entries = [
            audit.Entry(action="user.created", object=f"user:{EMAIL}"),
            audit.Entry(action="project.created", project=project.id, object=PROJECT),
        ]
        await audit.add(tx, _SYSTEM, entries)
    ctx.wakeups.wake(["auth"])
    return FirstLogin(EMAIL, password, PROJECT)
