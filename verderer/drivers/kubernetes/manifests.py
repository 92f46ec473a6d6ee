"""From an `Order` to a Job, and to the Service and the Secret beside it. No talking, no reading."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from verderer.core.errors import Invalid, TooLarge
from verderer.drivers.contract import Order
from verderer.drivers.kubernetes import carrying, naming
from verderer.drivers.kubernetes.intention import whole_seconds
from verderer.drivers.kubernetes.seen.devices import Placement
from verderer.drivers.kubernetes.seen.quantities import written
from verderer.drivers.kubernetes.terms import RESTRICTED, Terms

MASTER_PORT: Final = 29_500
MAX_NODES: Final = 10_000
MAX_BYTES: Final = 900_000
"""Of one object: the API server's store takes 1.5 MiB, and the Job stands in our object too."""
_FOLDER: Final = "/verderer"
_SCRIPT: Final = "script"
# Bash where the image has one, as everywhere else; the script itself is never parsed twice.
_RUN_SCRIPT: Final = (
    f'if command -v bash >/dev/null 2>&1; then exec bash -eu {_FOLDER}/{_SCRIPT} "$@"; fi; '
    f'exec sh -eu {_FOLDER}/{_SCRIPT} "$@"'
)
_SECRET_NAME: Final = re.compile(
    r"TOKEN|SECRET|PASSW|CREDENTIAL|PRIVATE|API_?KEY|ACCESS_KEY", re.IGNORECASE
)
_VISIBLE: Final = "NVIDIA_VISIBLE_DEVICES"


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifests:
    """Everything of one attempt but the intention itself."""

    job: dict[str, Any]
    service: dict[str, Any] | None = None
    secret: dict[str, Any] | None = field(default=None, repr=False)


def check(order: Order, terms: Terms) -> None:
    """Refuse what can never be started here.

    Raises:
        Invalid: no image, nothing to run, a NUL in a string, too many nodes, or files that
            cannot be carried.
        TooLarge: more than one object of the cluster can hold.
    """
    if not (order.image or terms.default_image):
        raise Invalid(
            "a step on Kubernetes needs an image",
            hint="name one in the step, or set kubernetes.default_image for this cluster",
            code="image_missing",
        )
    if not 1 <= order.nodes <= MAX_NODES:
        raise Invalid(f"a step has 1 to {MAX_NODES} nodes, not {order.nodes}")
    carrying.check(order, terms)
    for name in order.env:
        if not name or "=" in name:
            raise Invalid(f"{name!r} cannot name an environment variable")
    for text in (*order.command, *order.args, *order.env, *order.env.values(), order.script):
        if "\0" in text:
            raise Invalid("arguments, scripts and environment variables cannot contain a NUL")


def compose(order: Order, terms: Terms, placement: Placement, *, queue: str = "") -> Manifests:
    """The manifests of a checked order. `queue` is Kueue's, where the cluster has it.

    Raises:
        TooLarge: an object would not fit into the cluster's store.
    """
    name = str(order.key)
    secrets = _secret_values(order)
    made = Manifests(
        job=_job(order, terms, placement, queue, secrets),
        service=_service(order) if order.nodes > 1 else None,
        secret=_secret(order, secrets) if secrets else None,
    )
    for one in (made.job, made.secret):
        if one is not None and len(msgspec.json.encode(one)) > MAX_BYTES:
            raise TooLarge(
                f"{name} is too large for the cluster: script, arguments and environment may "
                f"have {MAX_BYTES:,} bytes together",
                hint="put large data into object storage or into the image",
            )
    return made


def stamped(manifest: Mapping[str, Any], intention_uid: str) -> dict[str, Any]:
    """The same, marked as made for that very intention."""
    metadata = dict(manifest["metadata"])
    metadata["annotations"] = {
        **metadata.get("annotations", {}),
        naming.INTENTION: intention_uid,
    }
    return {**manifest, "metadata": metadata}


def _job(
    order: Order, terms: Terms, placement: Placement, queue: str, secrets: Mapping[str, str]
) -> dict[str, Any]:
    labels = _labels(order)
    # Every failure ends the Job at once and says why in its condition: what happens next is
    # decided by the control plane, and a pod that Kubernetes replaced would be a second start.
    rules = [
        {"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
        *(
            {
                "action": "FailJob",
                "onExitCodes": {"containerName": name, "operator": "NotIn", "values": [0]},
            }
            for name in (naming.CONTAINER, *carrying.containers(order))
        ),
    ]
    spec: dict[str, Any] = {
        "completionMode": "Indexed",
        "completions": order.nodes,
        "parallelism": order.nodes,
        "backoffLimit": 0,
        "podReplacementPolicy": "Failed",
        "podFailurePolicy": {"rules": rules},
        "template": {
            "metadata": {
                "labels": labels,
                "annotations": {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"},
            },
            "spec": _pod(order, terms, placement, secrets),
        },
    }
    if queue:
        spec["suspend"] = True
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": str(order.key),
            "labels": {**labels, **({naming.QUEUE: queue} if queue else {})},
            "annotations": {naming.STEP: order.step, naming.RUN_NAME: order.run_name},
        },
        "spec": spec,
    }


def _labels(order: Order) -> dict[str, str]:
    return {
        naming.MANAGED_BY: naming.US,
        naming.ATTEMPT: str(order.key),
        naming.RUN: f"{order.key.run:016x}",
        naming.PROJECT: naming.label_value(order.project),
    }


def _pod(
    order: Order, terms: Terms, placement: Placement, secrets: Mapping[str, str]
) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": whole_seconds(order.grace_s),
        "containers": [_container(order, terms, placement, secrets)],
    }
    if order.timeout_s is not None:
        # Of the pod, not of the Job: a Job's clock runs while it waits for a place, and a Job
        # that is out of time takes its pods with it before their last words can be read.
        spec["activeDeadlineSeconds"] = whole_seconds(order.timeout_s)
    if terms.create_namespaces:
        spec["serviceAccountName"] = naming.STEP_ACCOUNT
    if order.nodes > 1:
        spec["subdomain"] = str(order.key)
    if terms.image_pull_secrets:
        spec["imagePullSecrets"] = [{"name": name} for name in terms.image_pull_secrets]
    if placement.expressions:
        term = {"matchExpressions": [dict(one) for one in placement.expressions]}
        spec["affinity"] = {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}
            }
        }
    if placement.tolerated:
        # What the ExtendedResourceToleration plugin adds where it is switched on.
        spec["tolerations"] = [
            {"key": name, "operator": "Exists", "effect": "NoSchedule"}
            for name in placement.tolerated
        ]
    if terms.pod_security == RESTRICTED:
        spec["securityContext"] = {
            "runAsNonRoot": True,
            "seccompProfile": {"type": "RuntimeDefault"},
        }
    if order.script:
        items = [{"key": _SCRIPT, "path": _SCRIPT}]
        source = {"secretName": str(order.key), "defaultMode": 0o555, "items": items}
        spec["volumes"] = [{"name": "verderer", "secret": source}]
    carrying.add(spec, order, terms)
    return spec


def _container(
    order: Order, terms: Terms, placement: Placement, secrets: Mapping[str, str]
) -> dict[str, Any]:
    command, args = _program(order)
    one: dict[str, Any] = {
        "name": naming.CONTAINER,
        "image": order.image or terms.default_image,
        "env": _environment(order, secrets),
        "resources": {
            "requests": written(placement.requests),
            "limits": written(placement.limits),
        },
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
    if command:
        one["command"] = [_literal(text) for text in command]
    if args:
        one["args"] = [_literal(text) for text in args]
    if order.script:
        one["volumeMounts"] = [{"name": "verderer", "mountPath": _FOLDER, "readOnly": True}]
    if terms.pod_security == RESTRICTED:
        one["securityContext"] = {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
        }
    return one


def _program(order: Order) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if not order.script:
        return order.command, order.args
    if order.script.startswith("#!"):
        return (f"{_FOLDER}/{_SCRIPT}",), order.args
    return ("/bin/sh", "-c", _RUN_SCRIPT, _SCRIPT), order.args


def _environment(order: Order, secrets: Mapping[str, str]) -> list[dict[str, Any]]:
    """The step's own variables first; what the platform says comes over them."""
    said: dict[str, dict[str, Any]] = {
        name: {"name": name, "value": _literal(text)} for name, text in order.env.items()
    }
    for key in secrets:
        if key.startswith("env-"):
            name = list(order.env)[int(key.removeprefix("env-"))]
            reference = {"name": str(order.key), "key": key}
            said[name] = {"name": name, "valueFrom": {"secretKeyRef": reference}}
    rank = f"metadata.annotations['{naming.COMPLETION_INDEX}']"
    said["VERDERER_NODE_RANK"] = {
        "name": "VERDERER_NODE_RANK",
        "valueFrom": {"fieldRef": {"fieldPath": rank}},
    }
    fixed = {"VERDERER_NUM_NODES": str(order.nodes), "MASTER_ADDR": "127.0.0.1"}
    if order.nodes > 1:
        fixed["MASTER_ADDR"] = f"{order.key}-0.{order.key}"
        fixed["MASTER_PORT"] = str(MASTER_PORT)
    if not any(name.startswith("nvidia.com/") for name in order.requests):
        # Images built on CUDA say `all`, and would see every GPU of the node.
        fixed[_VISIBLE] = "void"
    else:
        said.pop(_VISIBLE, None)
    said.update({name: {"name": name, "value": text} for name, text in fixed.items()})
    return list(said.values())


def _literal(text: str) -> str:
    """Kubernetes replaces `$(NAME)`; nothing may be replaced in what a person wrote."""
    return text.replace("$", "$$") if "$(" in text or "$$" in text else text


def _secret_values(order: Order) -> dict[str, str]:
    """What must not be read by everybody who may look at pods."""
    values = {
        f"env-{index}": text
        for index, (name, text) in enumerate(order.env.items())
        if _SECRET_NAME.search(name) and text
    }
    if order.script:
        values[_SCRIPT] = order.script
    if carrying.containers(order):
        values[carrying.PLAN] = order.carry
    return values


def _secret(order: Order, values: Mapping[str, str]) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": str(order.key), "labels": _labels(order)},
        "immutable": True,
        "data": {
            key: base64.b64encode(text.encode("utf-8", "surrogateescape")).decode()
            for key, text in values.items()
        },
    }


def _service(order: Order) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": str(order.key), "labels": _labels(order)},
        "spec": {
            "clusterIP": "None",
            # Ranks look for each other while they start, before any of them counts as ready.
            "publishNotReadyAddresses": True,
            "selector": {naming.ATTEMPT: str(order.key)},
            "ports": [{"name": "master", "port": MASTER_PORT}],
        },
    }
