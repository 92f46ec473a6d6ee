"""`-p key=value`: values of a pipeline's parameters."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import typer

from verderer.core.errors import Invalid, Problem

ParameterOption = Annotated[
    list[str] | None,
    typer.Option("--param", "-p", metavar="KEY=VALUE", help="A parameter; may be repeated."),
]


def parameters_of(given: list[str] | None) -> dict[str, str]:
    """The values by name; the last one of a name counts.

    Raises:
        Invalid: one is not KEY=VALUE.
    """
    return pairs_of(given or (), "-p")


def pairs_of(given: Iterable[str], option: str) -> dict[str, str]:
    """The values by name that `option` was given; the last one of a name counts.

    Raises:
        Invalid: one is not KEY=VALUE.
    """
    found = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not name or not equals:
            problem = Problem(field=option, message=f"{text!r} is not KEY=VALUE")
            raise Invalid(f"{option} is given as KEY=VALUE", problems=[problem])
        found[name] = value
    return found
