"""Writes the reference half of `docs/cli.md` from the commands themselves.

What stands above the marker is written by people and kept.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from verderer.cli.main import app

MARKER = "<!-- Everything below is generated: python -m verderer.cli.cli_reference -->"
PAGE = Path(__file__).parents[2] / "docs" / "cli.md"


def reference() -> str:
    """Every command with its arguments and options."""
    command = typer.main.get_command(app)
    context = command.context_class(command, info_name="verderer")
    parts = [MARKER, "", "## Reference", ""]
    parts += _options(command, context)
    for name, one in _commands(command, context, ""):
        parts += _entry(name, one, context)
    return "\n".join(parts)


def _commands(group: Any, context: Any, prefix: str) -> list[tuple[str, Any]]:
    """Each visible command with its full name, those of a group behind the group."""
    found = []
    for name in group.list_commands(context):
        one = group.get_command(context, name)
        if one is None or one.hidden:
            continue
        found.append((f"{prefix}{name}", one))
        if hasattr(one, "list_commands"):
            found += _commands(one, context, f"{prefix}{name} ")
    return found


def _entry(name: str, command: Any, context: Any) -> list[str]:
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    words = " ".join(_usage(p) for p in arguments)
    title = f"### `verderer {name}{' ' + words if words else ''}`"
    about = (command.help or "").replace("\f", "").strip()
    lines = [title, "", about, ""]
    lines += [f"- `{_name(one)}`: {one.help}" for one in arguments if one.help]
    return [*lines, *_options(command, context)]


def _options(command: Any, context: Any) -> list[str]:
    lines = []
    for one in command.params:
        if one.param_type_name != "option" or one.hidden or "--help" in one.opts:
            continue
        record = one.get_help_record(context)
        if record is None or one.name in ("install_completion", "show_completion"):
            continue
        flags, words = record
        lines.append(f"- `{flags}`" + (f": {' '.join(words.split())}" if words else ""))
    return [*lines, ""]


def _name(argument: Any) -> str:
    return str(argument.metavar or argument.name.upper())


def _usage(argument: Any) -> str:
    return _name(argument) if argument.required else f"[{_name(argument)}]"


def page(written: str) -> str:
    """The page with its generated half renewed."""
    return written.partition(MARKER)[0] + reference().rstrip() + "\n"


def main() -> None:
    """Renew the page."""
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
