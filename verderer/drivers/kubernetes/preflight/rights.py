"""Every right that the driver uses, as one table; requests, checks and manifests come from it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from verderer.drivers.kubernetes import naming
from verderer.drivers.kubernetes.terms import Terms

ANYWHERE: Final = ""


@dataclass(frozen=True, slots=True, order=True)
class Right:
    """One verb on one resource."""

    namespace: str
    """Empty: in all namespaces, or of the cluster itself."""
    group: str
    resource: str
    """With its subresource: `pods/log`."""
    verb: str
    name: str = ""
    """Of the one object that it is about; empty: all."""

    def __str__(self) -> str:
        what = f"{self.resource}.{self.group}" if self.group else self.resource
        named = f" named {self.name}" if self.name else ""
        where = f" in namespace {self.namespace}" if self.namespace else " in all namespaces"
        return f"{self.verb} {what}{named}{where}"

    def review(self) -> dict[str, Any]:
        """A SelfSubjectAccessReview of it."""
        resource, _, subresource = self.resource.partition("/")
        attributes = {
            "namespace": self.namespace,
            "verb": self.verb,
            "group": self.group,
            "resource": resource,
            "subresource": subresource,
            "name": self.name,
        }
        return {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": {k: v for k, v in attributes.items() if v}},
        }


def needed(terms: Terms, projects: Iterable[str]) -> list[Right]:
    """Everything that is done, with `projects` as namespaces that work goes to."""
    rights = [*_everywhere(), *_own(terms.namespace)]
    if terms.create_namespaces:
        rights += _make_namespaces(terms)
    if terms.publish_inventory:
        rights.append(
            Right(naming.SYSTEM_NAMESPACE, "", "configmaps", "patch", naming.CLUSTER_INFO)
        )
    if terms.identity_secret:
        rights += [
            Right(terms.namespace, "", "secrets", verb, terms.identity_secret)
            for verb in ("get", "patch")
        ]
    for namespace in projects:
        rights += _in_project(namespace, made_by_us=terms.create_namespaces)
    return rights


def _everywhere() -> list[Right]:
    watched = [("", "nodes"), ("", "pods"), ("", "events"), ("batch", "jobs")]
    return [
        Right(ANYWHERE, group, resource, verb)
        for group, resource in watched
        for verb in ("list", "watch")
    ]


def _own(namespace: str) -> list[Right]:
    verbs = ("create", "get", "list", "watch", "patch", "delete")
    return [
        *(Right(namespace, naming.GROUP, naming.PLURAL, verb) for verb in verbs),
        Right(namespace, naming.GROUP, f"{naming.PLURAL}/status", "patch"),
    ]


def _make_namespaces(terms: Terms) -> list[Right]:
    rights = [Right(ANYWHERE, "", "namespaces", verb) for verb in ("get", "create")]
    if terms.bind_project_role:
        group = "rbac.authorization.k8s.io"
        rights.append(Right(ANYWHERE, group, "rolebindings", "create"))
        rights.append(Right(ANYWHERE, group, "clusterroles", "bind", terms.bind_project_role))
    return rights


def _in_project(namespace: str, *, made_by_us: bool) -> list[Right]:
    table: list[tuple[str, str, tuple[str, ...]]] = [
        ("batch", "jobs", ("create", "get", "delete")),
        ("", "pods", ("delete",)),
        ("", "pods/log", ("get",)),
        ("", "services", ("create", "get", "delete")),
        ("", "secrets", ("create", "get", "delete")),
    ]
    if made_by_us:
        kinds = ("serviceaccounts", "resourcequotas", "limitranges")
        table += [("", kind, ("create", "patch")) for kind in kinds]
    return [
        Right(namespace, group, resource, verb)
        for group, resource, verbs in table
        for verb in verbs
    ]


def remedy(missing: Sequence[Right], terms: Terms) -> str:
    """YAML to apply, which grants what is missing and nothing else."""
    parts = []
    for namespace in sorted({right.namespace for right in missing}):
        rules = _rules([right for right in missing if right.namespace == namespace])
        kind = "Role" if namespace else "ClusterRole"
        name = f"{terms.agent_account}-missing"
        where = f"\n  namespace: {namespace}" if namespace else ""
        parts.append(
            f"apiVersion: rbac.authorization.k8s.io/v1\nkind: {kind}\n"
            f"metadata:\n  name: {name}{where}\nrules:\n{rules}"
            f"---\napiVersion: rbac.authorization.k8s.io/v1\nkind: {kind}Binding\n"
            f"metadata:\n  name: {name}{where}\n"
            f"roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: {kind}, name: {name}}}\n"
            f"subjects:\n- {{kind: ServiceAccount, name: {terms.agent_account}, "
            f"namespace: {terms.namespace}}}\n"
        )
    return "---\n".join(parts)


def _rules(rights: Sequence[Right]) -> str:
    grouped: dict[tuple[str, str, str], list[str]] = {}
    for right in rights:
        grouped.setdefault((right.group, right.resource, right.name), []).append(right.verb)
    lines = []
    for (group, resource, name), verbs in sorted(grouped.items()):
        lines.append(f'- apiGroups: ["{group}"]\n  resources: ["{resource}"]\n')
        if name:
            lines.append(f'  resourceNames: ["{name}"]\n')
        lines.append(f"  verbs: [{', '.join(sorted(set(verbs)))}]\n")
    return "".join(lines)
