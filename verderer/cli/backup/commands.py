"""`verderer backup` and `verderer restore`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from verderer.cli.backup.manifest import Manifest
    from verderer.settings import Settings

Folder = Annotated[Path, typer.Argument(help="The backup's folder.", show_default=False)]
Config = Annotated[
    Path | None, typer.Option("--config", help="Settings file (TOML).", show_default=False)
]
DataDir = Annotated[
    Path | None, typer.Option("--data-dir", help="The data folder.", show_default=False)
]


def backup(
    folder: Folder,
    objects: Annotated[
        bool | None,
        typer.Option(
            "--objects/--no-objects",
            help="Copy the objects, or list them alone. (default: copied from a folder, "
            "listed from a bucket)",
            show_default=False,
        ),
    ] = None,
    config: Config = None,
    data_dir: DataDir = None,
) -> None:
    """Write database, objects and a manifest into a new folder, while everything goes on.

    The secret key is not in it. What is holds everybody's data: keep it as carefully.
    """
    import asyncio

    from verderer.cli.backup.making import make_backup
    from verderer.cli.backup.place import reachable_database

    settings = _settings(config, data_dir)
    bucket = settings.objects_url.startswith(("s3://", "s3a://"))
    copied = not bucket if objects is None else objects
    with reachable_database(settings) as reached:
        made = asyncio.run(make_backup(reached, folder.expanduser().absolute(), copied=copied))
    print(f"Backed up to {folder}: {_in_words(made)}.")


def restore(
    folder: Folder,
    check: Annotated[
        bool, typer.Option("--check", help="Only look whether the backup is whole.")
    ] = False,
    config: Config = None,
    data_dir: DataDir = None,
) -> None:
    """Put a backup into an empty database and an empty object store.

    Everything is compared with the manifest first, and again where it went. Start nothing before
    it is done.
    """
    import asyncio

    from verderer.cli.backup.restoring import check_backup
    from verderer.cli.backup.restoring import restore as put_back

    place = folder.expanduser().absolute()
    if check:
        print(f"{folder} is whole: {_in_words(asyncio.run(check_backup(place)))}.")
        return
    from verderer.cli.backup.place import reachable_database
    from verderer.cli.data_folder import make_data_folder, with_secret_key

    settings = with_secret_key(_settings(config, data_dir))
    if settings.database.url is None:
        make_data_folder(settings)
    # One whose agent is still there knows what it has started.
    whole = settings.database.url is None and not settings.agent_spool_dir.exists()
    with reachable_database(settings) as reached:
        made = asyncio.run(put_back(reached, place, whole_machine=whole))
    print(f"Restored {folder}: {_in_words(made)}.")


def _settings(config: Path | None, data_dir: Path | None) -> Settings:
    from verderer.cli.configuration import load

    return load(config=config, flags={"data_dir": data_dir})


def _in_words(made: Manifest) -> str:
    from verderer.cli.screen.words import size

    how = "" if made.copied else ", which are listed and not copied"
    return (
        f"the database of {made.made_at} ({size(made.database.size)}), "
        f"{made.objects} objects of {size(made.bytes)}{how}"
    )
