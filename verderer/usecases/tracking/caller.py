"""Who asks, within which project, and what that lets them see and change."""

from __future__ import annotations

from dataclasses import dataclass

from verderer.core.access import Action, require
from verderer.core.errors import Invalid, NotAuthenticated, NotFound
from verderer.core.model.actor import Actor, ActorKind, Scope
from verderer.core.model.attempt import AttemptKey
from verderer.core.tracking.entities import LoggedModel, TrackedRun
from verderer.core.tracking.names import no_model, no_run
from verderer.store.database import Tx
from verderer.store.tables.tracking import runs
from verderer.store.views.tracked import models
from verderer.store.views.visible import ProjectRow, list_projects

WHICH_PROJECT = (
    "Set the tracking URI to …/mlflow/PROJECT, name the experiment PROJECT/NAME, "
    "or give it the tag verderer.project."
)


@dataclass(frozen=True, slots=True)
class Caller:
    """One client of the tracking API."""

    actor: Actor
    within: str | None = None
    """The project that the address names; None: everything that the actor may see."""

    @property
    def step(self) -> AttemptKey | None:
        """The attempt that asks, when a step's own code does."""
        if self.actor.kind is not ActorKind.STEP:
            return None
        try:
            return AttemptKey.parse(self.actor.name)
        except ValueError as e:
            raise NotAuthenticated("the step's token names no attempt") from e


@dataclass(frozen=True, slots=True)
class Sight:
    """What a caller sees at one moment."""

    scope: Scope
    projects: tuple[ProjectRow, ...]
    """By name."""

    @property
    def several(self) -> bool:
        """Whether names of experiments need their project's before them to be unique."""
        return len(self.projects) > 1

    @property
    def only(self) -> ProjectRow:
        """The project that is meant when none is named.

        Raises:
            Invalid: there are several.
            NotFound: there is none.
        """
        if not self.projects:
            raise NotFound("you are not a member of any project", hint="Ask an admin of one.")
        if self.several:
            raise Invalid(f"You see {len(self.projects)} projects. {WHICH_PROJECT}")
        return self.projects[0]

    def named(self, name: str) -> ProjectRow | None:
        """A project that the caller sees, or None."""
        return next((project for project in self.projects if project.name == name), None)

    def split(self, name: str) -> tuple[ProjectRow | None, str]:
        """Read `project/name`: the project when it is one that the caller sees, and the rest."""
        head, slash, rest = name.partition("/")
        project = self.named(head) if slash and rest else None
        return (project, rest) if project else (None, name)


async def look(tx: Tx, caller: Caller) -> Sight:
    """Find out what the caller sees.

    Raises:
        NotFound: the address names a project that is not the caller's to know about.
    """
    projects = tuple(await list_projects(tx, caller.actor.scope, caller.within))
    if caller.within is None:
        return Sight(caller.actor.scope, projects)
    if not projects:
        raise NotFound(f"no project {caller.within!a}, or you are not a member of it")
    return Sight(Scope(projects=frozenset({projects[0].id})), projects)


async def scope_of(tx: Tx, caller: Caller) -> Scope:
    """The caller's scope alone, which usually costs nothing; raises as `look`."""
    if caller.within is None:
        return caller.actor.scope
    return (await look(tx, caller)).scope


async def run_to_change(tx: Tx, caller: Caller, uid: str, *, hold: bool = False) -> TrackedRun:
    """A living run that the caller may change; with `hold` nobody else does meanwhile.

    Raises:
        NotFound: there is none, or it is not the caller's to know about.
        NotAllowed: the caller may only read.
        Invalid: it is deleted.
    """
    run = await any_run(tx, caller, uid, hold=hold)
    if run.deleted:
        raise Invalid(f"The run {uid} must be in the 'active' state. Current state is deleted.")
    return run


async def any_run(tx: Tx, caller: Caller, uid: str, *, hold: bool = False) -> TrackedRun:
    """The same, deleted ones too."""
    run = await (runs.lock if hold else runs.find)(tx, uid)
    if run is None or not (await scope_of(tx, caller)).sees(run.project):
        raise no_run(uid)
    require(caller.actor, Action.TRACKING_WRITE, project=run.project)
    return run


async def model_to_change(tx: Tx, caller: Caller, uid: str) -> LoggedModel:
    """A living logged model that the caller may change.

    Raises:
        NotFound: there is none, or it is not the caller's to know about.
        NotAllowed: the caller may only read.
    """
    model = await models.get(tx, await scope_of(tx, caller), uid)
    if model is None or model.deleted:
        raise no_model(f"m-{uid}")
    require(caller.actor, Action.TRACKING_WRITE, project=model.project)
    return model
