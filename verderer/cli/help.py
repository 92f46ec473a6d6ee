"""Help in sections, without the library that draws boxes: it would double the start-up time."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup


class GroupedHelp(TyperGroup):
    """Lists commands under the panels that they were registered with."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write one section for each panel, in the order of registration."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if command is None or command.hidden:
                continue
            panel = getattr(command, "rich_help_panel", None)
            title = panel if isinstance(panel, str) else "Commands"
            sections.setdefault(title, []).append((name, command.get_short_help_str(limit=60)))
        for title, rows in sections.items():
            with formatter.section(title):
                formatter.write_dl(rows)
