"""Writes `docs/reference/settings.md` from the docstrings in `verderer.settings`."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path
from typing import Literal, get_args, get_origin

import verderer.settings as declared
from verderer.cli.configuration import CONFIG_FILE, CONFIG_VARIABLE, Setting, known_settings
from verderer.settings import Secret

_HEAD = f"""# Settings

This page is generated from `verderer/settings.py`; `python -m verderer.cli.settings_reference`
writes it again.

A value is taken from, the later winning:

1. the default below;
2. a TOML file: `--config FILE`, or `{CONFIG_VARIABLE}`, or `{CONFIG_FILE}` in the data folder;
3. the environment;
4. a command-line flag, where the command has one.

Unknown keys are refused, with the nearest spelling. An empty variable unsets an optional setting.
"""


def reference() -> str:
    """The whole page."""
    groups: dict[str, list[Setting]] = {}
    for setting in known_settings().values():
        groups.setdefault(setting.key.rpartition(".")[0], []).append(setting)
    words = _docstrings()
    parts = [_HEAD]
    for group, members in groups.items():
        title, about = (f"`[{group}]`", words[group]) if group else ("No group", "")
        parts.append(f"## {title}\n")
        if about:
            parts.append(f"{about}\n")
        parts += [_entry(setting, words[setting.key]) for setting in members]
    return "\n".join(parts)


def _entry(setting: Setting, words: str) -> str:
    return (
        f"### `{setting.key}`\n\n"
        f"{words}\n\n"
        f"- type: {_type(setting)}\n"
        f"- default: {_default(setting)}\n"
        f"- environment: `{setting.variable}`\n"
    )


def _type(setting: Setting) -> str:
    kind = setting.kind
    names = {bool: "true or false", int: "whole number", float: "number", str: "text"}
    if get_origin(kind) is Literal:
        return "one of " + ", ".join(f"`{choice}`" for choice in get_args(kind))
    name = names.get(kind) or {Path: "path", Secret: "text, never printed"}[kind]
    low, high = setting.field.metadata.get("low"), setting.field.metadata.get("high")
    if low is not None and high is not None:
        return f"{name}, {low} to {high}"
    return f"{name}, at least {low}" if low is not None else name


def _default(setting: Setting) -> str:
    if setting.key == "data_dir":
        return "`~/.local/share/verderer`"
    default = setting.field.default
    if default is None:
        return "unset"
    shown = str(default).lower() if isinstance(default, bool) else str(default)
    return f"`{shown}`" if shown else "empty"


def _docstrings() -> dict[str, str]:
    """What stands below each field, by key, and below each group's class line, by group."""
    tree = ast.parse(inspect.getsource(declared))
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    words = dict(_below_fields(classes["Settings"], ""))
    for statement in classes["Settings"].body:
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.annotation, ast.Name):
            group = classes.get(statement.annotation.id)
            if group is not None and isinstance(statement.target, ast.Name):
                words[statement.target.id] = _joined(ast.get_docstring(group) or "")
                words |= _below_fields(group, f"{statement.target.id}.")
    return words


def _below_fields(node: ast.ClassDef, prefix: str) -> dict[str, str]:
    found = {}
    for statement, following in zip(node.body, node.body[1:], strict=False):
        if (
            isinstance(statement, ast.AnnAssign)
            and isinstance(statement.target, ast.Name)
            and isinstance(following, ast.Expr)
            and isinstance(following.value, ast.Constant)
            and isinstance(following.value.value, str)
        ):
            found[prefix + statement.target.id] = _joined(following.value.value)
    return found


def _joined(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


def main() -> None:
    """Write the page below the folder that holds the package."""
    page = Path(declared.__file__).parents[1] / "docs" / "reference" / "settings.md"
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(reference(), encoding="utf-8")


if __name__ == "__main__":
    main()
