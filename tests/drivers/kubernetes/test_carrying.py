"""Pods with carriers, and what is read of them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.drivers.kubernetes.make import ENDED, STARTED, job
from tests.drivers.kubernetes.test_writing import composed, pod_of
from tests.drivers.rigs import plain_order
from verderer.core.errors import Invalid
from verderer.core.model.attempt import EndCause
from verderer.drivers.contract import Input, Order, Output, Stored
from verderer.drivers.kubernetes import carrying, naming
from verderer.drivers.kubernetes.deciding.carriers import stored
from verderer.drivers.kubernetes.deciding.ending import View, judge
from verderer.drivers.kubernetes.intention import Named
from verderer.drivers.kubernetes.seen.sights import Pod

OUTPUTS = (Named(name="model", key="artifacts/m"), Named(name="log", key="artifacts/l"))
REPORT = '{"outputs":[[5,2,"aa",true],[1,1,"bb",false]]}'


def order(**fields: Any) -> Order:
    return plain_order(1, image="a", command=("true",), carry='{"ticket":"t"}', **fields)


def ran(code: int, message: str = "", reason: str = "") -> dict[str, Any]:
    ended = {"exitCode": code, "message": message, "reason": reason}
    return {"terminated": {**ended, "startedAt": STARTED, "finishedAt": ENDED}}


def pod(phase: str, **states: dict[str, Any]) -> Pod:
    statuses = [{"name": name, "state": state} for name, state in states.items()]
    document = {
        "metadata": {"name": "p", "uid": "u", "labels": {naming.COMPLETION_INDEX: "0"}},
        "status": {"phase": phase, "initContainerStatuses": statuses},
    }
    return msgspec.convert(document, Pod)


def both() -> Order:
    return order(
        inputs=(Input(name="i", path="i", key="k"),), outputs=(Output(name="o", path="o", key="p"),)
    )


def test_inputs_come_before_the_program_and_outputs_go_after_it() -> None:
    made = composed(both(), carrier_image="agent:1")
    spec = pod_of(made)
    assert [one["name"] for one in spec["initContainers"]] == ["fetch", "main"]
    assert [one["name"] for one in spec["containers"]] == ["store"]
    main = spec["initContainers"][1]
    assert main["workingDir"] == carrying.WORK
    assert "VERDERER_CARRY_PLAN" not in str(main["env"])
    assert made.secret is not None
    assert "t" not in str(made.job).split("ticket")[1:], "the ticket stands in the Secret alone"
    rules = made.job["spec"]["podFailurePolicy"]["rules"]
    named = [rule["onExitCodes"]["containerName"] for rule in rules if "onExitCodes" in rule]
    assert named == ["main", "fetch", "store"]


def test_a_step_that_only_reads_keeps_its_container() -> None:
    made = composed(order(inputs=(Input(name="i", path="i", key="k"),)), carrier_image="agent:1")
    assert [one["name"] for one in pod_of(made)["initContainers"]] == ["fetch"]
    assert [one["name"] for one in pod_of(made)["containers"]] == ["main"]


def test_carriers_do_not_spend_the_time_of_the_step() -> None:
    timed = order(timeout_s=60, outputs=(Output(name="o", path="o", key="p"),))
    made = composed(timed, carrier_image="agent:1")
    assert pod_of(made)["activeDeadlineSeconds"] == 60 + carrying.BACKSTOP_S


def test_without_an_image_files_are_refused_by_the_name_of_the_setting() -> None:
    with pytest.raises(Invalid) as refused:
        composed(both())
    assert "kubernetes.carrier_image" in refused.value.hint


def test_more_outputs_than_a_report_holds_are_refused() -> None:
    many = tuple(Output(name=str(n), path=str(n), key=str(n)) for n in range(41))
    with pytest.raises(Invalid, match="at most 40 outputs"):
        composed(order(outputs=many), carrier_image="agent:1")


def test_a_success_tells_what_was_stored() -> None:
    seen = pod("Succeeded", main=ran(0), store=ran(0, REPORT))
    verdict = judge(View(pods=[seen], outputs=OUTPUTS, had_job=True))
    assert verdict.end is not None
    assert (verdict.end.cause, verdict.end.exit_code) == (EndCause.EXIT, 0)
    assert verdict.outputs == (
        Stored(name="model", key="artifacts/m/", size=5, files=2, sha256="aa"),
        Stored(name="log", key="artifacts/l", size=1, sha256="bb"),
    )


@pytest.mark.parametrize(
    ("states", "cause", "exit_code", "words"),
    [
        ({"fetch": ran(1, '{"error":"input gone"}')}, EndCause.START, None, "input gone"),
        ({"fetch": ran(0), "main": ran(7)}, EndCause.EXIT, 7, "exit code 7"),
        ({"main": ran(0), "store": ran(1, '{"error":"full"}')}, EndCause.OUTPUT, 0, "full"),
        ({"main": ran(0), "store": ran(137, "", "OOMKilled")}, EndCause.OUTPUT, 0, "memory"),
        ({"main": ran(0), "store": ran(2, "no json")}, EndCause.OUTPUT, 0, "exit code 2"),
        ({"main": ran(137, "", "OOMKilled")}, EndCause.OOM, None, "memory limit"),
    ],
)
def test_a_failure_is_that_of_whoever_failed(
    states: dict[str, Any], cause: EndCause, exit_code: int | None, words: str
) -> None:
    verdict = judge(View(pods=[pod("Failed", **states)], outputs=OUTPUTS, had_job=True))
    assert verdict.end is not None
    assert (verdict.end.cause, verdict.end.exit_code) == (cause, exit_code)
    assert words in verdict.end.message


def test_a_job_that_is_complete_waits_for_the_report_of_its_pod() -> None:
    done = job(("Complete", "CompletionsReached", ""))
    late = pod("Running", main=ran(0), store={"running": {"startedAt": STARTED}})
    view = View(pods=[late], outputs=OUTPUTS, had_job=True, job=done)
    assert judge(view).end is None
    assert judge(view).storing
    gone = View(pods=[], outputs=OUTPUTS, had_job=True, job=done)
    end = judge(gone).end
    assert end is not None
    assert end.cause is EndCause.OUTPUT


def test_the_word_of_the_job_names_the_carrier() -> None:
    message = "Container store for pod n/p failed with exit code 1 matching FailJob rule at index 2"
    failed = job(("Failed", "PodFailurePolicy", message))
    end = judge(View(outputs=OUTPUTS, had_job=True, job=failed)).end
    assert end is not None
    assert end.cause is EndCause.OUTPUT


@given(st.text())
def test_any_last_words_can_be_read(words: str) -> None:
    stored(pod("Succeeded", main=ran(0), store=ran(0, words)), OUTPUTS)
