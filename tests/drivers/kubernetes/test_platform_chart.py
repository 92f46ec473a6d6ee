"""The control plane's chart: accepted by a real API server, scheduled, and strict."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from testbeds.kubernetes.cluster import ADMIN, Cluster, find
from tests.drivers.kubernetes.bed import ROOT, path_of
from verderer.cli.configuration import known_settings, load

pytestmark = pytest.mark.xdist_group("kubernetes")

CHART = ROOT / "deploy" / "charts" / "verderer"
SPACE = "verderer"
INSTALLED = "verderer-installed"
GIVEN = {
    "publicUrl": "https://verderer.example.com",
    "database.existingSecret": "db",
    "security.existingSecret": "key",
    "objects.url": "s3://bucket/prefix",
}
EVERYTHING = {
    "database.behindPooler": "true",
    "objects.existingSecret": "bucket",
    "objects.endpoint": "https://s3.example.com",
    "metrics.existingSecret": "scraper",
    "ingress.enabled": "true",
    "ingress.className": "nginx",
    "ingress.tlsSecret": "tls",
    "caConfigMap": "ca",
    "priorityClassName": "system-cluster-critical",
    "image.pullSecrets": "{a,b}",
    "nodeSelector.disk": "ssd",
    "env.VERDERER_LOG_LEVEL": "debug",
}


def helm(**values: str) -> subprocess.CompletedProcess[str]:
    program = find("helm")
    if program is None:
        pytest.skip("NOT TESTED: no Helm, so the chart was not rendered")
    flags = [part for name, value in values.items() for part in ("--set", f"{name}={value}")]
    return subprocess.run(
        [program, "template", "v", str(CHART), "-n", SPACE, "--kube-version", "1.37.2", *flags],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "HELM_CACHE_HOME": "/tmp/helm", "HELM_CONFIG_HOME": "/tmp/helm"},
    )


def rendered(**values: str) -> list[dict[str, Any]]:
    done = helm(**GIVEN, **values)
    assert done.returncode == 0, done.stderr
    return [one for one in yaml.safe_load_all(done.stdout) if one]


def containers(documents: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """By name; each has its Pod's template under `pod`."""
    found = {}
    for document in documents:
        if document["kind"] in ("Deployment", "Job"):
            pod = document["spec"]["template"]["spec"]
            [one] = pod["containers"]
            found[one["name"]] = {**one, "pod": pod}
    return found


def space(cluster: Cluster) -> None:
    made = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}}
    cluster.apply(made, path_of(made))


@pytest.mark.parametrize("values", [{}, EVERYTHING], ids=["as it comes", "with everything"])
def test_the_chart_is_accepted(cluster: Cluster, values: dict[str, str]) -> None:
    space(cluster)
    found = rendered(**values)
    kinds = {document["kind"] for document in found}
    assert {"Deployment", "Job", "Service", "PodDisruptionBudget"} <= kinds
    assert ("Ingress" in kinds) == bool(values)
    for document in found:
        cluster.apply(document, path_of(document) + "?dryRun=All")


def test_schedulers_never_share_a_node(cluster: Cluster) -> None:
    space(cluster)
    for document in rendered():
        if document["kind"] == "Deployment":
            cluster.apply(document, path_of(document))
    pods = f"/api/v1/namespaces/{SPACE}/pods?labelSelector=app.kubernetes.io/name=verderer-"

    def nodes(what: str) -> list[str]:
        found = cluster.call("GET", pods + what)["items"]
        return [one["spec"]["nodeName"] for one in found if one["spec"].get("nodeName")]

    cluster._wait("schedulers on two nodes", lambda: len(set(nodes("scheduler"))) == 2)
    cluster._wait("two servers", lambda: len(nodes("server")) == 2)


def test_an_install_as_the_page_says_runs_nothing_before_the_migration(
    cluster: Cluster, tmp_path: Path
) -> None:
    if find("helm") is None or find("kubectl") is None:
        pytest.skip("NOT TESTED: no Helm or no kubectl, so nothing was installed")
    page = (ROOT / "docs" / "deploy.md").read_text()
    script = page.partition("### On Kubernetes")[2].partition("```sh\n")[2].partition("```")[0]
    script = script.partition("kubectl -n verderer exec")[0]
    for said, meant in {
        "-n verderer": f"-n {INSTALLED}",
        "namespace verderer": f"namespace {INSTALLED}",
        "deploy/charts": f"{ROOT}/deploy/charts",
    }.items():
        script = script.replace(said, meant)
    for name in ("database-url", "secret-key", "access-key", "bucket-secret"):
        (tmp_path / name).write_text("x")
    programs = {str(Path(find(name) or "").parent) for name in ("helm", "kubectl")}
    environment = os.environ | {
        "KUBECONFIG": str(cluster.kubeconfig(ADMIN)),
        "PATH": ":".join([*programs, os.environ["PATH"]]),
        "HELM_CACHE_HOME": str(tmp_path / "helm"),
    }
    with subprocess.Popen(["sh", "-eux", "-c", script], cwd=tmp_path, env=environment) as shell:
        base = f"/api/v1/namespaces/{INSTALLED}/pods"
        migrate = f"{base}?labelSelector=app.kubernetes.io/name=verderer-migrate"
        cluster._wait("the Job's pod", lambda: cluster.call("GET", migrate)["items"])
        [pod] = cluster.call("GET", migrate)["items"]
        servers = f"/apis/apps/v1/namespaces/{INSTALLED}/deployments"
        assert cluster.call("GET", servers)["items"] == []
        ended = {"status": {"phase": "Succeeded"}}
        path = f"{base}/{pod['metadata']['name']}/status"
        cluster._wait("KWOK has seen it", lambda: running(cluster, base, pod))
        cluster.call("PATCH", path, ended, kind="application/merge-patch+json")
        assert shell.wait(60) == 0
    assert len(cluster.call("GET", servers)["items"]) == 2


def running(cluster: Cluster, base: str, pod: dict[str, Any]) -> bool:
    found = cluster.call("GET", f"{base}/{pod['metadata']['name']}")
    return bool(found["status"]["phase"] == "Running")


def test_every_variable_is_a_setting_and_no_secret_is_inline() -> None:
    known = {setting.variable: setting for setting in known_settings().values()}
    secret = {name for name, one in known.items() if one.kind.__name__ == "Secret"}
    for container in containers(rendered(**EVERYTHING)).values():
        given = {one["name"]: one.get("value") for one in container["env"]}
        ours = {name: value for name, value in given.items() if name.startswith("VERDERER_")}
        assert ours.keys() <= known.keys()
        assert not [name for name in secret & ours.keys() if ours[name] is not None]
        settings = load(environ={name: value for name, value in ours.items() if value is not None})
        assert settings.objects.url == "s3://bucket/prefix"


def test_pods_may_do_nothing_that_they_need_not() -> None:
    for container in containers(rendered()).values():
        pod, own = container["pod"], container["securityContext"]
        assert pod["automountServiceAccountToken"] is False
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert own["readOnlyRootFilesystem"] is True
        assert own["capabilities"] == {"drop": ["ALL"]}
        assert container["resources"]["limits"]["memory"]


def test_the_schema_is_migrated_before_anything_of_the_release_runs() -> None:
    jobs = {one["metadata"]["name"]: one for one in rendered() if one["kind"] == "Job"}
    job, after = jobs["verderer-migrate"], jobs["verderer-migrate-post"]
    assert job["metadata"]["annotations"]["helm.sh/hook"] == "pre-install,pre-upgrade"
    assert after["metadata"]["annotations"]["helm.sh/hook"] == "post-upgrade"
    assert "--post" in after["spec"]["template"]["spec"]["containers"][0]["command"]
    assert "--post" not in job["spec"]["template"]["spec"]["containers"][0]["command"]


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"server.replicas": "1"}, "replicas"),
        ({"scheduler.replicas": "1"}, "replicas"),
        ({"database.existingSecret": ""}, "existingSecret"),
        ({"database.url": "postgresql://u:p@h/x"}, "url"),
        ({"objects.url": "/a/folder"}, "url"),
        ({"publicUrl": "verderer.example.com"}, "publicUrl"),
        ({"env.VERDERER_DATABASE_URL": "postgresql://u:p@h/x"}, "VERDERER_DATABASE_URL"),
    ],
)
def test_what_cannot_be_production_is_refused(values: dict[str, str], named: str) -> None:
    done = helm(**(GIVEN | values))
    assert done.returncode != 0
    assert named in done.stderr
