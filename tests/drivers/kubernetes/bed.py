"""One cluster for all tests of a worker, prepared as `deploy/agent` prepares one."""

from __future__ import annotations

import urllib.error
from pathlib import Path
from typing import Any

import yaml

from testbeds.kubernetes.cluster import ADMIN, AGENT, Cluster

ROOT = Path(__file__).resolve().parents[3]
MANIFESTS = ("namespaces", "crd", "rbac", "walls")
NODE = {"cpu": "64", "memory": "512Gi", "nvidia.com/gpu": "8", "pods": "110"}

_PLURALS = {
    "Namespace": "/api/v1/namespaces",
    "ConfigMap": "/api/v1/namespaces/{}/configmaps",
    "ServiceAccount": "/api/v1/namespaces/{}/serviceaccounts",
    "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/roles",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/rolebindings",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "CustomResourceDefinition": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "ValidatingAdmissionPolicy": (
        "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
    ),
    "ValidatingAdmissionPolicyBinding": (
        "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
    ),
    "Deployment": "/apis/apps/v1/namespaces/{}/deployments",
    "Service": "/api/v1/namespaces/{}/services",
    "Job": "/apis/batch/v1/namespaces/{}/jobs",
    "Ingress": "/apis/networking.k8s.io/v1/namespaces/{}/ingresses",
    "PodDisruptionBudget": "/apis/policy/v1/namespaces/{}/poddisruptionbudgets",
    "Secret": "/api/v1/namespaces/{}/secrets",
    "PersistentVolumeClaim": "/api/v1/namespaces/{}/persistentvolumeclaims",
}


def documents(name: str) -> list[dict[str, Any]]:
    text = (ROOT / "deploy" / "agent" / f"{name}.yaml").read_text(encoding="utf-8")
    return [one for one in yaml.safe_load_all(text) if one]


def path_of(document: dict[str, Any]) -> str:
    meta = document["metadata"]
    return _PLURALS[document["kind"]].format(meta.get("namespace")) + f"/{meta['name']}"


def prepare(cluster: Cluster, *, nodes: int = 2) -> None:
    """Apply the manifests, add nodes, and wait until our own kind is served."""
    for name in MANIFESTS:
        for document in documents(name):
            cluster.apply(document, path_of(document))
    for index in range(nodes):
        cluster.add_node(f"node-{index}", NODE)
    kinds = "/apis/execution.cube.studio/v1/namespaces/cube-execution/cubepipelines"
    cluster._wait("cubepipelines", lambda: cluster._get(kinds))


def exists(cluster: Cluster, path: str) -> bool:
    try:
        cluster.call("GET", path)
    except urllib.error.HTTPError as error:
        if error.code != 404:
            raise
        return False
    return True


def agent_config(cluster: Cluster, *, url: str = "") -> Path:
    return cluster.kubeconfig(AGENT, url=url, namespace="cube-execution")


def admin_config(cluster: Cluster) -> Path:
    return cluster.kubeconfig(ADMIN)
