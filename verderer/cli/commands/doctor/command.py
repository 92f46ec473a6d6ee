"""The command itself: which checks are made, and the report."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from verderer.cli.commands import contexts
from verderer.cli.commands.remote import patiently, run
from verderer.cli.screen.failures import Exit
from verderer.cli.screen.printing import Format, OutputOption, print_document
from verderer.cli.screen.terminal import Tone, clean, paint, say

if TYPE_CHECKING:
    from verderer.cli.commands.doctor.findings import Finding
    from verderer.settings import Settings


def doctor(
    server: Annotated[
        bool | None,
        typer.Option(
            "--server/--no-server",
            help="Also look at the database and the object store. (default: where they are)",
            show_default=False,
        ),
    ] = None,
    config: Annotated[
        Path | None, typer.Option("--config", help="Settings file (TOML).", show_default=False)
    ] = None,
    data_dir: Annotated[
        Path | None, typer.Option("--data-dir", help="The data folder.", show_default=False)
    ] = None,
    cluster: Annotated[
        str,
        typer.Option("--cluster", help="Check by check, what its agent found."),
    ] = "",
    fix: Annotated[bool, typer.Option("--fix", help="Mend the database and the bucket.")] = False,
    output: OutputOption = Format.TABLE,
) -> None:
    """Check everything that has to be right, and say what to do about what is not.

    Ends with 1 when something does not work; a warning is no failure.
    """
    from verderer.cli.commands.doctor.findings import FindingOut, Verdict

    settings = _settings(server, config, data_dir)
    found = run(_look(settings, cluster=cluster, fix=fix))
    if output is not Format.TABLE:
        rows = [FindingOut(f.verdict.value, f.what, f.detail, f.remedy) for f in found]
        print_document(rows, output)
    else:
        _print(found)
    if any(f.verdict is Verdict.FAIL for f in found):
        raise typer.Exit(Exit.FAILED)


async def _look(settings: Settings | None, *, cluster: str, fix: bool) -> list[Finding]:
    from verderer.cli.commands.doctor.client_checks import look_at_server

    async with patiently("Looking at everything"):
        found = await look_at_server(contexts.chosen(), cluster=cluster)
        if settings is not None:
            from verderer.cli.commands.doctor.server_checks import look_at_machine

            found += await look_at_machine(settings, fix=fix)
    return found


def _settings(server: bool | None, config: Path | None, data_dir: Path | None) -> Settings | None:
    """The settings of the server on this machine; None when there is none to look at."""
    if server is False:
        return None
    from verderer.cli.configuration import load

    settings = load(config=config, flags={"data_dir": data_dir})
    asked = server or config is not None or data_dir is not None
    here = settings.data_dir.exists() or "VERDERER_DATABASE_URL" in os.environ
    return settings if asked or here else None


def _print(found: list[Finding]) -> None:
    from verderer.cli.commands.doctor.findings import SHAPES, TONES, Verdict

    longest = max(len(f.what) for f in found)
    for f in found:
        mark = paint(f"{SHAPES[f.verdict]} {f.verdict.value:4}", TONES[f.verdict])
        print(f"{mark}  {clean(f.what).ljust(longest)}  {clean(f.detail)}")
        if f.remedy:
            print(f"{' ' * (longest + 8)}  {paint('→', Tone.BUSY)} {clean(f.remedy)}")
    bad = sum(f.verdict is Verdict.FAIL for f in found)
    poor = sum(f.verdict is Verdict.WARN for f in found)
    if bad or poor:
        say(f"{bad} failed, {poor} to look at, {len(found) - bad - poor} in order.")
    else:
        say("Everything is in order.", Tone.GOOD)
