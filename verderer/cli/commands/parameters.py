"""`-p key=value`: values of a pipeline's parameters."""

from __future__ import annotations

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
    found = {}
    for text in given or ():
        name, equals, value = text.partition("=")
        if not name or not equals:
            problem = Problem(field="-p", message=f"{text!r} is not KEY=VALUE")
            raise Invalid("a parameter is given as KEY=VALUE", problems=[problem])
        found[name] = value
    return found
