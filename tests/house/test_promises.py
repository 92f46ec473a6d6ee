"""Documents and code say the same."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from enum import StrEnum

import pytest

from tests.house.sources import ROOT
from verderer.core.model.actor import Role
from verderer.core.model.attempt import ATTEMPT_MOVES, AttemptState, EndCause
from verderer.core.model.cluster import ClusterKind
from verderer.core.model.run import RUN_MOVES, RunState
from verderer.core.model.step import STEP_MOVES, StepState
from verderer.core.version import VERSION

_MIGRATIONS = ROOT / "verderer" / "store" / "sql" / "migrations"


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("run_state", RunState),
        ("step_state", StepState),
        ("attempt_state", AttemptState),
        ("end_cause", EndCause),
        ("cluster_kind", ClusterKind),
        ("role", Role),
    ],
)
def test_an_enum_of_the_schema_is_that_of_the_core(name: str, kind: type[StrEnum]) -> None:
    text = "".join(p.read_text(encoding="utf-8") for p in sorted(_MIGRATIONS.glob("*.sql")))
    found = re.search(rf"CREATE TYPE {name} AS ENUM\s*\((.*?)\)", text, re.DOTALL)
    assert found
    assert re.findall(r"'(\w+)'", found[1]) == [member.value for member in kind]


def test_the_drawing_of_the_states_is_that_of_the_tables() -> None:
    assert (ROOT / "docs" / "states.md").read_text(encoding="utf-8") == drawing()


def drawing() -> str:
    """`docs/states.md`; `python -m tests.house.test_promises` writes it."""
    parts = [
        "# States\n",
        "Drawn from the tables of moves in `verderer/core/model`; a test keeps the two alike.\n",
    ]
    tables: list[tuple[str, Mapping[StrEnum, frozenset[StrEnum]]]] = [
        ("Run", RUN_MOVES),
        ("Step", STEP_MOVES),
        ("Attempt", ATTEMPT_MOVES),
    ]
    for title, moves in tables:
        lines = [
            f"## {title}\n",
            "```mermaid",
            "stateDiagram-v2",
            f"    [*] --> {next(iter(moves))}",
        ]
        for before, after in moves.items():
            lines += [f"    {before} --> {state}" for state in sorted(after)]
            if not after:
                lines.append(f"    {before} --> [*]")
        parts.append("\n".join([*lines, "```\n"]))
    return "\n".join(parts)


def test_the_version_is_said_once() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == VERSION


def test_every_dependency_has_its_reason() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [*project["dependencies"]]
    for group in project["optional-dependencies"].values():
        wanted += group
    names = {re.split(r"[\[><=; ]", one)[0].lower() for one in wanted} - {"verderer"}
    text = (ROOT / "docs" / "decisions.md").read_text(encoding="utf-8").lower()
    assert sorted(name for name in names if f"`{name}`" not in text) == []


if __name__ == "__main__":
    (ROOT / "docs" / "states.md").write_text(drawing(), encoding="utf-8")
