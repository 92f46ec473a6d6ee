"""Which server the command line talks to, and as whom: `~/.config/verderer/config.toml`.

The file holds tokens, so nobody but its owner may read it.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from verderer.core.errors import Invalid, NotAuthenticated, NotFound, Problem

DEFAULT_URL = "http://127.0.0.1:8642"
"""Where `verderer up` listens."""
URL_VARIABLE = "VERDERER_URL"
TOKEN_VARIABLE = "VERDERER_TOKEN"
CONTEXT_VARIABLE = "VERDERER_CONTEXT"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """One server and who one is there."""

    name: str
    url: str = DEFAULT_URL
    email: str = ""
    token: str = field(default="", repr=False)
    ca_file: str = ""
    """PEM file of the authority that signed the server's certificate; empty: the system's."""


@dataclass(frozen=True, slots=True)
class Contexts:
    """Everything in the file."""

    current: str = "default"
    known: tuple[Context, ...] = ()

    def get(self, name: str) -> Context | None:
        return next((one for one in self.known if one.name == name), None)

    def with_context(self, context: Context) -> Contexts:
        """The same with `context` added or replaced, and current."""
        others = tuple(one for one in self.known if one.name != context.name)
        return Contexts(context.name, (*others, context))

    def without_token(self, name: str) -> Contexts:
        """The same with nobody logged in at `name`."""
        known = tuple(replace(one, token="") if one.name == name else one for one in self.known)
        return replace(self, known=known)


def config_path() -> Path:
    """Where the file is; `XDG_CONFIG_HOME` moves it.

    Raises:
        Invalid: nobody knows where this user is at home.
    """
    base = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    try:
        return Path(base).expanduser() / "verderer" / "config.toml"
    except RuntimeError:
        hint = "Set HOME or XDG_CONFIG_HOME to a folder of yours."
        raise Invalid("this user has no home folder", hint=hint, code="settings") from None


def load() -> Contexts:
    """Read the file; none is as good as an empty one.

    Raises:
        Invalid: it cannot be read, or others may read it.
    """
    import tomllib

    path = config_path()
    try:
        if path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise Invalid(f"{path} can be read by others", hint=f"chmod 600 {path}")
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Contexts()
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as e:
        hint = "Mend or remove it; `verderer login` writes it anew."
        raise Invalid(f"{path} cannot be read: {e}", hint=hint) from e
    found = document.get("contexts")
    tables = found if isinstance(found, dict) else {}
    known = [_context(name, one) for name, one in tables.items() if isinstance(one, dict)]
    return Contexts(str(document.get("current", "default")), tuple(known))


def save(contexts: Contexts) -> None:
    """Write the file, readable by its owner alone, all of it or nothing."""
    import tempfile

    path = config_path()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    lines = [f"current = {_quoted(contexts.current)}"]
    for one in contexts.known:
        lines += ["", f"[contexts.{one.name}]"]
        pairs = (("url", one.url), ("email", one.email), ("token", one.token))
        lines += [f"{k} = {_quoted(v)}" for k, v in (*pairs, ("ca_file", one.ca_file)) if v]
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".config-")  # mode 0600
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
        Path(name).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise


def chosen(name: str = "") -> Context:
    """The context that a command uses: the environment's, the named one, or the current one.

    A token is never sent to another server than the one that it was made at.

    Raises:
        NotFound: no context has this name.
    """
    contexts = load()
    wanted = name or os.environ.get(CONTEXT_VARIABLE, "")
    found = contexts.get(wanted or contexts.current)
    if found is None:
        if wanted:
            raise NotFound(f"there is no context {wanted!r}", hint=_names(contexts))
        found = Context(name="default")
    if url := os.environ.get(URL_VARIABLE, "").rstrip("/"):
        same = next((one for one in (found, *contexts.known) if one.url == url), None)
        found = same or Context(name="environment", url=url)
    if token := os.environ.get(TOKEN_VARIABLE, ""):
        found = replace(found, token=token, email="")
    return found


def logged_in(name: str = "") -> Context:
    """The same, when there is a token for it.

    Raises:
        NotAuthenticated: there is none.
    """
    found = chosen(name)
    if not found.token:
        hint = "verderer login" + ("" if found.url == DEFAULT_URL else f" {found.url}")
        raise NotAuthenticated(f"you are not logged in at {found.url}", hint=hint)
    return found


def check_name(name: str) -> str:
    """Return a name that a context can have.

    Raises:
        Invalid: it cannot.
    """
    if not _NAME.fullmatch(name):
        problem = Problem(field="context", message="letters, digits, - and _, 63 at most")
        raise Invalid(f"{name!r} cannot name a context", problems=[problem])
    return name


def _context(name: str, values: dict[str, Any]) -> Context:
    def text(key: str) -> str:
        return str(values.get(key, ""))

    url = text("url").rstrip("/") or DEFAULT_URL
    return Context(
        name=name, url=url, email=text("email"), token=text("token"), ca_file=text("ca_file")
    )


def _names(contexts: Contexts) -> str:
    names = ", ".join(one.name for one in contexts.known)
    return f"There are: {names}" if names else "verderer login --context NAME makes one"


def _quoted(text: str) -> str:
    # What JSON escapes, TOML's basic strings read the same way.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
