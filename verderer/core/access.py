"""The one place that says who may do what. Everything that is not listed is refused."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

from verderer.core.errors import NotAllowed, NotFound
from verderer.core.model.actor import Actor, ActorKind, Role


class Action(StrEnum):
    """Everything that can be asked of the platform, as `noun.verb`."""

    SELF_READ = "self.read"
    SELF_CHANGE = "self.change"
    SELF_PASSWORD = "self.password"
    PROJECT_LIST = "project.list"
    PROJECT_READ = "project.read"
    PROJECT_CREATE = "project.create"
    PROJECT_MEMBERS = "project.members"
    USER_MANAGE = "user.manage"
    RUN_READ = "run.read"
    RUN_SUBMIT = "run.submit"
    RUN_CANCEL = "run.cancel"
    RUN_RETRY = "run.retry"
    CLUSTER_READ = "cluster.read"
    CLUSTER_MANAGE = "cluster.manage"
    TEAM_READ = "project_group.read"
    TEAM_MANAGE = "project_group.manage"
    GROUP_READ = "resource_group.read"
    GROUP_MANAGE = "resource_group.manage"
    APPROVAL_READ = "approval.read"
    APPROVAL_ASK = "approval.ask"
    APPROVAL_DECIDE = "approval.decide"
    TRACKING_READ = "tracking.read"
    TRACKING_WRITE = "tracking.write"
    PLATFORM_INSPECT = "platform.inspect"
    AGENT_SYNC = "agent.sync"


class Needs(StrEnum):
    """What an action asks of its caller."""

    ANYONE = "anyone"  # any person who is logged in; lists are narrowed by scope
    MEMBER = "member"  # of the project that is named
    ADMIN = "admin"  # of the project that is named
    PLATFORM_ADMIN = "platform admin"
    AGENT = "agent"  # of the cluster that its credential names


RULES: Mapping[Action, Needs] = MappingProxyType(
    {
        Action.SELF_READ: Needs.ANYONE,
        Action.SELF_CHANGE: Needs.ANYONE,
        Action.SELF_PASSWORD: Needs.ANYONE,
        Action.PROJECT_LIST: Needs.ANYONE,
        Action.PROJECT_READ: Needs.MEMBER,
        Action.PROJECT_CREATE: Needs.PLATFORM_ADMIN,
        Action.PROJECT_MEMBERS: Needs.ADMIN,
        Action.USER_MANAGE: Needs.PLATFORM_ADMIN,
        Action.RUN_READ: Needs.MEMBER,
        Action.RUN_SUBMIT: Needs.MEMBER,
        Action.RUN_CANCEL: Needs.MEMBER,
        Action.RUN_RETRY: Needs.MEMBER,
        Action.CLUSTER_READ: Needs.ANYONE,
        Action.CLUSTER_MANAGE: Needs.PLATFORM_ADMIN,
        Action.TEAM_READ: Needs.ANYONE,
        Action.TEAM_MANAGE: Needs.PLATFORM_ADMIN,
        Action.GROUP_READ: Needs.ANYONE,
        Action.GROUP_MANAGE: Needs.PLATFORM_ADMIN,
        Action.APPROVAL_READ: Needs.ANYONE,
        Action.APPROVAL_ASK: Needs.MEMBER,
        Action.APPROVAL_DECIDE: Needs.PLATFORM_ADMIN,
        Action.TRACKING_READ: Needs.MEMBER,
        Action.TRACKING_WRITE: Needs.MEMBER,
        Action.PLATFORM_INSPECT: Needs.PLATFORM_ADMIN,
        Action.AGENT_SYNC: Needs.AGENT,
    }
)

READS = frozenset(
    {
        Action.SELF_READ,
        Action.PROJECT_LIST,
        Action.PROJECT_READ,
        Action.RUN_READ,
        Action.CLUSTER_READ,
        Action.TEAM_READ,
        Action.GROUP_READ,
        Action.APPROVAL_READ,
        Action.TRACKING_READ,
        Action.PLATFORM_INSPECT,
    }
)

# A step's own token reaches its project's tracking and nothing else.
STEP_MAY = frozenset({Action.TRACKING_READ, Action.TRACKING_WRITE})

# Who came in with a one-time password chooses a password of their own before anything else.
MUST_CHANGE_MAY = frozenset({Action.SELF_READ, Action.SELF_PASSWORD})


OF_A_PROJECT = frozenset({Needs.MEMBER, Needs.ADMIN})


def admit(actor: Actor, action: Action) -> None:
    """Return unless `action` is refused to `actor` whatever it is about.

    A door asks this of every request; `require` follows where the project is known.

    Raises:
        NotAllowed: this credential, or anybody but a platform admin, may not do this.
    """
    if RULES[action] in OF_A_PROJECT:
        _check_credential(actor, action)
    else:
        require(actor, action)


def require(actor: Actor, action: Action, *, project: int | None = None) -> None:
    """Return if `actor` may do `action` (in `project`, when the action is about one).

    Raises:
        NotFound: the project is not the actor's to know about.
        NotAllowed: the actor may see it and may not do this.
    """
    _check_credential(actor, action)
    needs = RULES[action]
    if needs in (Needs.ANYONE, Needs.AGENT) or actor.platform_admin:
        return
    if needs is Needs.PLATFORM_ADMIN:
        raise NotAllowed(f"{action} needs a platform admin", hint="Ask a platform admin.")
    role = actor.roles.get(project) if project is not None else None
    if role is None:
        raise NotFound("no such project, or you are not a member of it")
    if needs is Needs.ADMIN and role is not Role.ADMIN:
        raise NotAllowed(f"{action} needs the role admin", hint="Ask an admin of the project.")


def _check_credential(actor: Actor, action: Action) -> None:
    needs = RULES[action]
    if (needs is Needs.AGENT) != (actor.kind is ActorKind.AGENT):
        raise NotAllowed(f"{action} is not for {actor.kind} credentials")
    if actor.kind is ActorKind.STEP and action not in STEP_MAY:
        raise NotAllowed(f"a step's token cannot do {action}", hint="Use a token of your own.")
    if actor.must_change and action not in MUST_CHANGE_MAY:
        raise NotAllowed(
            "the one-time password must be replaced first",
            hint="Choose a password of your own.",
            code="must_change_password",
        )
    if actor.read_only and action not in READS:
        raise NotAllowed("this token may only read", hint="Create a token that may write.")
