"""Which resource group a run goes to, and what is refused with which words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verderer.core.errors import NotAllowed
from verderer.core.governance.model import GrantKind
from verderer.core.governance.routing import Grant, route

NOW = 1000.0
HOME = Grant(group=1, name="rg-b", kind=GrantKind.DEFAULT, labels={"team": "proj-b"})
PLAIN = Grant(group=2, name="plain", kind=GrantKind.DEFAULT)
COMMON = Grant(group=3, name="common", kind=GrantKind.OPTIONAL, until=2000.0)
OTHER = Grant(group=4, name="other", kind=GrantKind.OPTIONAL, labels={"team": "proj-c"})
B = {"team": "proj-b"}


@pytest.mark.parametrize(
    ("grants", "labels", "asked", "group"),
    [
        pytest.param([HOME, COMMON], B, "", 1, id="the default group"),
        pytest.param([HOME, COMMON], B, "common", 3, id="an optional one that is named"),
        pytest.param([PLAIN], {}, "", 2, id="no rule takes everything"),
        pytest.param([HOME, OTHER], {"team": "proj-c"}, "", 4, id="an optional one by its label"),
        pytest.param(
            [COMMON, PLAIN], {}, "", 2, id="an optional one without a rule never by itself"
        ),
    ],
)
def test_route(grants: list[Grant], labels: dict[str, str], asked: str, group: int) -> None:
    assert route(grants, labels=labels, asked=asked, now=NOW).group == group


@pytest.mark.parametrize(
    ("grants", "labels", "asked", "code", "words"),
    [
        pytest.param([], {}, "", "no_resource_group", "no resource group", id="nothing granted"),
        pytest.param([COMMON], {}, "", "no_resource_group", "no default", id="only optional ones"),
        pytest.param([HOME], {}, "", "label_policy", "no label team", id="a label is missing"),
        pytest.param([HOME], {"team": "x"}, "", "label_policy", "team: x", id="another label"),
        pytest.param([HOME], {"team": "x"}, "rg-b", "label_policy", "team: x", id="though named"),
        pytest.param([HOME], B, "rg-c", "not_granted", "rg-c", id="a group of others"),
    ],
)
def test_refusals(
    grants: list[Grant], labels: dict[str, str], asked: str, code: str, words: str
) -> None:
    with pytest.raises(NotAllowed, match=words) as refused:
        route(grants, labels=labels, asked=asked, now=NOW)
    assert refused.value.code == code
    assert refused.value.hint


def test_a_grant_ends_at_its_time() -> None:
    assert route([PLAIN, COMMON], labels={}, asked="common", now=1999.9).group == 3
    with pytest.raises(NotAllowed, match="common"):
        route([PLAIN, COMMON], labels={}, asked="common", now=2000.0)


_LABELS = st.dictionaries(st.sampled_from(["team", "tier"]), st.sampled_from(["a", "b"]))


@given(
    st.lists(
        st.builds(
            Grant,
            group=st.integers(1, 9),
            name=st.sampled_from("pqrs"),
            kind=st.sampled_from(GrantKind),
            labels=_LABELS,
            until=st.sampled_from([None, 500.0, 1500.0]),
        )
    ),
    _LABELS,
    st.sampled_from(["", "p", "q", "elsewhere"]),
)
def test_nothing_that_a_run_says_lets_it_out_of_its_grants(
    grants: list[Grant], labels: dict[str, str], asked: str
) -> None:
    try:
        found = route(grants, labels=labels, asked=asked, now=NOW)
    except NotAllowed:
        return
    assert found in grants
    assert found.holds(NOW)
    assert found.labels.items() <= labels.items()
    assert not asked or found.name == asked
