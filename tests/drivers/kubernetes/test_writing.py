"""Manifests, names, errors and rights."""

from __future__ import annotations

import base64
import re
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.drivers.kubernetes.bed import documents
from tests.drivers.kubernetes.make import node
from tests.drivers.rigs import plain_order
from verderer.core.errors import Conflict, Fault, Invalid, NotAllowed, Refusal, TooLarge
from verderer.core.model.resources import Resources
from verderer.drivers.contract import Input, Order
from verderer.drivers.kubernetes import manifests, naming
from verderer.drivers.kubernetes.calls.errors import Gone, answered, refused_pod
from verderer.drivers.kubernetes.manifests import Manifests
from verderer.drivers.kubernetes.preflight import checks
from verderer.drivers.kubernetes.preflight.checks import Level
from verderer.drivers.kubernetes.preflight.rights import needed, remedy
from verderer.drivers.kubernetes.seen import devices
from verderer.drivers.kubernetes.terms import Terms

GIB = 1 << 30


def composed(order: Order, queue: str = "", **terms: Any) -> Manifests:
    given = Terms(**terms)
    manifests.check(order, given)
    placement = devices.place(order.requests, order.limits, [])
    return manifests.compose(order, given, placement, queue=queue)


def pod_of(made: Manifests) -> dict[str, Any]:
    spec: dict[str, Any] = made.job["spec"]["template"]["spec"]
    return spec


def container(made: Manifests) -> dict[str, Any]:
    [one] = pod_of(made)["containers"]
    return dict(one)


def env_of(made: Manifests) -> dict[str, Any]:
    return {e["name"]: e.get("value", e.get("valueFrom")) for e in container(made)["env"]}


def test_a_job_starts_once_whatever_happens() -> None:
    made = composed(plain_order(1, image="a", command=("true",)))
    spec = made.job["spec"]
    assert (spec["backoffLimit"], spec["completions"], spec["parallelism"]) == (0, 1, 1)
    assert spec["completionMode"] == "Indexed"
    assert spec["podReplacementPolicy"] == "Failed"
    assert {rule["action"] for rule in spec["podFailurePolicy"]["rules"]} == {"FailJob"}
    assert pod_of(made)["restartPolicy"] == "Never"
    assert "ttlSecondsAfterFinished" not in spec
    assert made.service is None
    assert made.secret is None


def test_a_step_gets_no_rights_in_the_cluster() -> None:
    pod = pod_of(composed(plain_order(1, image="a", command=("true",))))
    assert pod["automountServiceAccountToken"] is False
    assert pod["enableServiceLinks"] is False
    assert pod["serviceAccountName"] == naming.STEP_ACCOUNT


def test_what_a_person_wrote_is_passed_on_to_the_letter() -> None:
    order = plain_order(
        1, image="a", command=("echo", "$(HOME)"), args=("$$", "5$"), env={"A": "$(B)"}
    )
    made = composed(order)
    assert container(made)["command"] == ["echo", "$$(HOME)"]
    assert container(made)["args"] == ["$$$$", "5$"]
    assert env_of(made)["A"] == "$$(B)"


@given(st.text(alphabet="$()AB ", max_size=12))
def test_kubernetes_gives_back_what_was_written(text: str) -> None:
    assert _expand(manifests._literal(text)) == text


def _expand(text: str) -> str:
    """As the kubelet does: `$$` is a dollar, `$(X)` of an unknown variable stays."""
    return re.sub(r"\$\$|\$\([^)]*\)", lambda m: "$" if m[0] == "$$" else m[0], text)


def test_secrets_are_no_part_of_the_pod() -> None:
    order = plain_order(
        1,
        image="a",
        command=("true",),
        env={"LANG": "C", "MLFLOW_TRACKING_TOKEN": "s3cret", "DB_PASSWORD": "hush"},
    )
    made = composed(order)
    assert b"s3cret" not in msgspec.json.encode(made.job)
    assert b"hush" not in msgspec.json.encode(made.job)
    assert made.secret is not None
    reference = env_of(made)["MLFLOW_TRACKING_TOKEN"]["secretKeyRef"]
    assert base64.b64decode(made.secret["data"][reference["key"]]) == b"s3cret"
    assert reference["name"] == str(order.key) == made.secret["metadata"]["name"]
    assert "s3cret" not in repr(made)


@pytest.mark.parametrize(
    ("script", "command"),
    [
        pytest.param("#!/usr/bin/python3\nprint(1)", ["/verderer/script"], id="by its interpreter"),
        pytest.param("echo hi", ["/bin/sh", "-c"], id="by a shell"),
    ],
)
def test_a_script_is_mounted(script: str, command: list[str]) -> None:
    made = composed(plain_order(1, image="a", script=script, args=("x",)))
    assert container(made)["command"][: len(command)] == command
    assert container(made)["args"] == ["x"]
    assert made.secret is not None
    assert base64.b64decode(made.secret["data"]["script"]).decode() == script
    [volume] = pod_of(made)["volumes"]
    assert volume["secret"]["defaultMode"] == 0o555


def test_who_asks_for_no_gpu_sees_none() -> None:
    assert env_of(composed(plain_order(1, image="a", command=("x",))))[
        "NVIDIA_VISIBLE_DEVICES"
    ] == ("void")
    order = plain_order(
        1,
        image="a",
        command=("x",),
        requests=Resources.of({"nvidia.com/gpu": 2_000, "memory": GIB, "cpu": 500}),
        env={"NVIDIA_VISIBLE_DEVICES": "all"},
    )
    made = composed(order)
    assert "NVIDIA_VISIBLE_DEVICES" not in env_of(made)
    assert container(made)["resources"] == {
        "requests": {"nvidia.com/gpu": "2", "memory": "1Gi", "cpu": "500m"},
        "limits": {"nvidia.com/gpu": "2"},
    }
    [toleration] = pod_of(made)["tolerations"]
    assert toleration["key"] == "nvidia.com/gpu"


def test_replicas_find_each_other() -> None:
    order = plain_order(1, image="a", command=("x",), nodes=4)
    made = composed(order)
    assert made.service is not None
    assert made.service["spec"]["clusterIP"] == "None"
    assert made.service["spec"]["publishNotReadyAddresses"] is True
    assert pod_of(made)["subdomain"] == made.service["metadata"]["name"]
    env = env_of(made)
    assert env["MASTER_ADDR"] == f"{order.key}-0.{order.key}"
    assert env["VERDERER_NUM_NODES"] == "4"
    assert "job-completion-index" in env["VERDERER_NODE_RANK"]["fieldRef"]["fieldPath"]
    assert made.job["spec"]["completions"] == 4


def test_times_are_whole_seconds_of_the_pod() -> None:
    pod = pod_of(composed(plain_order(1, image="a", command=("x",), timeout_s=0.2, grace_s=1.5)))
    assert (pod["activeDeadlineSeconds"], pod["terminationGracePeriodSeconds"]) == (1, 2)


def test_a_queue_holds_the_job_back() -> None:
    job = composed(plain_order(1, image="a", command=("x",)), queue="gold").job
    assert job["metadata"]["labels"][naming.QUEUE] == "gold"
    assert job["spec"]["suspend"] is True


def test_the_strictest_standard_is_met() -> None:
    made = composed(plain_order(1, image="a", command=("x",)), pod_security="restricted")
    assert pod_of(made)["securityContext"]["runAsNonRoot"] is True
    assert container(made)["securityContext"]["allowPrivilegeEscalation"] is False


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        pytest.param({}, Invalid, id="no image"),
        pytest.param({"image": "a", "command": ("a\0b",)}, Invalid, id="a NUL"),
        pytest.param({"image": "a", "env": {"A=B": "c"}}, Invalid, id="a name with ="),
        pytest.param({"image": "a", "nodes": 0}, Invalid, id="no replicas"),
        pytest.param(
            {"image": "a", "inputs": (Input(name="i", path="i", key="k"),)},
            Invalid,
            id="files to carry",
        ),
        pytest.param({"image": "a", "script": "x" * 1_000_000}, TooLarge, id="a huge script"),
        pytest.param({"image": "a", "args": ("x" * 1_000_000,)}, TooLarge, id="a huge argument"),
    ],
)
def test_the_impossible_is_refused(fields: dict[str, Any], kind: type[Refusal]) -> None:
    with pytest.raises(kind):
        composed(plain_order(1, **fields))


def test_a_project_has_a_namespace_of_its_own() -> None:
    assert naming.namespace_of("vision", prefix="verderer-") == "verderer-vision"
    long = naming.namespace_of("a" * 63, prefix="verderer-")
    assert len(long) <= 63
    assert long != naming.namespace_of("a" * 62 + "b", prefix="verderer-")


_NAME = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", fullmatch=True)


@given(_NAME, _NAME)
def test_projects_never_share_a_namespace(one: str, other: str) -> None:
    names = {naming.namespace_of(p, prefix="verderer-") for p in (one, other)}
    assert len(names) == len({one, other})
    shortened = naming.namespace_of(one, prefix="verderer-").removeprefix("verderer-")
    if shortened != one:
        assert naming.namespace_of(shortened, prefix="verderer-") not in names


def _status(code: int, message: str, reason: str = "", **details: Any) -> bytes:
    body = {"code": code, "message": message, "reason": reason, "details": details}
    return msgspec.json.encode(body)


RBAC = (
    'jobs.batch is forbidden: User "u" cannot create resource "jobs" in API group "batch" '
    'in the namespace "verderer-x"'
)


@pytest.mark.parametrize(
    ("code", "body", "kind", "hint"),
    [
        (401, _status(401, "Unauthorized"), Fault, "credential"),
        (403, _status(403, RBAC), NotAllowed, "create jobs.batch in namespace verderer-x"),
        (403, _status(403, "exceeded quota: q, requested: count/jobs.batch=1"), Fault, "quota"),
        (403, _status(403, "because it is being terminated"), Fault, "namespace"),
        (403, _status(403, 'admission webhook "x" denied the request: no'), NotAllowed, "policy"),
        (404, b"404 page not found", Refusal, ""),
        (409, _status(409, "exists", "AlreadyExists"), Conflict, ""),
        (409, _status(409, "modified", "Conflict", kind="resourcequotas"), Fault, ""),
        (409, _status(409, "modified", "Conflict", kind="jobs"), Conflict, ""),
        (410, _status(410, "too old", "Expired"), Gone, ""),
        (413, b"", TooLarge, ""),
        (422, _status(422, "Invalid value"), Invalid, ""),
        (429, _status(429, "slow down", retryAfterSeconds=7), Fault, "busy"),
        (500, _status(500, 'failed calling webhook "x": refused'), Fault, "webhook"),
        (503, b"<html>", Fault, ""),
        (504, b"\xff\xfe", Fault, ""),
    ],
)
def test_what_the_api_server_says(code: int, body: bytes, kind: type, hint: str) -> None:
    error = answered(code, body)
    assert isinstance(error, kind), error
    assert hint in error.hint
    assert error.message


@given(st.integers(400, 599), st.binary(max_size=200))
def test_any_answer_is_an_error_of_ours(code: int, body: bytes) -> None:
    assert answered(code, body).message


def test_waiting_as_long_as_the_server_says() -> None:
    error = answered(429, b"{}", retry_after="12")
    assert isinstance(error, Fault)
    assert error.retry_after_s == 12.0
    assert isinstance(refused_pod("exceeded quota: q"), Fault)


def test_manifests_grant_what_is_used_and_nothing_else() -> None:
    granted = set()
    roles = [d for d in documents("rbac") if d["kind"] in ("Role", "ClusterRole")]
    for role in roles:
        where = role["metadata"].get("namespace", "")
        if role["metadata"]["name"] == naming.PROJECT_ROLE:
            where = "p"
        for rule in role["rules"]:
            names = rule.get("resourceNames", [""])
            assert "*" not in (*rule["apiGroups"], *rule["resources"], *rule["verbs"])
            granted |= {
                (where, group, resource, verb, name)
                for group in rule["apiGroups"]
                for resource in rule["resources"]
                for verb in rule["verbs"]
                for name in names
            }
    terms = Terms(identity_secret="cube-agent-credential")
    used = {(r.namespace, r.group, r.resource, r.verb, r.name) for r in needed(terms, ["p"])}
    assert granted == used


def test_a_missing_right_is_named_and_mended() -> None:
    wanted = needed(Terms(), ["verderer-x"])
    missing = [r for r in wanted if r.resource == "pods/log"]
    finding = checks.rights(missing, len(wanted), Terms())
    assert finding.level is Level.BAD
    assert "get pods/log in namespace verderer-x" in finding.message
    role, binding = yaml.safe_load_all(finding.remedy)
    assert (role["kind"], role["metadata"]["namespace"]) == ("Role", "verderer-x")
    assert role["rules"] == [{"apiGroups": [""], "resources": ["pods/log"], "verbs": ["get"]}]
    assert binding["subjects"][0]["name"] == "cube-agent"
    assert [d["kind"] for d in yaml.safe_load_all(remedy(wanted[:1], Terms()))] == [
        "ClusterRole",
        "ClusterRoleBinding",
    ]


@pytest.mark.parametrize(
    ("text", "level"),
    [
        ("v1.37.2", Level.FINE),
        ("v1.29.4+k3s1", Level.ODD),
        ("v1.24.17-eks-2f008fe", Level.BAD),
        ("v1.30+", Level.FINE),
        ("?", Level.ODD),
    ],
)
def test_versions(text: str, level: Level) -> None:
    assert checks.version(text).level is level


def test_clocks_and_nodes() -> None:
    assert checks.clock(2).level is Level.FINE
    assert checks.clock(-90).level is Level.ODD
    assert checks.nodes([])[0].level is Level.BAD
    broken = node(labels={"nvidia.com/gpu.present": "true"})
    assert [f.level for f in checks.nodes([broken])] == [Level.FINE, Level.ODD]
