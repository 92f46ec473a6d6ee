"""Why a job waits, in words; and the page that lists them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verderer.core.model.waiting import Pending
from verderer.drivers.slurm import pending

PAGE = Path(__file__).parents[3] / "docs" / "slurm.md"


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("Resources", "Resources: The nodes that it needs are busy with other jobs."),
        (
            "ReqNodeNotAvail, UnavailableNodes:n0",
            "ReqNodeNotAvail: Nodes that it needs are down, drained, or reserved for others. "
            "(UnavailableNodes:n0)",
        ),
        (
            "QOSMaxGRESPerUser",
            "QOSMaxGRESPerUser: The limit of the quality of service on devices of one user "
            "is reached.",
        ),
        (
            "AssocGrpCPUMinutesLimit",
            "AssocGrpCPUMinutesLimit: The limit of the account's association on processors over "
            "time of all its jobs together is reached.",
        ),
        (
            "QOSMinGRES",
            "QOSMinGRES: It asks for too little: the quality of service demands a least of "
            "devices.",
        ),
        ("(Priority)", "Priority: Jobs of a higher priority wait for the same nodes."),
        ("SomethingNew", "SomethingNew"),
        ("Nodes required for job are DOWN", "Nodes required for job are DOWN"),
        ("", ""),
    ],
)
def test_reasons_in_words(reason: str, words: str) -> None:
    assert pending.explain(reason) == words


@pytest.mark.parametrize(
    "code",
    [
        *(
            "AssocGrpCpuLimit",
            "AssocGrpMemRunMinutes",
            "AssocGrpJobsLimit",
            "AssocMaxWallDurationPerJobLimit",
        ),
        *(
            "QOSGrpNodeLimit",
            "QOSMaxCpuPerJobLimit",
            "QOSMaxWallDurationPerJobLimit",
            "QOSMaxNodePerUserLimit",
        ),
        *(
            "QOSMaxSubmitJobPerUserLimit",
            "QOSJobLimit",
            "QOSResourceLimit",
            "QOSTimeLimit",
            "QOSUsageThreshold",
        ),
        *(
            "AssociationJobLimit",
            "AssociationResourceLimit",
            "AssocMaxGRESPerNode",
            "QOSMaxMemoryPerUser",
        ),
    ],
)
def test_the_limits_of_accounts_and_qualities_of_service_are_known(code: str) -> None:
    assert pending.explain(code).startswith(f"{code}: ")


@given(reason=st.text(max_size=100))
def test_any_reason_is_shown(reason: str) -> None:
    shown = pending.explain(reason)
    assert bool(shown) == bool(reason.strip())


@pytest.mark.parametrize(
    ("reason", "code", "hopeless"),
    [
        ("Resources", Pending.RESOURCES, False),
        ("(Priority)", Pending.PRIORITY, False),
        ("ReqNodeNotAvail, UnavailableNodes:n0", Pending.UNAVAILABLE, False),
        ("QOSMaxGRESPerUser", Pending.QUOTA, False),
        ("AssocGrpCPUMinutesLimit", Pending.QUOTA, False),
        ("QOSMinGRES", Pending.POLICY, True),
        ("PartitionTimeLimit", Pending.POLICY, True),
        ("InvalidAccount", Pending.CONFIGURATION, True),
        ("JobHeldAdmin", Pending.HELD, False),
        ("SomethingNew", Pending.UNKNOWN, False),
    ],
)
def test_each_reason_has_a_code(reason: str, code: Pending, hopeless: bool) -> None:
    waits = pending.waiting(reason)
    assert waits is not None
    assert (waits.code, waits.hopeless) == (code, hopeless)
    assert waits.message == pending.explain(reason)


def test_no_reason_is_no_waiting() -> None:
    assert pending.waiting(" ") is None


def test_every_code_of_ours_is_one_of_slurms() -> None:
    assert set(pending._CODES) <= set(pending.SENTENCES)
    assert set(pending._HOPELESS) <= set(pending.SENTENCES)


def test_the_page_has_the_table() -> None:
    """`python -m tests.drivers.slurm.test_pending` writes it."""
    assert pending.table() in PAGE.read_text(encoding="utf-8")


if __name__ == "__main__":
    text = PAGE.read_text(encoding="utf-8")
    before, mark, rest = text.partition("| Slurm's code | what it means |\n")
    after = rest[rest.index("\n\n") :] if "\n\n" in rest else "\n"
    PAGE.write_text(before + pending.table().rstrip("\n") + after, encoding="utf-8")
