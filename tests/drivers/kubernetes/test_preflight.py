"""What is said of a cluster before it is used."""

from __future__ import annotations

import pytest
import yaml

from testbeds.kubernetes.cluster import NOBODY, Cluster
from tests.drivers.contract import Work, begin, until_over
from tests.drivers.kubernetes.bed import documents, path_of
from tests.drivers.kubernetes.rig import KubernetesRig
from verderer.core.errors import NotAllowed
from verderer.drivers.kubernetes.calls.connection import connect
from verderer.drivers.kubernetes.preflight.checks import Finding, Level
from verderer.drivers.kubernetes.preflight.running import preflight
from verderer.drivers.kubernetes.terms import Terms

pytestmark = pytest.mark.xdist_group("kubernetes")


async def looked(rig: KubernetesRig) -> dict[str, Finding]:
    found = await preflight(rig.connection, rig.terms, projects=["vision"])
    return {one.title: one for one in found}


async def test_a_prepared_cluster_is_fine(kube: KubernetesRig) -> None:
    await begin(kube.driver, kube.order(Work.SUCCEED))  # makes the namespace
    found = await looked(kube)
    assert {title: one.level for title, one in found.items()} == {
        "version": Level.FINE,
        "clock": Level.FINE,
        "CustomResourceDefinition": Level.FINE,
        "rights": Level.FINE,
        "nodes": Level.FINE,
    }


async def test_a_missing_rule_is_named_and_the_remedy_mends_it(
    kube: KubernetesRig, cluster: Cluster
) -> None:
    await begin(kube.driver, kube.order(Work.SUCCEED))
    [role] = [d for d in documents("rbac") if d["metadata"]["name"] == "cube-agent-project"]
    path = path_of(role)
    poorer = {**role, "rules": [r for r in role["rules"] if "jobs" not in r["resources"]]}
    cluster.apply(poorer, path)
    applied = []
    try:
        found = (await looked(kube))["rights"]
        assert found.level is Level.BAD
        assert "create jobs.batch in namespace verderer-vision" in found.message
        with pytest.raises(NotAllowed) as refused:
            await begin(kube.driver, kube.order(Work.SUCCEED))
        assert "create jobs.batch in namespace verderer-vision" in refused.value.hint
        for document in yaml.safe_load_all(found.remedy):
            applied.append(path_of(document))
            cluster.apply(document, applied[-1])
        assert (await looked(kube))["rights"].level is Level.FINE
        key = await begin(kube.driver, kube.order(Work.SUCCEED))
        await until_over(kube.driver, key)
    finally:
        cluster.apply(role, path)
        for made in applied:
            cluster.call("DELETE", made)


async def test_somebody_without_any_right_is_told_all_of_it(cluster: Cluster) -> None:
    stranger = connect(cluster.kubeconfig(NOBODY))
    found = {one.title: one for one in await preflight(stranger, Terms())}
    assert "list nodes in all namespaces" in found["rights"].remedy or found["rights"].message
    assert found["rights"].level is Level.BAD
    assert "nodes" not in found


async def test_a_cluster_out_of_reach_is_a_finding(cluster: Cluster) -> None:
    away = connect(cluster.kubeconfig(NOBODY, url="https://127.0.0.1:1"))
    [only] = await preflight(away, Terms())
    assert (only.title, only.level) == ("API server", Level.BAD)
    assert "cannot be reached" in only.message
