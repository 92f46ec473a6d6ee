"""What Slurm prints, read: recorded and documented samples, and laws for everything else."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verderer.drivers.slurm.readers import configuration, hostlists, jobs, nodes, values
from verderer.drivers.slurm.readers.gres import Gres, read_gres
from verderer.drivers.slurm.readers.jobs import SlurmJob
from verderer.drivers.slurm.readers.nodes import SlurmNode
from verderer.drivers.slurm.readers.values import Unreadable

SAMPLES = Path(__file__).parent / "samples"
READERS: list[Callable[[str], object]] = [
    jobs.read_squeue,
    jobs.read_job_text,
    jobs.read_jobs_json,
    jobs.read_sacct,
    nodes.read_nodes_text,
    nodes.read_nodes_json,
    nodes.read_partitions,
    configuration.read_version,
    configuration.read_configuration,
    hostlists.expand,
    read_gres,
]
OF_SAMPLE: dict[str, Callable[[str], object]] = {
    "squeue-22.05.txt": jobs.read_squeue,
    "squeue-22.05.json": jobs.read_jobs_json,
    "sinfo-22.05.json": nodes.read_nodes_json,
    "sinfo-21.08.json": nodes.read_nodes_json,
    "nodes-22.05.txt": nodes.read_nodes_text,
    "nodes-23.02.json": nodes.read_nodes_json,
    "nodes-25.05.json": nodes.read_nodes_json,
    "partitions-22.05.txt": nodes.read_partitions,
    "jobs-22.05.txt": jobs.read_job_text,
    "jobs-23.02.json": jobs.read_jobs_json,
    "jobs-25.05.json": jobs.read_jobs_json,
    "sacct-23.11.txt": jobs.read_sacct,
    "config-22.05.txt": configuration.read_configuration,
}


def sample(name: str) -> str:
    return (SAMPLES / name).read_text(encoding="utf-8")


def jobs_of(name: str) -> dict[int, SlurmJob]:
    found = OF_SAMPLE[name](sample(name))
    return {job.id: job for job in found}  # type: ignore[attr-defined]


def nodes_of(name: str) -> dict[str, SlurmNode]:
    found = OF_SAMPLE[name](sample(name))
    return {node.name: node for node in found}  # type: ignore[attr-defined]


def test_every_sample_is_in_the_manifest_and_is_read() -> None:
    told = sample("MANIFEST.md")
    files = {path.name for path in SAMPLES.iterdir()} - {"MANIFEST.md"}
    assert sorted(files) == sorted([*OF_SAMPLE, "error-24.11.json"])
    assert all(f"`{name}`" in told for name in files)
    for name, reader in OF_SAMPLE.items():
        assert reader(sample(name))


def test_the_same_jobs_are_read_alike_from_squeue_and_scontrol() -> None:
    brief, full = jobs_of("squeue-22.05.txt"), jobs_of("jobs-22.05.txt")
    assert brief[1].state == full[1].state == "RUNNING"
    assert brief[1].name == full[1].name == "v0000123456789abc-0-1"
    assert brief[1].directory == full[1].directory == "/tmp/w"
    assert brief[1].started_s == full[1].started_s == 1796103859
    assert brief[1].ended_s is None
    assert brief[1].limit_s is None
    assert (full[2].exit_code, full[2].signal) == (3, None)
    assert (full[3].exit_code, full[3].signal) == (None, 9)
    assert (brief[4].state, full[4].state) == ("OUT_OF_MEMORY", "OUT_OF_MEMORY")
    assert brief[6].limit_s == full[6].limit_s == 10 * 3600
    assert full[1].restarts == 0


def test_the_text_and_the_json_of_one_controller_agree_about_jobs() -> None:
    text, document = jobs_of("squeue-22.05.txt"), jobs_of("squeue-22.05.json")
    for number in text.keys() & document.keys():
        assert text[number].state == document[number].state
        assert text[number].name == document[number].name
        assert text[number].directory == document[number].directory


def test_a_job_that_is_being_tidied_is_not_over() -> None:
    told = jobs_of("squeue-22.05.txt")[8]
    assert (told.state, told.completing, told.over) == ("COMPLETING", True, False)
    listed = jobs_of("jobs-25.05.json")[4]
    assert (listed.state, listed.completing, listed.over) == ("COMPLETED", True, False)


def test_exit_codes_are_read_in_all_their_shapes() -> None:
    for name in ("jobs-23.02.json", "jobs-25.05.json"):
        found = jobs_of(name)
        assert (found[2].exit_code, found[2].signal) == (3, None)
        assert (found[3].exit_code, found[3].signal) == (None, 9)


def test_a_requeued_job_waits_and_says_how_often_it_was_started() -> None:
    found = jobs_of("jobs-25.05.json")[5]
    assert (found.state, found.waiting, found.restarts) == ("PENDING", True, 1)
    assert found.flags == {"REQUEUED"}
    assert (found.started_s, found.limit_s, found.node) == (None, None, "")


def test_accounting_says_who_cancelled() -> None:
    found = jobs_of("sacct-23.11.txt")
    assert (found[42].state, found[42].cancelled_by, found[42].node) == ("CANCELLED", "1001", "n0")
    assert found[45].node == ""
    assert not found[44].over


def test_nodes_of_text_and_json_agree() -> None:
    text, document = nodes_of("nodes-22.05.txt"), nodes_of("sinfo-22.05.json")
    assert text.keys() == document.keys() == {"n0", "n1", "n2"}
    for name, node in text.items():
        other = document[name]
        assert (node.state, node.cpus, node.cpus_used) == (other.state, other.cpus, other.cpus_used)
        assert (node.memory_mib, node.memory_used_mib) == (64000, other.memory_used_mib)
        assert (node.gres, node.gres_used, node.features) == (
            other.gres,
            other.gres_used,
            other.features,
        )
        assert (node.reason, node.ready, node.drained) == (other.reason, other.ready, other.drained)


def test_a_reason_may_hold_brackets_and_loses_its_signature() -> None:
    found = nodes_of("nodes-22.05.txt")
    assert found["n1"].reason == "fan [rear] broken"
    assert found["n2"].reason == "verderer:case-7 xid 79"


def test_which_nodes_are_ready() -> None:
    ready = {name: node.ready for name, node in nodes_of("nodes-25.05.json").items()}
    assert ready == {"g1": True, "g2": False, "g3": True, "g4": False, "g5": False}
    assert not nodes_of("sinfo-21.08.json")["g1"].ready
    assert not nodes_of("nodes-23.02.json")["g2"].ready


def test_what_is_not_set_is_unknown_and_never_zero() -> None:
    old = nodes_of("sinfo-21.08.json")["g1"]
    assert (old.load, old.memory_free_mib) == (None, None)
    new = nodes_of("nodes-23.02.json")
    assert (new["g1"].load, new["g1"].memory_free_mib) == (4.5, 512000)
    assert (new["g2"].load, new["g2"].memory_free_mib) == (None, None)
    assert nodes_of("nodes-25.05.json")["g4"].memory_free_mib is None


def test_what_slurm_keeps_for_the_system_is_not_handed_out() -> None:
    node = nodes_of("nodes-23.02.json")["g1"]
    assert (node.cpus, node.memory_mib) == (62, 1_000_000)


def test_partitions_are_read() -> None:
    found = {p.name: p for p in nodes.read_partitions(sample("partitions-22.05.txt"))}
    assert found["main"].default
    assert found["main"].nodes == ("n0", "n1", "n2")
    assert [p.name for p in found.values() if not p.up] == ["closed"]


def test_the_configuration_says_whether_there_is_accounting() -> None:
    found = configuration.read_configuration(sample("config-22.05.txt"))
    assert (found.cluster, found.accounting) == ("testbed", False)
    told = sample("config-22.05.txt").replace(
        "accounting_storage/none", "accounting_storage/slurmdbd"
    )
    assert configuration.read_configuration(told).accounting


def test_an_error_in_the_answer_is_no_answer() -> None:
    with pytest.raises(Unreadable, match="Unable to query jobs"):
        jobs.read_jobs_json(sample("error-24.11.json"))


@pytest.mark.parametrize(
    ("text", "version"),
    [("slurm 22.05.8", (22, 5)), ("slurm-wlm 22.05.8", (22, 5)), ("slurm 25.05.3-1", (25, 5))],
)
def test_versions(text: str, version: tuple[int, int]) -> None:
    assert configuration.read_version(text) == version


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("", ()),
        ("(null)", ()),
        ("n1", ("n1",)),
        ("gpu[01-03,7],login1", ("gpu01", "gpu02", "gpu03", "gpu7", "login1")),
        ("r[1-2]n[1-2]", ("r1n1", "r1n2", "r2n1", "r2n2")),
        ("a[9-11]-ib", ("a9-ib", "a10-ib", "a11-ib")),
    ],
)
def test_host_lists(text: str, hosts: tuple[str, ...]) -> None:
    assert hostlists.expand(text) == hosts


@pytest.mark.parametrize("text", ["n[1-", "n]1[", "n[[1]]", "n[a-b]", "n[5-1]", "n[1-999999999]"])
def test_host_lists_that_are_none(text: str) -> None:
    with pytest.raises(Unreadable):
        hostlists.expand(text)
    assert hostlists.first(text) == ""


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("gpu:h100:8(S:0-1)", (Gres("gpu", "h100", 8),)),
        ("gpu:8", (Gres("gpu", "", 8),)),
        ("gpu", (Gres("gpu", "", 1),)),
        ("gpu:a100:4(IDX:0,2-3,7),shard:8", (Gres("gpu", "a100", 4), Gres("shard", "", 8))),
        ("gpu:1g.10gb:7,bandwidth:4K", (Gres("gpu", "1g.10gb", 7), Gres("bandwidth", "", 4096))),
        ("gpu:h100:0(IDX:N/A)", (Gres("gpu", "h100", 0),)),
        ("gres/gpu:2", (Gres("gpu", "", 2),)),
        ("(null)", ()),
    ],
)
def test_generic_resources(text: str, found: tuple[Gres, ...]) -> None:
    assert read_gres(text) == found


@pytest.mark.parametrize(
    ("value", "state", "flags"),
    [
        ("idle", "IDLE", set()),
        ("MIXED*+DRAIN", "MIXED", {"NOT_RESPONDING", "DRAIN"}),
        ("IDLE+CLOUD+POWERED_DOWN", "IDLE", {"CLOUD", "POWERED_DOWN"}),
        ("idle~", "IDLE", {"POWERED_DOWN"}),
        ("down$", "DOWN", {"MAINTENANCE"}),
        (["IDLE", "DRAIN"], "IDLE", {"DRAIN"}),
        (None, "", set()),
    ],
)
def test_states(value: object, state: str, flags: set[str]) -> None:
    assert values.states(value) == (state, flags)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("10:00:00", 36_000),
        ("1-00:00:00", 86_400),
        ("365-00:00:00", 31_536_000),
        ("10:30", 630),
        ("30", 1_800),
        ("2-12", 216_000),
        ("UNLIMITED", None),
        ("Partition_Limit", None),
    ],
)
def test_durations(text: str, seconds: int | None) -> None:
    assert values.duration_s(text) == seconds


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                [
                    *("jobs", "nodes", "name", "job_id", "job_state", "state", "state_flags"),
                    *("set", "infinite", "number", "errors", "exit_code", "return_code"),
                    *("signal", "id", "gres", "cpus", "free_mem", "cpu_load", "partitions"),
                ]
            ),
            inner,
            max_size=6,
        )
    ),
    max_leaves=25,
)


@given(text=st.text(max_size=200) | _JSON.map(json.dumps))
def test_a_reader_gives_a_value_or_says_that_it_cannot(text: str) -> None:
    for reader in READERS:
        try:
            reader(text)
        except Unreadable:
            pass


@given(data=st.data())
def test_a_sample_with_damage_is_read_or_refused(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(OF_SAMPLE)))
    text = sample(name)[:20_000]
    at = data.draw(st.integers(0, len(text)))
    upto = data.draw(st.integers(at, min(len(text), at + 200)))
    broken = text[:at] + data.draw(st.text(max_size=10)) + text[upto:]
    try:
        OF_SAMPLE[name](broken)
    except Unreadable:
        pass


@given(value=_JSON)
def test_small_values_are_total(value: Any) -> None:
    values.number(value)
    values.amount(value)
    values.text_of(value)
    values.words(value)
    values.states(value)
    values.unix_s(value)
    values.duration_s(value)
    values.size_bytes(value)


@given(
    state=st.sampled_from(["DOWN", "UNKNOWN", "FUTURE", "ERROR", "", "SOMETHING_NEW"]),
    flags=st.frozensets(st.sampled_from(["DRAIN", "CLOUD", "PLANNED", "NOT_RESPONDING"])),
)
def test_a_state_that_nobody_knows_is_never_ready(state: str, flags: frozenset[str]) -> None:
    assert not SlurmNode(name="n", state=state, flags=flags).ready
