"""Every action × every kind of caller: who may do what, as one table."""

from __future__ import annotations

from dataclasses import replace

import pytest

from verderer.core.access import READS, RULES, Action, Needs, admit, require
from verderer.core.errors import NotAllowed, NotFound
from verderer.core.model.actor import Actor, ActorKind, Role

OURS, THEIRS = 1, 2

MEMBER = Actor(kind=ActorKind.USER, id=1, name="m", roles={OURS: Role.MEMBER})
CALLERS = {
    "member": MEMBER,
    "reader": replace(MEMBER, read_only=True),
    "admin": replace(MEMBER, roles={OURS: Role.ADMIN}),
    "nobody": replace(MEMBER, roles={}),
    "root": replace(MEMBER, roles={}, platform_admin=True),
    "newcomer": replace(MEMBER, must_change=True, platform_admin=True),
    "agent": Actor(kind=ActorKind.AGENT, id=7, name="local"),
    "step": Actor(kind=ActorKind.STEP, id=9, name="v1", roles={OURS: Role.MEMBER}),
    "loop": Actor(kind=ActorKind.SYSTEM, name="scheduler", platform_admin=True),
}
EVERYBODY = "member reader admin nobody root loop"
WRITERS = "member admin nobody root loop"
OF_OURS = "member reader admin root loop"

# action: who may do it in a project that they are in (or when it is about no project).
MAY: dict[Action, str] = {
    Action.SELF_READ: f"{EVERYBODY} newcomer",
    Action.SELF_CHANGE: WRITERS,
    Action.SELF_PASSWORD: f"{WRITERS} newcomer",
    Action.PROJECT_LIST: EVERYBODY,
    Action.PROJECT_READ: OF_OURS,
    Action.PROJECT_CREATE: "root loop",
    Action.PROJECT_MEMBERS: "admin root loop",
    Action.USER_MANAGE: "root loop",
    Action.RUN_READ: OF_OURS,
    Action.RUN_SUBMIT: "member admin root loop",
    Action.RUN_CANCEL: "member admin root loop",
    Action.RUN_RETRY: "member admin root loop",
    Action.CLUSTER_READ: EVERYBODY,
    Action.CLUSTER_MANAGE: "root loop",
    Action.TEAM_READ: EVERYBODY,
    Action.TEAM_MANAGE: "root loop",
    Action.GROUP_READ: EVERYBODY,
    Action.GROUP_MANAGE: "root loop",
    Action.APPROVAL_READ: EVERYBODY,
    Action.APPROVAL_ASK: "member admin root loop",
    Action.APPROVAL_DECIDE: "root loop",
    Action.TRACKING_READ: f"{OF_OURS} step",
    Action.TRACKING_WRITE: "member admin root loop step",
    Action.PLATFORM_INSPECT: "root loop",
    Action.AGENT_SYNC: "agent",
}
OF_A_PROJECT = frozenset({Needs.MEMBER, Needs.ADMIN})


def allowed(actor: Actor, action: Action, project: int | None) -> bool:
    try:
        require(actor, action, project=project)
    except (NotAllowed, NotFound):
        return False
    return True


def test_the_table_names_every_action() -> None:
    assert set(MAY) == set(Action) == set(RULES)


@pytest.mark.parametrize("action", list(Action))
@pytest.mark.parametrize("who", list(CALLERS))
def test_in_the_own_project_exactly_those_of_the_table_may(who: str, action: Action) -> None:
    assert allowed(CALLERS[who], action, OURS) == (who in MAY[action].split())


@pytest.mark.parametrize("action", [a for a in Action if RULES[a] in OF_A_PROJECT])
@pytest.mark.parametrize("who", list(CALLERS))
def test_in_a_foreign_project_only_platform_admins_may(who: str, action: Action) -> None:
    may = who in MAY[action].split() and CALLERS[who].platform_admin
    assert allowed(CALLERS[who], action, THEIRS) == may
    assert allowed(CALLERS[who], action, None) == may, "no project named is no project at all"


@pytest.mark.parametrize("action", [a for a in Action if RULES[a] in OF_A_PROJECT])
def test_a_foreign_project_looks_as_if_it_did_not_exist(action: Action) -> None:
    with pytest.raises(NotFound):
        require(replace(MEMBER, roles={OURS: Role.ADMIN}), action, project=THEIRS)


@pytest.mark.parametrize("action", list(Action))
@pytest.mark.parametrize("who", list(CALLERS))
def test_the_door_admits_nobody_less_than_the_rule_and_decides_alone_without_a_project(
    who: str, action: Action
) -> None:
    try:
        admit(CALLERS[who], action)
        admitted = True
    except NotAllowed:
        admitted = False
    if allowed(CALLERS[who], action, OURS):
        assert admitted
    if RULES[action] not in OF_A_PROJECT:
        assert admitted == allowed(CALLERS[who], action, None)


def test_no_reading_action_changes_anything() -> None:
    assert {a for a in READS if not a.endswith((".read", ".list", ".inspect"))} == set()
