"""What an administrator applies is accepted by a real API server, and means what it says."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from testbeds.kubernetes.cluster import Cluster, find
from tests.drivers.kubernetes.bed import MANIFESTS, ROOT, documents, path_of
from verderer.cli.agents.kubernetes import terms
from verderer.cli.configuration import known_settings, load
from verderer.drivers.kubernetes.terms import Terms

pytestmark = pytest.mark.xdist_group("kubernetes")

CHART = ROOT / "deploy" / "agent" / "chart"
# A Helm built from its module does not know of any version by itself.
NAMED = ("-n", "cube-execution", "--kube-version", "1.37.2")
GIVEN = ("clusterId=gpu-east", "apiServerUrl=https://verderer.example.com")


def rendered(*values: str) -> list[dict[str, Any]]:
    helm = find("helm")
    if helm is None:
        pytest.skip("NOT TESTED: no Helm, so the chart was not rendered")
    flags = [part for value in (*GIVEN, *values) for part in ("--set", value)]
    done = subprocess.run(
        [helm, "template", "agent", str(CHART), *NAMED, *flags],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "HELM_CACHE_HOME": "/tmp/helm", "HELM_CONFIG_HOME": "/tmp/helm"},
    )
    assert done.returncode == 0, done.stderr
    return [one for one in yaml.safe_load_all(done.stdout) if one]


def accepted(cluster: Cluster, document: dict[str, Any]) -> None:
    cluster.apply(document, path_of(document) + "?dryRun=All")


def test_manifests_are_accepted(cluster: Cluster) -> None:
    for name in (*MANIFESTS, "agent"):
        for document in documents(name):
            accepted(cluster, document)


@pytest.mark.parametrize(
    "values",
    [
        pytest.param((), id="as it comes"),
        pytest.param(
            (
                "persistence.enabled=true",
                "caConfigMap=ca",
                "priorityClassName=system-cluster-critical",
                "image.pullSecrets={a,b}",
                "nodeSelector.disk=ssd",
                "projects.quota=pods=5",
                "env.VERDERER_LOG_LEVEL=debug",
            ),
            id="with everything",
        ),
        pytest.param(("projects.createNamespaces=false", "walls=false"), id="in given namespaces"),
    ],
)
def test_the_chart_is_accepted(cluster: Cluster, values: tuple[str, ...]) -> None:
    found = rendered(*values)
    assert {"Deployment", "ConfigMap", "ClusterRole", "Role"} <= {d["kind"] for d in found}
    for document in found:
        accepted(cluster, document)


def test_the_chart_says_the_same_as_the_manifests() -> None:
    found = {path_of(document): document for document in rendered()}
    for name in ("rbac", "walls"):
        for document in documents(name):
            assert found[path_of(document)] == document
    crd = (CHART / "crds" / "crd.yaml").read_text()
    assert crd == (ROOT / "deploy" / "agent" / "crd.yaml").read_text()


def environment(document: dict[str, Any]) -> dict[str, str]:
    [container] = document["spec"]["template"]["spec"]["containers"]
    return {one["name"]: one["value"] for one in container["env"] if "value" in one}


def test_variables_of_the_deployments_are_settings(tmp_path: Path) -> None:
    known = {setting.variable for setting in known_settings().values()}
    [plain] = [d for d in documents("agent") if d["kind"] == "Deployment"]
    [charted] = [d for d in rendered() if d["kind"] == "Deployment"]
    for deployment in (plain, charted):
        given = environment(deployment)
        assert given.keys() <= known
        settings = load(environ=given)
        assert settings.agent.kind == "kubernetes"
        [agent] = deployment["spec"]["template"]["spec"]["containers"]
        secret = "cube-agent-credential"
        assert terms(settings) == Terms(carrier_image=agent["image"], identity_secret=secret)


def test_values_without_a_cluster_are_refused() -> None:
    helm = find("helm")
    if helm is None:
        pytest.skip("NOT TESTED: no Helm, so the chart was not rendered")
    done = subprocess.run([helm, "template", str(CHART), *NAMED], capture_output=True, check=False)
    assert done.returncode != 0
    assert b"clusterId" in done.stderr
