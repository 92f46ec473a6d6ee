"""Reads settings: defaults, then a TOML file, then the environment, then flags.

Whatever is not understood is refused, with the place it came from and the nearest spelling.
"""

from __future__ import annotations

import difflib
import os
import re
import tomllib
import types
from collections.abc import Iterator, Mapping
from dataclasses import Field, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from verderer.core.errors import Invalid, Problem
from verderer.settings import Secret, Settings

CONFIG_VARIABLE = "VERDERER_CONFIG"
CONFIG_FILE = "verderer.toml"
_PREFIX = "VERDERER_"
_NEARLY = 0.9
_YES = frozenset({"1", "true", "yes", "on"})
_NO = frozenset({"0", "false", "no", "off"})
# A Kubernetes Service called "verderer-server" puts VERDERER_SERVER_PORT=tcp://10.0.0.1:8642 and
# its kin into every pod beside it. They are not ours.
_SERVICE_LINK = re.compile(r".*_(SERVICE_HOST|SERVICE_PORT\w*|PORT_\d+_\w+)")


@dataclass(frozen=True, slots=True)
class Setting:
    """One field of one group, as a source may name it."""

    key: str
    """`server.port`; `data_dir` has no group."""
    kind: Any
    """The field's type without `| None`."""
    optional: bool
    field: Field[Any]

    @property
    def variable(self) -> str:
        """`VERDERER_SERVER_PORT`."""
        return _PREFIX + self.key.replace(".", "_").upper()


def known_settings() -> dict[str, Setting]:
    """Every setting by its key, in the order of the declaration."""
    return {setting.key: setting for setting in _walk(Settings, "")}


def _walk(group: type, prefix: str) -> Iterator[Setting]:
    hints = get_type_hints(group)
    for one in fields(group):
        hint = hints[one.name]
        if is_dataclass(hint):
            yield from _walk(hint, f"{one.name}.")  # type: ignore[arg-type]
            continue
        choices = get_args(hint) if get_origin(hint) in (types.UnionType, Union) else ()
        kind = next((c for c in choices if c is not type(None)), hint)
        yield Setting(f"{prefix}{one.name}", kind, type(None) in choices, one)


@dataclass(frozen=True, slots=True)
class _Given:
    value: object
    source: str


def load(
    *,
    config: Path | None = None,
    environ: Mapping[str, str] | None = None,
    flags: Mapping[str, object] | None = None,
) -> Settings:
    """Read every source and return what they agree on; `flags` are `{"server.port": 80}`.

    Raises:
        Invalid: with one problem for each unknown key, wrong type or value out of bounds.
    """
    environment = os.environ if environ is None else environ
    known = known_settings()
    problems: list[Problem] = []
    given = _from_environment(environment, known, problems)
    for key, value in (flags or {}).items():
        if value is not None:
            given[key] = _Given(value, f"--{key.rpartition('.')[2].replace('_', '-')}")
    chosen = _config_path(config, environment, given)
    given = _from_file(chosen, known, problems) | given if chosen is not None else given
    values = {}
    for key, one in given.items():
        try:
            values[key] = _convert(one.value, known[key])
        except ValueError as e:
            problems.append(Problem(field=key, message=f"{key}: {e} (from {one.source})"))
    if problems:
        raise Invalid(
            "; ".join(p.message + (f", {p.hint}" if p.hint else "") for p in problems),
            problems=problems,
            hint="docs/reference/settings.md lists every setting",
            code="settings",
        )
    return _build(values)


def _config_path(
    flag: Path | None, environ: Mapping[str, str], given: Mapping[str, _Given]
) -> Path | None:
    """The named file, which must exist, or the data folder's own, which need not."""
    named = flag or (Path(v) if (v := environ.get(CONFIG_VARIABLE)) else None)
    if named is not None:
        if not named.expanduser().is_file():
            raise Invalid(f"there is no settings file {named}", code="settings")
        return named.expanduser()
    data_dir = given["data_dir"].value if "data_dir" in given else Settings().data_dir
    own = Path(str(data_dir)).expanduser() / CONFIG_FILE
    return own if own.is_file() else None


def _from_environment(
    environ: Mapping[str, str], known: Mapping[str, Setting], problems: list[Problem]
) -> dict[str, _Given]:
    by_variable = {setting.variable: key for key, setting in known.items()}
    found = {}
    for name, value in sorted(environ.items()):
        if not name.startswith(_PREFIX) or name == CONFIG_VARIABLE:
            continue
        if _SERVICE_LINK.fullmatch(name) or value.startswith(("tcp://", "udp://")):
            continue
        if key := by_variable.get(name):
            found[key] = _Given(value, name)
        # Other variables of the product (a client's address, a step's own) are nobody's mistake.
        elif near := difflib.get_close_matches(name, by_variable, n=1, cutoff=_NEARLY):
            problems.append(_unknown(name, "the environment", near[0]))
    return found


def _from_file(
    path: Path, known: Mapping[str, Setting], problems: list[Problem]
) -> dict[str, _Given]:
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as e:
        raise Invalid(f"{path} cannot be read: {e}", code="settings") from e
    flat: dict[str, object] = {}
    groups = {key.partition(".")[0] for key in known if "." in key}
    for name, value in document.items():
        if name in groups and isinstance(value, dict):
            flat |= {f"{name}.{inner}": deep for inner, deep in value.items()}
        else:
            flat[name] = value
    found = {}
    for key, value in flat.items():
        if key in known:
            found[key] = _Given(value, str(path))
        else:
            near = difflib.get_close_matches(key, [*known, *groups], n=1)
            problems.append(_unknown(key, str(path), near[0] if near else ""))
    return found


def _unknown(name: str, source: str, near: str) -> Problem:
    return Problem(
        field=name,
        message=f"{name} in {source} is no setting",
        hint=f"did you mean {near}?" if near else "",
    )


def _convert(value: object, setting: Setting) -> object:
    """Return `value` as the setting's type.

    Raises:
        ValueError: in words for a person; a secret's value is never among them.
    """
    if value == "" and setting.optional:
        return None  # an empty variable is how a deployment unsets one
    kind = setting.kind
    if kind is bool:
        return _boolean(value)
    if kind in (int, float):
        return _number(value, setting)
    if not isinstance(value, str) and not (kind is Path and isinstance(value, Path)):
        shown = "something else" if kind is Secret else repr(value)
        raise ValueError(f"expected text, not {shown}")
    if get_origin(kind) is Literal:
        if value not in get_args(kind):
            raise ValueError(f"expected one of {', '.join(get_args(kind))}, not {value!r}")
        return value
    if kind is Path:
        return Path(value).expanduser().absolute()
    return Secret(str(value)) if kind is Secret else value


def _boolean(value: object) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in _YES | _NO:
        return value.lower() in _YES
    raise ValueError(f"expected true or false, not {value!r}")


def _number(value: object, setting: Setting) -> float:
    what = "a whole number" if setting.kind is int else "a number"
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(f"expected {what}, not {value!r}")
    if setting.kind is int and isinstance(value, float):
        raise ValueError(f"expected {what}, not {value!r}")
    try:
        number: float = setting.kind(value)
    except ValueError:
        raise ValueError(f"expected {what}, not {value!r}") from None
    low, high = setting.field.metadata.get("low"), setting.field.metadata.get("high")
    # Written so that NaN fails too.
    if low is not None and not number >= low:
        raise ValueError(f"must be at least {low}, not {number}")
    if high is not None and not number <= high:
        raise ValueError(f"must be at most {high}, not {number}")
    return number


def _build(values: Mapping[str, object]) -> Settings:
    hints = get_type_hints(Settings)
    grouped: dict[str, dict[str, object]] = {}
    top: dict[str, Any] = {}
    for key, value in values.items():
        group, dot, name = key.partition(".")
        if dot:
            grouped.setdefault(group, {})[name] = value
        else:
            top[key] = value
    return Settings(**top, **{group: hints[group](**inner) for group, inner in grouped.items()})
