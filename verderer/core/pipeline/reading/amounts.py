"""How much of each resource a step asks for: names and quantities as Kubernetes writes them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from verderer.core.model.resources import counts_bytes, parse_quantity
from verderer.core.pipeline.reading.document import Mapping, Node, Scalar, child_path
from verderer.core.pipeline.reading.kinds import Json, Kind, about_references, describe, scalar
from verderer.core.pipeline.reading.problems import Problems, did_you_mean, shown

_DNS: Final = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_NAME: Final = (
    r"cpu|memory|ephemeral-storage|hugepages-[1-9][0-9]{0,5}[KMG]i|"
    rf"{_DNS}(?:\.{_DNS})*/[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?"
)
_MAX_NAME: Final = 317
_QUANTITY: Final = r"\+?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]?|[eE][+-]?[0-9]{1,3})"
_KNOWN: Final = (
    "cpu",
    "memory",
    "ephemeral-storage",
    "nvidia.com/gpu",
    "amd.com/gpu",
    "google.com/tpu",
    "huawei.com/Ascend910",
)
_ALSO: Final = {
    "gpu": "nvidia.com/gpu",
    "gpus": "nvidia.com/gpu",
    "nvidia": "nvidia.com/gpu",
    "tpu": "google.com/tpu",
    "npu": "huawei.com/Ascend910",
    "cpus": "cpu",
    "cores": "cpu",
    "mem": "memory",
    "ram": "memory",
    "disk": "ephemeral-storage",
    "storage": "ephemeral-storage",
}


@dataclass(frozen=True)
class Amounts(Kind[dict[str, int]]):
    """A mapping of resource names to positive quantities, read into base units."""

    def read(self, node: Node, path: str, problems: Problems) -> dict[str, int] | None:
        if not isinstance(node, Mapping):
            problems.add(
                f"expected a mapping of resources to quantities, found {describe(node)}",
                field=path,
                place=node.place,
                hint="such as {cpu: 500m, memory: 512Mi}",
            )
            return None
        amounts: dict[str, int] = {}
        for name, (key, value) in node.pairs.items():
            below = child_path(path, name)
            problems.mark(below, value.place)
            if not _check_name(name, key, below, problems):
                continue
            amount = _amount(name, value, below, problems)
            if amount is not None:
                amounts[name] = amount
        return amounts

    def schema(self) -> Json:
        quantity: Json = {
            "anyOf": [
                {"type": "number", "exclusiveMinimum": 0},
                {"type": "string", "maxLength": 40, "pattern": f"^{_QUANTITY}$"},
            ]
        }
        names: Json = {"maxLength": _MAX_NAME, "pattern": f"^(?:{_NAME})$"}
        return {"type": "object", "propertyNames": names, "additionalProperties": quantity}


def _check_name(name: str, key: Scalar, path: str, problems: Problems) -> bool:
    if len(name) <= _MAX_NAME and re.fullmatch(_NAME, name):
        return True
    known = _ALSO.get(name.lower()) or problems.nearest(name, _KNOWN)
    problems.add(
        f"expected the name of a resource, found {shown(name)}",
        field=path,
        place=key.place,
        hint=did_you_mean(known) or "devices have a domain in their name, such as nvidia.com/gpu",
    )
    return False


def _amount(resource: str, node: Node, path: str, problems: Problems) -> int | None:
    found = scalar(node, path, f"a quantity of {resource}", problems)
    if found is None:
        return None
    try:
        amount = parse_quantity(found.text, resource=resource)
    except ValueError as e:
        hint = about_references(found.text)
        problems.add(str(e), field=path, place=found.place, hint=hint)
        return None
    if amount == 0:
        problems.add(
            f"expected more than 0 of {resource}, found {shown(found.text)}",
            field=path,
            place=found.place,
            hint=f"leave {resource} out to ask for none",
        )
        return None
    if amount > _most(resource):
        problems.add(
            f"no node has {found.text} of {resource}",
            field=path,
            place=found.place,
            hint="check the unit: m is a thousandth, M a million, Mi 1024 times 1024",
        )
        return None
    return amount


def _most(resource: str) -> int:
    """More than any node will have for years: beyond it somebody slipped in the unit."""
    return 2**50 if counts_bytes(resource) else 100_000 * 1000
