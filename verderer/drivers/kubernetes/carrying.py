"""Containers that carry the files of a step, before its program and after it.

The kubelet runs init containers one after the other and each to its end: first `fetch`, which puts
the inputs into a volume of the pod, then the program itself, which works in that volume, and only
when it has succeeded `store`. Nobody has to notice that a program has ended or to guess how: its
exit code is the kubelet's to say, and an upload that fails is the failure of another container.
"""

from __future__ import annotations

from typing import Any, Final

from verderer.core.errors import Invalid
from verderer.drivers.contract import Order
from verderer.drivers.kubernetes import naming
from verderer.drivers.kubernetes.terms import RESTRICTED, Terms

MAX_OUTPUTS: Final = 40
"""So many fit into the 4 KiB that a container may leave as its last words."""
WORK: Final = "/verderer-work"
PLAN: Final = "carry"
"""Key of the plan in the attempt's Secret."""
LAST_WORDS: Final = "/dev/termination-log"
BACKSTOP_S: Final = 24 * 3600
"""For both carriers together, added to the step's own timeout, which they do not spend."""
_VOLUME: Final = "work"
_RESOURCES: Final = {
    "requests": {"cpu": "50m", "memory": "96Mi"},
    "limits": {"cpu": "2", "memory": "512Mi"},
}


def check(order: Order, terms: Terms) -> None:
    """Refuse files that cannot be carried here.

    Raises:
        Invalid: no image is set for carriers, or the outputs are too many.
    """
    if not (order.inputs or order.outputs):
        return
    if not terms.carrier_image:
        raise Invalid(
            "this cluster cannot carry inputs and outputs of a step",
            hint="set kubernetes.carrier_image to the agent's own image",
            code="files_not_carried",
        )
    if len(order.outputs) > MAX_OUTPUTS:
        raise Invalid(
            f"a step on Kubernetes has at most {MAX_OUTPUTS} outputs, not {len(order.outputs)}",
            hint="put several files into one folder and make that an output",
        )


def containers(order: Order) -> tuple[str, ...]:
    """Names of the step's carriers."""
    found = []
    if order.inputs:
        found.append(naming.FETCH)
    if order.outputs:
        found.append(naming.STORE)
    return tuple(found)


def add(spec: dict[str, Any], order: Order, terms: Terms) -> None:
    """Put the carriers into the pod's `spec`, which holds the program's container alone."""
    named = containers(order)
    if not named:
        return
    (main,) = spec["containers"]
    mount = {"name": _VOLUME, "mountPath": WORK}
    main["workingDir"] = WORK
    main["volumeMounts"] = [*main.get("volumeMounts", ()), mount]
    spec["volumes"] = [*spec.get("volumes", ()), {"name": _VOLUME, "emptyDir": {}}]
    first = [_carrier(naming.FETCH, order, terms)] if naming.FETCH in named else []
    if naming.STORE in named:
        first.append(main)
        spec["containers"] = [_carrier(naming.STORE, order, terms)]
    if first:
        spec["initContainers"] = first
    if "activeDeadlineSeconds" in spec:
        spec["activeDeadlineSeconds"] += BACKSTOP_S
    if terms.pod_security == RESTRICTED:
        # Program and carriers are different users there; what they write has this group.
        spec["securityContext"]["fsGroup"] = 65_532


def _carrier(name: str, order: Order, terms: Terms) -> dict[str, Any]:
    rank = f"metadata.annotations['{naming.COMPLETION_INDEX}']"
    plan = {"secretKeyRef": {"name": str(order.key), "key": PLAN}}
    one: dict[str, Any] = {
        "name": name,
        "image": terms.carrier_image,
        "command": ["verderer", "carry", name],
        "args": ["--workspace", WORK, "--report", LAST_WORDS],
        "env": [
            {"name": "VERDERER_CARRY_PLAN", "valueFrom": plan},
            {"name": "VERDERER_NODE_RANK", "valueFrom": {"fieldRef": {"fieldPath": rank}}},
            {"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"},
        ],
        "resources": _RESOURCES,
        "volumeMounts": [{"name": _VOLUME, "mountPath": WORK}],
        "terminationMessagePath": LAST_WORDS,
        "securityContext": {"allowPrivilegeEscalation": False},
    }
    if terms.pod_security == RESTRICTED:
        one["securityContext"] |= {"capabilities": {"drop": ["ALL"]}, "runAsUser": 65_532}
    else:
        # It reads what the program wrote, whoever that ran as.
        one["securityContext"]["runAsUser"] = 0
    return one
