"""A user without a home, as containers have them."""

from __future__ import annotations

from pathlib import Path

import pytest

from verderer.cli.commands import contexts
from verderer.core.errors import Invalid


def test_it_is_said_and_a_folder_can_be_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("HOME", "~")  # what is left of it when nobody knows
    with pytest.raises(Invalid, match="has no home folder") as refused:
        contexts.config_path()
    assert "XDG_CONFIG_HOME" in refused.value.hint
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert contexts.config_path() == tmp_path / "verderer" / "config.toml"
