"""The whole agent beside a real API server, with the control plane in memory."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from testbeds.kubernetes.cluster import Cluster
from tests.agent.fake_control_plane import CREDENTIAL, FakeControlPlane
from tests.agent.rig import agent, until
from tests.drivers.kubernetes.bed import agent_config, exists
from tests.drivers.kubernetes.rig import OURS, KubernetesRig
from verderer.cli.agents.kubernetes import terms
from verderer.cli.configuration import load
from verderer.core.errors import Refusal
from verderer.drivers.kubernetes.driver import KubernetesDriver
from verderer.drivers.kubernetes.terms import Terms
from verderer.wire.agent import InputFile

pytestmark = pytest.mark.xdist_group("kubernetes")


@pytest.fixture
async def plane() -> AsyncIterator[FakeControlPlane]:
    async with FakeControlPlane() as opened:
        yield opened


async def test_a_step_runs_and_its_output_arrives(
    kube: KubernetesRig, plane: FakeControlPlane, tmp_path: Path, cluster: Cluster
) -> None:
    kube.say(b"one\ntwo\n")
    async with agent(plane, kube.driver, tmp_path):
        key = plane.order(image="any", command=["say"], project="agents")
        await until(lambda: plane.ends[key] and plane.log_complete(key), within_s=60)
        assert plane.state(key) == "succeeded"
        assert plane.log_of(key) == b"one\ntwo\n"
        assert {node.name for node in plane.nodes} >= {"node-0", "node-1"}
        await until(lambda: not exists(cluster, f"{OURS}/{key}"), within_s=60)


async def test_files_are_refused_with_a_sentence(
    kube: KubernetesRig, plane: FakeControlPlane, tmp_path: Path
) -> None:
    async with agent(plane, kube.driver, tmp_path):
        given = [InputFile(name="a", path="a", key="k")]
        key = plane.order(image="any", command=["succeed"], project="agents", inputs=given)
        await until(lambda: plane.ends[key], within_s=60)
    end = plane.end_of(key).end
    assert end is not None
    assert end.cause == "start"
    assert "cannot carry inputs and outputs" in end.message


async def test_an_agent_that_dies_finds_its_work_again(
    kube: KubernetesRig, plane: FakeControlPlane, tmp_path: Path
) -> None:
    async with agent(plane, kube.driver, tmp_path):
        key = plane.order(image="any", command=["hang"], project="agents")
        await until(lambda: plane.state(key) == "running", within_s=60)
    await kube.restart()
    async with agent(plane, kube.driver, tmp_path):
        plane.cancel(key)
        await until(lambda: plane.ends[key], within_s=60)
    assert plane.state(key) == "cancelled"
    assert len(plane.ends[key]) == 1


async def test_the_command_serves_a_cluster_until_it_is_told_to_stop(
    cluster: Cluster, plane: FakeControlPlane, tmp_path: Path
) -> None:
    (tmp_path / "credential").write_text(CREDENTIAL)
    config = tmp_path / "verderer.toml"
    config.write_text(
        f'[agent]\nkind = "kubernetes"\nserver_url = "{plane.url}"\ncluster = "k"\n'
        f'credential_file = "{tmp_path}/credential"\nspool_dir = "{tmp_path}/spool"\n'
        f'[kubernetes]\nkubeconfig = "{agent_config(cluster)}"\n'
    )
    with (tmp_path / "agent.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "verderer.cli.main", "agent", "--config", str(config)),
            stdout=log,
            stderr=log,
        )
    try:
        await until(lambda: plane.nodes, within_s=60)
        key = plane.order(image="any", command=["succeed"], project="agents")
        await until(lambda: plane.ends[key], within_s=60)
        assert plane.state(key) == "succeeded"
        assert plane.hellos[0].kind == "kubernetes"
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(20):
            assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    said = (tmp_path / "agent.log").read_text()
    assert "Traceback" not in said
    assert '"level": "error"' not in said


def test_settings_become_terms(tmp_path: Path) -> None:
    config = tmp_path / "verderer.toml"
    config.write_text(
        '[kubernetes]\nquota = "requests.cpu=100, pods=5"\nimage_pull_secrets = "a, b"\n'
        'pod_security = "restricted"\ncreate_namespaces = false\n'
    )
    agreed = terms(load(config=config, environ={}))
    assert agreed.quota == {"requests.cpu": "100", "pods": "5"}
    assert agreed.image_pull_secrets == ("a", "b")
    assert (agreed.pod_security, agreed.bind_project_role) == ("restricted", "")
    assert terms(load(environ={})) == Terms()
    config.write_text('[kubernetes]\nquota = "pods"\n')
    with pytest.raises(Refusal, match=r"kubernetes\.quota"):
        terms(load(config=config, environ={}))


async def test_two_lives_of_an_agent_at_once_make_one_job(
    kube: KubernetesRig, cluster: Cluster
) -> None:
    order = kube.program(command=("succeed",))
    other = KubernetesDriver(kube.connection, kube.terms)
    try:
        await asyncio.gather(
            *(driver.start(order, workspace="") for driver in (kube.driver, other)),
        )
        await until(lambda: len(kube.pods(order.key)) == 1, within_s=30)
    finally:
        await other.close()
