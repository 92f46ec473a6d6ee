"""Why PostgreSQL does not let us in, in words that help and hold no secret."""

from __future__ import annotations

import ssl

import asyncpg
import pytest

from verderer.core.errors import Fault, Refusal
from verderer.store.connecting import not_connected, refuse_old

DSN = "postgresql://ana:s3cret@db.example.com:5433/forest"


def test_a_server_that_is_too_old_is_named_with_its_version() -> None:
    with pytest.raises(Refusal, match="is version 14; 15 is the oldest") as e:
        refuse_old(140_012, DSN)
    assert "database.url" in e.value.hint
    refuse_old(150_000, DSN)


@pytest.mark.parametrize(
    ("error", "kind", "says"),
    [
        (asyncpg.InvalidPasswordError("no"), Refusal, "does not let ana in"),
        (asyncpg.InvalidCatalogNameError("no"), Refusal, "has no database forest"),
        (ValueError("in s3cret@db"), Refusal, "database.url cannot be used: in …@db"),
        (ssl.SSLCertVerificationError("who?"), Refusal, "cannot be checked: "),
        (
            asyncpg.ClientConfigurationError('root certificate file "x" is not there\nHINT: y'),
            Refusal,
            'cannot be checked: root certificate file "x" is not there',
        ),
        (ConnectionRefusedError("refused"), Fault, "cannot be reached: refused"),
        (TimeoutError(), Fault, "cannot be reached: TimeoutError"),
    ],
)
def test_what_keeps_us_out(error: Exception, kind: type[Exception], says: str) -> None:
    told = not_connected(error, DSN)
    assert isinstance(told, kind)
    assert says in told.message
    assert told.hint
    assert "s3cret" not in told.message + told.hint
