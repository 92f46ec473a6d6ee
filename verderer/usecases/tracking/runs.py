"""Change tracked runs: begin, end, delete, restore, tag."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from verderer.core.access import Action, require
from verderer.core.errors import Invalid, NotFound
from verderer.core.model.ids import run_id_text
from verderer.core.tracking.entities import Pairs, Status, TrackedData, TrackedRun
from verderer.core.tracking.limits import INT64_MAX, MAX_TAG_VALUE, MAX_TAGS
from verderer.core.tracking.names import (
    RESERVED_TAGS,
    RUN_NAME_TAG,
    RUN_TAG,
    STEP_TAG,
    check_key,
    check_tag_key,
    check_text,
    made_up_name,
    parse_run_uid,
    tag_value,
)
from verderer.store.database import Tx
from verderer.store.tables import audit
from verderer.store.tables.tracking import runs as table
from verderer.usecases.context import Context
from verderer.usecases.tracking.caller import Caller, any_run, run_to_change
from verderer.usecases.tracking.default_experiment import find_experiment
from verderer.usecases.tracking.moments import new_uid, now_ms

_MAX_USER = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Beginning:
    """What a client says about a run that it begins."""

    experiment: str | None = None
    name: str | None = None
    user: str | None = None
    start_ms: int | None = None
    tags: Sequence[tuple[str | None, str | None]] = ()


async def create_run(
    ctx: Context, caller: Caller, beginning: Beginning
) -> tuple[TrackedRun, TrackedData]:
    """Begin a run; one that a step's own code begins is tied to the step.

    Raises:
        Invalid: a name, tag or time is not acceptable, or the experiment is deleted.
        NotFound, NotAllowed: the experiment is not the caller's to see, or to write to.
    """
    tags = _given_tags(beginning.tags)
    name = _name(ctx, beginning.name, tags)
    start_ms = now_ms(ctx) if beginning.start_ms is None else beginning.start_ms
    if not 0 <= start_ms <= INT64_MAX:
        raise Invalid(f"Invalid value {start_ms} for parameter 'start_time' supplied.")
    user = check_text(beginning.user, "user_id", _MAX_USER) or caller.actor.name
    async with ctx.db.transaction() as tx:
        experiment = await find_experiment(ctx, tx, caller, beginning.experiment)
        require(caller.actor, Action.TRACKING_WRITE, project=experiment.project)
        if experiment.deleted:
            raise Invalid(
                f"The experiment {experiment.id} must be in the 'active' state. "
                "Current state is deleted."
            )
        step = caller.step
        new = table.NewRun(
            uid=new_uid(ctx),
            experiment=experiment.id,
            project=experiment.project,
            name=name,
            user=user,
            start_ms=start_ms,
            run=step.run if step else None,
            step=step.step if step else None,
            attempt=step.number if step else None,
        )
        run = await table.add(tx, new)
        stored = tuple(sorted({**tags, RUN_NAME_TAG: name, **await _ties(tx, caller)}.items()))
        await table.set_tags(tx, run.id, stored)
        await audit.add(tx, caller.actor, [entry(run, "created")])
    return run, TrackedData(tags=stored)


async def update_run(
    ctx: Context,
    caller: Caller,
    uid: str | None,
    *,
    status: Status | None = None,
    end_ms: int | None = None,
    name: str | None = None,
) -> TrackedRun:
    """Change a run's status, end or name, whichever is given, and return it as it is then.

    Raises:
        Invalid: the name or the time is not acceptable, or the run is deleted.
        NotFound, NotAllowed: it is not the caller's to see, or to change.
    """
    wanted = parse_run_uid(uid)
    if end_ms is not None and not 0 <= end_ms <= INT64_MAX:
        raise Invalid(f"Invalid value {end_ms} for parameter 'end_time' supplied.")
    checked = check_text(name, "run_name", MAX_TAG_VALUE) or None
    async with ctx.db.transaction() as tx:
        run = await run_to_change(tx, caller, wanted, hold=True)
        await table.update(tx, run.id, status=status, end_ms=end_ms, name=checked)
        if checked:
            await table.set_tags(tx, run.id, ((RUN_NAME_TAG, checked),))
        if status is not None and status is not run.status:
            await audit.add(tx, caller.actor, [entry(run, status.lower(), before=run.status)])
        return await any_run(tx, caller, wanted)


async def delete_run(ctx: Context, caller: Caller, uid: str | None) -> None:
    """Delete a run; what it reported stays, and it can be restored. Repeating it is no error.

    Raises:
        NotFound, NotAllowed: it is not the caller's to see, or to change.
    """
    await _set_deleted(ctx, caller, uid, deleted=True)


async def restore_run(ctx: Context, caller: Caller, uid: str | None) -> None:
    """Bring a deleted run back. Repeating it is no error.

    Raises:
        NotFound, NotAllowed: it is not the caller's to see, or to change.
    """
    await _set_deleted(ctx, caller, uid, deleted=False)


async def untag_run(ctx: Context, caller: Caller, uid: str | None, key: str | None) -> None:
    """Remove one tag.

    Raises:
        Invalid: the platform wrote it, or the run is deleted.
        NotFound, NotAllowed: no such tag, or the run is not the caller's to see or change.
    """
    checked = check_tag_key(key, "key")
    async with ctx.db.transaction() as tx:
        run = await run_to_change(tx, caller, parse_run_uid(uid))
        if not await table.remove_tag(tx, run.id, checked):
            raise NotFound(f"No tag with name: {checked} in run with id {run.uid}")


async def write_tags(tx: Tx, run: TrackedRun, tags: Pairs) -> None:
    """Write tags; the one that holds the run's name renames it too. The caller has checked them."""
    name = next((value for key, value in tags if key == RUN_NAME_TAG and value), None)
    if name is not None:
        await table.update(tx, run.id, status=None, end_ms=None, name=name)
    await table.set_tags(tx, run.id, tags)


def entry(run: TrackedRun, verb: str, **detail: str) -> audit.Entry:
    """The audit's line about a tracked run."""
    return audit.Entry(
        action=f"tracked_run.{verb}",
        project=run.project,
        run=run.run,
        step=run.step,
        attempt=run.attempt,
        object=f"tracked_run:{run.uid}",
        detail=detail or None,
    )


async def _set_deleted(ctx: Context, caller: Caller, uid: str | None, *, deleted: bool) -> None:
    async with ctx.db.transaction() as tx:
        run = await any_run(tx, caller, parse_run_uid(uid), hold=True)
        if run.deleted is deleted:
            return
        await table.set_deleted(tx, run.id, deleted=deleted)
        await audit.add(tx, caller.actor, [entry(run, "deleted" if deleted else "restored")])


def _given_tags(tags: Sequence[tuple[str | None, str | None]]) -> dict[str, str]:
    """The client's tags without those that only the platform may write.

    They are left out, not refused: copying a run with all its tags is a fair thing to do.
    """
    if len(tags) > MAX_TAGS:
        raise Invalid(
            f"A request can contain at most {MAX_TAGS} tags. Got {len(tags)} tags. "
            "Please split up tags across multiple requests and try again."
        )
    checked = {
        check_key(key, f"tags[{i}].key"): tag_value(value, f"tags[{i}].value")
        for i, (key, value) in enumerate(tags)
    }
    return {key: value for key, value in checked.items() if key not in RESERVED_TAGS}


def _name(ctx: Context, given: str | None, tags: dict[str, str]) -> str:
    name, tagged = check_text(given, "run_name", MAX_TAG_VALUE), tags.get(RUN_NAME_TAG, "")
    if name and tagged and name != tagged:
        raise Invalid(
            "Both 'run_name' argument and 'mlflow.runName' tag are specified, but with different "
            f"values (run_name={name!a}, mlflow.runName={tagged!a})."
        )
    return name or tagged or made_up_name(ctx.chance())


async def _ties(tx: Tx, caller: Caller) -> dict[str, str]:
    """The tags that say which step a run belongs to."""
    if (step := caller.step) is None:
        return {}
    _, name = await table.pipeline_of(tx, step.run, step.step)
    return {RUN_TAG: run_id_text(step.run), STEP_TAG: name or str(step.step)}
