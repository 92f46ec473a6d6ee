"""People with their credentials, for tests of the doors and of what they may do."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache

from argon2 import PasswordHasher

from verderer.core.credentials import TokenKind, hash_token, hint_of, make_token
from verderer.core.model.actor import Actor, ActorKind, Role
from verderer.store.database import Database
from verderer.store.tables import people
from verderer.store.wakeups import Wakeups
from verderer.usecases.clusters import create_cluster_credential
from verderer.usecases.context import Context
from verderer.usecases.people.projects import create_project, put_member

SYSTEM = Actor(kind=ActorKind.SYSTEM, name="tests", platform_admin=True)
PASSWORD = "three words in a row 17"


def make_context(database: Database, *, key: bytes = b"k" * 32, url: str = "") -> Context:
    """A context over `database`, whose wakeups reach this process alone until started."""
    return Context(
        db=database,
        wakeups=Wakeups(database),
        clock=lambda: datetime.now(UTC),
        chance=lambda: random.getrandbits(64),
        key=key,
        public_url=url or "http://127.0.0.1:8642",
    )


@dataclass(frozen=True)
class Person:
    """Somebody with a password, a session and a token."""

    email: str
    password: str
    session: str
    token: str

    @property
    def bearer(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self.token}"}


async def make_person(
    ctx: Context, name: str, *, platform_admin: bool = False, read_only: bool = False
) -> Person:
    """An active account. Written into the tables, since honest hashing takes its time."""
    email = f"{name}@example.org"
    session, token = (
        make_token(kind, ctx.secret()) for kind in (TokenKind.SESSION, TokenKind.USER)
    )
    life = timedelta(days=1)
    async with ctx.db.transaction() as tx:
        user = await people.add_user(
            tx, email=email, name=name, password_hash=_hashed(), platform_admin=platform_admin
        )
        await people.set_password(tx, user.id, _hashed(), must_change=False)
        await people.add_session(tx, user.id, hash_token(session), life=life, origin="", agent="")
        await people.add_token(
            tx,
            user.id,
            hash_token(token),
            name="test",
            hint=hint_of(token),
            read_only=read_only,
            life=life,
        )
    return Person(email, PASSWORD, session, token)


@cache
def _hashed() -> str:
    return PasswordHasher(time_cost=3, memory_cost=19_456, parallelism=1).hash(PASSWORD)


@dataclass(frozen=True)
class Cast:
    """Two projects, `ours` and `theirs`, and one caller of each kind as seen from `ours`."""

    member: Person
    reader: Person
    """A member whose token may only read."""
    admin: Person
    stranger: Person
    """An admin of `theirs` alone."""
    root: Person
    agent: str


async def make_cast(ctx: Context) -> Cast:
    """Everybody whom a route may meet."""
    cast = Cast(
        member=await make_person(ctx, "member"),
        reader=await make_person(ctx, "reader", read_only=True),
        admin=await make_person(ctx, "admin"),
        stranger=await make_person(ctx, "stranger"),
        root=await make_person(ctx, "root", platform_admin=True),
        agent=await create_cluster_credential(ctx, SYSTEM, "local", "local"),
    )
    await create_project(ctx, SYSTEM, name="ours")
    await create_project(ctx, SYSTEM, name="theirs")
    for person, project, role in (
        (cast.admin, "ours", Role.ADMIN),
        (cast.member, "ours", Role.MEMBER),
        (cast.reader, "ours", Role.MEMBER),
        (cast.stranger, "theirs", Role.ADMIN),
    ):
        await put_member(ctx, SYSTEM, project, email=person.email, role=role)
    return cast
