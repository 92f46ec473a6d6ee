"""One pipeline over a local cluster, a real Slurm and a real Kubernetes control plane.

No kubelet runs here: `testbeds.kubernetes.processes` plays the node and executes what the pods'
specifications say, the carriers among it, as processes over a real S3 server.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from testbeds.kubernetes.cluster import Cluster
from testbeds.kubernetes.cluster import missing as no_kubernetes
from testbeds.kubernetes.processes import ProcessNode, wait_for_node
from tests.chaos.platform import wait_for
from tests.drivers.kubernetes.bed import agent_config, prepare
from tests.drivers.slurm.testbed import Testbed
from tests.drivers.slurm.testbed import missing as no_slurm
from tests.e2e.apart import Outside, outside
from tests.e2e.commands import Cli
from tests.objects import servers

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(400), pytest.mark.xdist_group("kubernetes")]

THREE = """
metadata: {name: three, project: demo}
steps:
  - name: begin
    outputs: {numbers: numbers.txt}
    script: 'printf "1\\n2\\n3\\n" > numbers.txt'
  - name: square
    inputs: {numbers: {from: begin.numbers, path: in.txt}}
    outputs: {squares: squares}
    resources: {requests: {nvidia.com/gpu: 1}}
    script: |
      mkdir -p squares/deep
      for n in $(cat in.txt); do echo $((n * n)); done > squares/deep/all.txt
  - name: sum
    image: any
    inputs: {squares: {from: square.squares, path: in}}
    outputs: {total: total, note: note.txt}
    resources: {requests: {google.com/tpu: 4}}
    script: |
      mkdir total
      sum=0; while read n; do sum=$((sum + n)); done < in/deep/all.txt
      echo $sum | tee total/sum.txt
      echo "rank $VERDERER_NODE_RANK" > note.txt
"""
ON_KUBERNETES = """
metadata: {name: %s, project: demo}
steps:
  - name: only
    image: any
    outputs: {out: out.txt}
    resources: {requests: {google.com/tpu: 4}}
    script: '%s'
"""


@dataclass(frozen=True)
class House:
    outside: Outside
    cli: Cli
    node: ProcessNode

    def steps(self, run: str) -> dict[str, dict[str, Any]]:
        """The steps of a run by name."""
        shown = self.cli.read("runs", "show", run)
        return {step["name"]: step for step in shown["steps"]}


@contextmanager
def slurm() -> Iterator[Testbed]:
    base = Path(tempfile.mkdtemp(prefix="vs-", dir="/tmp"))
    made = Testbed(base)
    try:
        made.start()
        yield made
    finally:
        made.stop()
        shutil.rmtree(base, ignore_errors=True)


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    if why := no_kubernetes() or no_slurm():
        pytest.skip(f"NOT TESTED over three clusters: {why}")
    with ExitStack() as stack:
        there = stack.enter_context(outside())
        testbed = stack.enter_context(slurm())
        folder = tmp_path_factory.mktemp("kubernetes")
        cluster = stack.enter_context(Cluster(folder, kwok=False))
        prepare(cluster, nodes=0)
        amounts = {"cpu": "16", "memory": "64Gi", "google.com/tpu": "4", "pods": "110"}
        node = stack.enter_context(ProcessNode(cluster, "processes", amounts))
        wait_for_node(cluster, "processes")
        assert there.command("doctor", "--server", "--fix").returncode in (0, 1)
        first = there.command("migrate")
        assert first.returncode == 0, first.stderr
        url = there.start_server()
        there.start("scheduler")
        there.start("agent", VERDERER_AGENT_SERVER_URL=url)
        cli = Cli(there.folder / "home")
        cli.log_in(url, first.stdout.partition("one-time password: ")[2].split()[0])
        _join(
            there,
            cli,
            url,
            "hpc",
            "slurm",
            VERDERER_SLURM_SHARED_DIR=str(there.folder / "shared"),
            VERDERER_SLURM_CONF=str(testbed.conf),
            VERDERER_SLURM_POLL_S="0.2",
        )
        _join(
            there,
            cli,
            url,
            "pods",
            "kubernetes",
            VERDERER_KUBERNETES_KUBECONFIG=str(agent_config(cluster)),
            VERDERER_KUBERNETES_CARRIER_IMAGE="localhost/verderer:test",
        )
        yield House(there, cli, node)


def _join(there: Outside, cli: Cli, url: str, name: str, kind: str, **settings: str) -> None:
    """One more cluster, online, as the page says."""
    said = cli("clusters", "add", name, "--kind", kind)
    (token,) = set(re.findall(r"vrd_j_[A-Za-z0-9_-]+", said))
    folder = str(there.folder / name)
    changes = {"VERDERER_AGENT_KIND": kind, "VERDERER_DATA_DIR": folder, **settings}
    words = ("agent", "join", "--server", url, "--token", token, "--kind", kind)
    joined = there.command(*words, "--data-dir", folder, **changes)
    assert joined.returncode == 0, joined.stderr
    role = there.start("agent", **changes, VERDERER_AGENT_SERVER_URL=url)

    def online() -> bool:
        assert role.process.poll() is None, role.said
        return bool(cli.read("clusters", "show", name)["state"] == "online")

    try:
        wait_for(online, 60, f"{name} is online")
    except AssertionError as error:
        raise AssertionError(f"{error}: {role.said[-3000:]}") from error


def test_a_pipeline_goes_over_three_clusters_to_its_end(house: House) -> None:
    for name in ("hpc", "pods"):
        house.cli("clusters", "disable", name)
    run = house.cli.submit(house.outside.folder, THREE)
    wait_for(
        lambda: house.steps(run)["begin"]["state"] == "succeeded", 60, "the first step is done"
    )
    for name in ("hpc", "pods"):
        house.cli("clusters", "enable", name)
    house.cli("watch", run)
    assert house.cli.state(run) == "succeeded"
    assert house.cli("logs", f"{run}/sum") == "14\n"
    where = {name: step["attempt"]["cluster"] for name, step in house.steps(run).items()}
    assert where == {"begin": "local", "square": "hpc", "sum": "pods"}
    target = house.outside.folder / "fetched"
    house.cli("artifacts", f"{run}/sum", "download", "--to", str(target))
    found = {path.stem: path.read_text() for path in target.rglob("*") if path.is_file()}
    assert found == {"sum": "14\n", "note": "rank 0\n"}


def test_a_program_that_fails_keeps_its_exit_code_and_stores_nothing(house: House) -> None:
    document = ON_KUBERNETES % ("failing", "echo x > out.txt; exit 7")
    run = house.cli.submit(house.outside.folder, document)
    house.cli.attempt("watch", run)
    assert house.cli.state(run) == "failed"
    shown = house.cli("runs", "show", run, "-o", "json")
    assert '"exit_code": 7' in shown or "exit code 7" in shown


def test_an_output_that_is_missing_is_no_failure_of_the_program(house: House) -> None:
    run = house.cli.submit(house.outside.folder, ON_KUBERNETES % ("forgetful", "true"))
    house.cli.attempt("watch", run)
    assert house.cli.state(run) == "failed"
    shown = house.cli("runs", "show", run, "-o", "json")
    assert "the step did not write 'out.txt'" in shown.replace('\\"', '"')
    assert "output" in shown


def test_no_credential_of_the_bucket_reaches_a_pod(house: House) -> None:
    run = house.cli.submit(
        house.outside.folder, ON_KUBERNETES % ("curious", "env | sort; echo y > out.txt")
    )
    house.cli("watch", run)
    said = house.cli("logs", f"{run}/only")
    assert "VERDERER_CARRY_PLAN" not in said
    given = b"".join(house.node.secrets)
    assert b"vrc_" in given
    assert servers.SECRET_KEY.encode() not in given
