"""A context over the test's database, and everybody whom a use case may meet."""

from __future__ import annotations

import pytest

from tests.rig.people import Cast, make_cast, make_context
from verderer.store.database import Database
from verderer.usecases.context import Context


@pytest.fixture
def ctx(database: Database) -> Context:
    return make_context(database)


@pytest.fixture
async def cast(ctx: Context) -> Cast:
    return await make_cast(ctx)
