"""What a carrier's ticket opens, and that nobody else can write one."""

from __future__ import annotations

import base64
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from verderer.core.errors import NotAllowed
from verderer.usecases.agents.carry_files import Scope, opened

SCOPE = Scope(1, "v1-0-1", ("artifacts/1/r/0/1/in", "artifacts/1/r/0/1/many/"), ("a/out",))


@pytest.mark.parametrize(
    ("key", "writing", "allowed"),
    [
        ("artifacts/1/r/0/1/in", False, True),
        ("artifacts/1/r/0/1/in/more", False, False),
        ("artifacts/1/r/0/1/inner", False, False),
        ("artifacts/1/r/0/1/many/x", False, True),
        ("artifacts/1/r/0/1/in", True, False),
        ("a/out", True, True),
        ("a/out/deep/x", True, True),
        ("a/outer", True, False),
        ("a/out", False, False),
        ("", True, False),
    ],
)
def test_a_ticket_opens_the_files_of_its_step_alone(key: str, writing: bool, allowed: bool) -> None:
    assert SCOPE.covers(key, writing=writing) is allowed


@pytest.mark.parametrize("signature", ["", "0" * 64, "ü"])
@pytest.mark.parametrize("prefix", ["vrc_", "", "vrd_u_"])
async def test_a_ticket_that_was_not_signed_here_opens_nothing(signature: str, prefix: str) -> None:
    body = base64.urlsafe_b64encode(msgspec.msgpack.encode(SCOPE)).decode()
    ctx = cast("Any", SimpleNamespace(key=b"k" * 32))
    with pytest.raises(NotAllowed) as refused:
        await opened(ctx, f"{prefix}{body}.{signature}", writing=True, keys=["a/out"])
    assert refused.value.code == "ticket_invalid"
