"""Change experiments: make, rename, delete, restore, tag."""

from __future__ import annotations

from collections.abc import Sequence

from verderer.core.access import Action, require
from verderer.core.errors import Invalid, NotFound
from verderer.core.tracking.artifact_path import experiment_root
from verderer.core.tracking.entities import Experiment
from verderer.core.tracking.names import (
    PROJECT_TAG,
    check_experiment_name,
    check_key,
    check_tag_key,
    experiment_tag_value,
    make_experiment_id,
    no_experiment,
    parse_experiment_id,
)
from verderer.store.database import Tx
from verderer.store.tables import audit
from verderer.store.tables.tracking import experiments as table
from verderer.store.views.tracked import experiments as views
from verderer.store.views.visible import ProjectRow
from verderer.usecases.context import Context
from verderer.usecases.tracking.caller import Caller, Sight, look, scope_of
from verderer.usecases.tracking.moments import now_ms

Tags = Sequence[tuple[str | None, str | None]]


async def create_experiment(
    ctx: Context, caller: Caller, *, name: str | None, location: str | None = None, tags: Tags = ()
) -> int:
    """Make an experiment in the project that the address, the name, a tag or the caller names.

    Raises:
        Invalid: a name or tag is not acceptable, or no project is named and there are several.
        Conflict: the project has one of this name (`already_exists`).
        NotFound, NotAllowed: the project is not the caller's to see, or to write to.
    """
    given = check_experiment_name(name)
    checked = _checked(tags)
    made = make_experiment_id(ctx.chance())
    _check_location(location)
    async with ctx.db.transaction() as tx:
        project, own_name = _place(await look(tx, caller), given, checked)
        require(caller.actor, Action.TRACKING_WRITE, project=project.id)
        await table.add(tx, id=made, project=project.id, name=own_name, now_ms=now_ms(ctx))
        await table.set_tags(tx, made, tuple(checked.items()))
        await audit.add(tx, caller.actor, [_entry("created", made, project.id, name=own_name)])
    return made


async def rename_experiment(
    ctx: Context, caller: Caller, experiment: str | None, name: str | None
) -> None:
    """Give an experiment another name in its project.

    Raises:
        Invalid: the name is not acceptable, names another project, or the experiment is deleted.
        Conflict: the project has one of this name (`already_exists`).
        NotFound, NotAllowed: it is not the caller's to see, or to change.
    """
    wanted = check_experiment_name(name, "new_name")
    async with ctx.db.transaction() as tx:
        found = await _to_change(tx, caller, experiment)
        if found.deleted:
            raise Invalid("Cannot rename a non-active experiment.", code="INVALID_STATE")
        project, own_name = (await look(tx, caller)).split(wanted)
        if project is not None and project.id != found.project:
            raise Invalid("an experiment cannot move to another project")
        await table.rename(tx, found.id, own_name, now_ms=now_ms(ctx))
        await audit.add(
            tx,
            caller.actor,
            [_entry("renamed", found.id, found.project, name=own_name, before=found.name)],
        )


async def delete_experiment(ctx: Context, caller: Caller, experiment: str | None) -> None:
    """Delete an experiment with all its runs; it can be restored.

    Raises:
        NotFound, NotAllowed: there is none living, or it is not the caller's to see or change.
    """
    await _set_deleted(ctx, caller, experiment, deleted=True)


async def restore_experiment(ctx: Context, caller: Caller, experiment: str | None) -> None:
    """Bring a deleted experiment back with all its runs.

    Raises:
        NotFound, NotAllowed: there is none deleted, or it is not the caller's to see or change.
    """
    await _set_deleted(ctx, caller, experiment, deleted=False)


async def tag_experiment(
    ctx: Context, caller: Caller, experiment: str | None, key: str | None, value: str | None
) -> None:
    """Write one tag.

    Raises:
        Invalid: key or value is not acceptable, or the experiment is deleted.
        NotFound, NotAllowed: it is not the caller's to see, or to change.
    """
    checked = _checked([(key, value)])
    async with ctx.db.transaction() as tx:
        found = await _living(tx, caller, experiment)
        await table.set_tags(tx, found.id, tuple(checked.items()))


async def untag_experiment(
    ctx: Context, caller: Caller, experiment: str | None, key: str | None
) -> None:
    """Remove one tag.

    Raises:
        Invalid: the experiment is deleted.
        NotFound, NotAllowed: no such tag, or it is not the caller's to see or change.
    """
    checked = check_key(key, "key")
    async with ctx.db.transaction() as tx:
        found = await _living(tx, caller, experiment)
        if not await table.remove_tag(tx, found.id, checked):
            raise NotFound(f"No tag with name: {checked} in experiment with id {found.id}")


async def _set_deleted(
    ctx: Context, caller: Caller, experiment: str | None, *, deleted: bool
) -> None:
    async with ctx.db.transaction() as tx:
        found = await _to_change(tx, caller, experiment)
        if not await table.set_deleted(tx, found.id, deleted=deleted, now_ms=now_ms(ctx)):
            raise no_experiment(f"id {found.id} that is {'active' if deleted else 'deleted'}")
        verb = "deleted" if deleted else "restored"
        await audit.add(tx, caller.actor, [_entry(verb, found.id, found.project, name=found.name)])


async def _to_change(tx: Tx, caller: Caller, experiment: str | None) -> Experiment:
    wanted = parse_experiment_id(experiment)
    found = await views.hold(tx, await scope_of(tx, caller), wanted)
    if found is None:
        raise no_experiment(f"id {wanted}")
    require(caller.actor, Action.TRACKING_WRITE, project=found.project)
    return found


async def _living(tx: Tx, caller: Caller, experiment: str | None) -> Experiment:
    found = await _to_change(tx, caller, experiment)
    if found.deleted:
        raise Invalid(
            f"The experiment {found.id} must be in the 'active' state. Current state is deleted."
        )
    return found


def _place(sight: Sight, name: str, tags: dict[str, str]) -> tuple[ProjectRow, str]:
    """The project that is meant, and the name inside it."""
    prefixed, own_name = sight.split(name)
    if wanted := tags.get(PROJECT_TAG):
        tagged = sight.named(wanted)
        if tagged is None:
            raise NotFound(f"no project {wanted!a}, or you are not a member of it")
        return tagged, own_name if prefixed == tagged else name
    return (prefixed, own_name) if prefixed else (sight.only, name)


def _checked(tags: Tags) -> dict[str, str]:
    return {
        check_tag_key(key, f"tags[{i}].key"): experiment_tag_value(value)
        for i, (key, value) in enumerate(tags)
    }


def _check_location(location: str | None) -> None:
    if location:
        raise Invalid(
            "artifact_location cannot be chosen: artifacts are kept by this server, at "
            f"{experiment_root(0)[:-1]}EXPERIMENT",
            hint="Leave artifact_location out.",
        )


def _entry(verb: str, experiment: int, project: int, **detail: str) -> audit.Entry:
    return audit.Entry(
        action=f"experiment.{verb}",
        project=project,
        object=f"experiment:{experiment}",
        detail=detail,
    )
