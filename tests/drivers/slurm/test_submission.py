"""From an order to a batch job, and what Slurm's refusals mean."""

from __future__ import annotations

import ast
import dataclasses
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.drivers.rigs import plain_order
from verderer.core.errors import Fault, Invalid, NotAllowed, Refusal
from verderer.core.model.resources import Resources
from verderer.drivers.contract import Order
from verderer.drivers.slurm import submission
from verderer.drivers.slurm.node import step
from verderer.drivers.slurm.options import SlurmOptions, parse_choices, parse_gres
from verderer.drivers.slurm.pace import Pace
from verderer.drivers.slurm.trouble import FULL_AGAIN_S, explain

GIB = 1 << 30
OPTIONS = SlurmOptions(shared_dir=Path("/shared"))
HOME = Path("/shared/attempts/x")


def order(**changes: Any) -> Order:
    return plain_order(0, **{"command": ("true",), **changes})


def arguments(options: SlurmOptions = OPTIONS, **changes: Any) -> list[str]:
    return submission.arguments(order(**changes), HOME, options)


def amounts(**given: int) -> Resources:
    return Resources.of({name.replace("__", "/"): value for name, value in given.items()})


def test_a_job_is_named_like_its_attempt_and_never_requeued() -> None:
    given = arguments()
    name = str(order().key)
    assert {f"--job-name={name}", f"--comment=verderer {name}", "--no-requeue"} <= set(given)
    assert given[-1] == "/shared/attempts/x/job.sh"


def test_resources_are_rounded_up_to_what_slurm_counts() -> None:
    given = arguments(requests=amounts(cpu=1_500, memory=GIB + 1), limits=amounts(memory=2 * GIB))
    assert "--cpus-per-task=2" in given
    assert "--mem=2048M" in given
    assert not [one for one in arguments() if one.startswith("--mem")]


@pytest.mark.parametrize(
    ("resource", "gres"),
    [
        ("nvidia.com/gpu", "gpu:2"),
        ("nvidia.com/mig-1g.10gb", "gpu:1g.10gb:2"),
        ("amd.com/gpu", "gpu:mi300x:2"),
    ],
)
def test_devices_become_generic_resources(resource: str, gres: str) -> None:
    mapping = {"nvidia.com/gpu": "gpu", "amd.com/gpu": "gpu:mi300x"}
    options = dataclasses.replace(OPTIONS, gres=mapping)
    given = arguments(options, requests=Resources.of({resource: 2_000}))
    assert f"--gres={gres}" in given


def test_a_device_that_the_cluster_does_not_have_is_refused() -> None:
    with pytest.raises(Invalid, match=r"google\.com/tpu") as refused:
        submission.check(order(requests=Resources.of({"google.com/tpu": 4_000})), OPTIONS)
    assert refused.value.code == "unknown_resource"


def test_several_nodes_have_one_task_each() -> None:
    given = arguments(nodes=3)
    assert {"--nodes=3", "--ntasks=3", "--ntasks-per-node=1"} <= set(given)


def test_slurms_limit_lies_behind_our_own() -> None:
    assert "--time=4" in arguments(timeout_s=60.0, grace_s=30.0)
    assert not [one for one in arguments(timeout_s=60.0) if one.startswith("--signal")]


def test_without_a_timeout_slurm_warns_before_its_own_limit() -> None:
    assert "--signal=B:TERM@30" in arguments(grace_s=29.5)
    assert "--signal=TERM@30" in arguments(grace_s=30.0, nodes=2)


def test_the_partition_is_the_clusters_or_a_choice_that_was_allowed() -> None:
    options = dataclasses.replace(OPTIONS, partition="gpu", choices=frozenset({"partition"}))
    assert "--partition=gpu" in arguments(options)
    assert "--partition=big" in arguments(options, env={"VERDERER_SLURM_PARTITION": "big"})


@pytest.mark.parametrize(
    "env",
    [
        pytest.param({"VERDERER_SLURM_QOS": "high"}, id="not allowed here"),
        pytest.param({"VERDERER_SLURM_UID": "0"}, id="no choice at all"),
        pytest.param({"VERDERER_SLURM_PARTITION": "a b"}, id="not a name"),
        pytest.param({"VERDERER_SLURM_PARTITION": "--uid=0"}, id="an option in disguise"),
    ],
)
def test_other_choices_are_refused(env: dict[str, str]) -> None:
    options = dataclasses.replace(OPTIONS, choices=frozenset({"partition"}))
    with pytest.raises(Invalid):
        submission.check(order(env=env), options)


@pytest.mark.parametrize("name", ["NVIDIA_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"])
def test_devices_cannot_be_made_visible_past_slurm(name: str) -> None:
    for value in ("all", "0", "GPU-1234", "mig-1g.10gb"):
        with pytest.raises(Invalid) as refused:
            submission.check(order(env={name: value}), OPTIONS)
        assert refused.value.code == "visible_devices"
    submission.check(order(env={name: "void"}), OPTIONS)


@pytest.mark.parametrize(
    "changes",
    [
        {"command": ()},
        {"nodes": 0},
        {"env": {"A=B": "c"}},
        {"env": {"": "c"}},
        {"env": {"A": "\0"}},
        {"args": ("\0",)},
    ],
)
def test_what_can_never_run_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(Invalid):
        submission.check(order(**changes), OPTIONS)


@given(words=st.lists(st.text(st.characters(exclude_characters="\0"), max_size=20), max_size=4))
def test_no_word_of_a_step_reaches_a_shell(words: list[str]) -> None:
    one = order(command=("program", *words), env={"WORD": "".join(words)}, script="")
    batch = submission.batch_script(HOME, Path("/shared/bin/step.py"), OPTIONS).decode()
    assert batch == submission.batch_script(HOME, Path("/shared/bin/step.py"), OPTIONS).decode()
    document = submission.compose(one, HOME, OPTIONS, {})
    assert document["argv"] == ["program", *words]
    assert all(
        argument.startswith("--") or argument == str(HOME / "job.sh")
        for argument in submission.arguments(one, HOME, OPTIONS)
    )


def test_a_folder_with_any_name_is_quoted(tmp_path: Path) -> None:
    home = tmp_path / 'it\'s; touch $(owned) "here"'
    home.mkdir()
    program = tmp_path / "pro gram.py"
    program.write_text("import sys; print(sys.argv[1:])")
    batch = submission.batch_script(home, program, OPTIONS)
    answer = subprocess.run(["sh"], input=batch, capture_output=True, check=True, cwd=tmp_path)
    assert answer.stdout.decode().strip() == str(["batch", str(home)])
    assert not (tmp_path / "owned").exists()


def test_a_node_without_python_says_so() -> None:
    options = dataclasses.replace(OPTIONS, python="no-such-python")
    batch = submission.batch_script(HOME, Path("/x"), options).replace(b"/usr/libexec", b"/nowhere")
    answer = subprocess.run(["sh"], input=batch, capture_output=True, check=False)
    assert answer.returncode == 127
    assert b"none of no-such-python" in answer.stderr


def test_the_nodes_program_is_old_python() -> None:
    ast.parse(Path(step.__file__).read_text(), feature_version=(3, 6))
    imported = {
        name.name.split(".")[0]
        for node in ast.walk(ast.parse(Path(step.__file__).read_text()))
        if isinstance(node, ast.Import)
        for name in node.names
    }
    assert "verderer" not in imported


def test_settings_for_devices_and_choices_are_read() -> None:
    assert parse_gres(" nvidia.com/gpu=gpu , nvidia.com/mig-1g.10gb=gpu:1g.10gb,") == {
        "nvidia.com/gpu": "gpu",
        "nvidia.com/mig-1g.10gb": "gpu:1g.10gb",
    }
    assert parse_choices("partition, qos") == {"partition", "qos"}
    for wrong in ("nvidia.com/gpu", "gpu=gpu", "nvidia.com/gpu=gpu:a:b", "a/b=g;pu"):
        with pytest.raises(Invalid):
            parse_gres(wrong)
    with pytest.raises(Invalid):
        parse_choices("uid")


@pytest.mark.parametrize(
    ("program", "said", "kind"),
    [
        ("sbatch", "sbatch: error: Batch job submission failed: Invalid partition name", Refusal),
        ("sbatch", "sbatch: error: Batch job submission failed: Requested node", Refusal),
        ("sbatch", "sbatch: error: our filter says no\nsbatch: error: Unspecified error", Refusal),
        (
            "sbatch",
            "sbatch: error: Batch job submission failed: Access/permission denied",
            NotAllowed,
        ),
        (
            "sbatch",
            "sbatch: error: Batch job submission failed: Unable to contact slurm controller",
            Fault,
        ),
        (
            "sbatch",
            "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation",
            Fault,
        ),
        ("sbatch", "sbatch: error: Munge encode failed: Failed to access socket", Fault),
        ("sbatch", "", Fault),
        ("squeue", "slurm_load_jobs error: Something that nobody has seen", Fault),
        ("scontrol", "slurm_update error: Invalid user id", NotAllowed),
        ("scontrol", "Node nx not found", Refusal),
    ],
)
def test_what_a_failed_command_means(program: str, said: str, kind: type[Exception]) -> None:
    assert type(explain(program, said)) is kind


def test_a_limit_on_submissions_is_waited_for() -> None:
    said = (
        "sbatch: error: QOSMaxSubmitJobPerUserLimit\nsbatch: error: Batch job submission failed: "
        "Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)"
    )
    problem = explain("sbatch", said)
    assert isinstance(problem, Fault)
    assert problem.retry_after_s == FULL_AGAIN_S


def test_submissions_keep_their_pace_after_a_burst() -> None:
    now = 0.0
    pace = Pace(10.0, clock=lambda: now)
    now = 100.0
    waits = [pace.take() for _ in range(30)]
    assert waits[:10] == [0.0] * 10
    assert waits[-1] == pytest.approx(2.0)
