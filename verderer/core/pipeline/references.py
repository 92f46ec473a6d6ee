"""`${{ … }}` in texts: found, checked and filled in.

A reference names one value: `params.NAME`, `matrix.NAME`, `run.id`, `run.name`, `step.name`,
`inputs.NAME.path` or `outputs.NAME.path`. There are no operators. `$${{` stands for `${{` itself.

A value is put in as it is, once: what it contains is never read again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

_MARK: Final = "${{"
_FOUND: Final = re.compile(r"\$\$\{\{|\$\{\{(?P<inner>[^{}]*)\}\}|\$\{\{")
_NAME: Final = re.compile(
    r"(?:params|matrix)\.[A-Za-z_][A-Za-z0-9_-]*"
    r"|run\.(?:id|name)|step\.name"
    r"|(?:inputs|outputs)\.[A-Za-z_][A-Za-z0-9_-]*\.path"
)
_SHELLS: Final = frozenset({"sh", "bash", "dash", "ash", "zsh", "ksh"})
_GIVES_CODE: Final = re.compile(r"-[A-Za-z]*c[A-Za-z]*")
_TAKES_WORD: Final = ("-o", "+o", "-O", "+O", "--rcfile", "--init-file")

FIXED: Final = ("run.id", "run.name", "step.name")
"""References that every step may use."""


@dataclass(frozen=True, slots=True)
class Reference:
    """One `${{ … }}` in a text: as written, and the name inside it without spaces."""

    written: str
    name: str

    @property
    def is_known_shape(self) -> bool:
        """Whether the name is one of those that exist at all."""
        return _NAME.fullmatch(self.name) is not None

    @property
    def is_closed(self) -> bool:
        """Whether `}}` ends it."""
        return self.written.endswith("}}")


def find_references(text: str) -> Iterator[Reference]:
    """Every reference in `text`, in order, those that are malformed included."""
    if _MARK not in text:
        return
    for found in _FOUND.finditer(text):
        if found[0] == "$${{":
            continue
        inner = found["inner"]
        yield Reference(written=found[0], name="" if inner is None else inner.strip())


def substitute(text: str, values: Mapping[str, str]) -> str:
    """Fill in every reference of `text` from `values`, whose keys are names as `params.lr`.

    Raises:
        KeyError: a name is not in `values`. What `parse` accepted never asks for one.
    """
    if _MARK not in text:
        return text

    def value(found: re.Match[str]) -> str:
        if found["inner"] is None:
            return _MARK
        return values[found["inner"].strip()]

    return _FOUND.sub(value, text)


def variable_for(name: str) -> str:
    """The environment variable that holds the value of the reference `name`.

    `params.learning-rate` is in `VERDERER_PARAM_LEARNING_RATE`, `inputs.data.path` in
    `VERDERER_INPUT_DATA`.
    """
    scope, _, rest = name.partition(".")
    prefix = {"params": "PARAM", "inputs": "INPUT", "outputs": "OUTPUT"}.get(scope, scope.upper())
    return f"VERDERER_{prefix}_{as_variable(rest.removesuffix('.path'))}"


def as_variable(name: str) -> str:
    """The part of an environment variable's name that stands for `name`."""
    return name.upper().replace("-", "_")


def shell_code(words: tuple[str, ...]) -> int | None:
    """The index of the word that a shell would run as code, or None.

    It is CODE in `[sh, -c, CODE]` and in `[env, bash, -eu, -o, pipefail, -c, CODE]`; there is none
    in `[bash, train.sh, -c, config]`, where the shell runs a file.
    """
    for start, word in enumerate(words):
        if word.rsplit("/", 1)[-1] in _SHELLS:
            return _code_after(words, start + 1)
    return None


def _code_after(words: tuple[str, ...], at: int) -> int | None:
    given = False
    while at < len(words) and words[at][:1] in ("-", "+"):
        given = given or _GIVES_CODE.fullmatch(words[at]) is not None
        at += 2 if words[at] in _TAKES_WORD else 1
    return at if given and at < len(words) else None
