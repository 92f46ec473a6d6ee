"""What `verderer agent install` prints: whole, applicable, and with no stranger's words in it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from verderer.cli.agents.install import Wanted, kubernetes_manifests, slurm_script
from verderer.core.errors import Invalid

TOKEN = "vrd_j_" + "t" * 43
SERVER = "https://verderer.example.com"


def documents(wanted: Wanted) -> dict[tuple[str, str], dict[str, object]]:
    found = [one for one in yaml.safe_load_all(kubernetes_manifests(wanted)) if one]
    return {(one["kind"], one["metadata"]["name"]): one for one in found}


def test_the_manifests_hold_all_that_the_agent_needs(tmp_path: Path) -> None:
    authority = tmp_path / "ca.pem"
    authority.write_text("-----BEGIN CERTIFICATE-----")
    found = documents(Wanted(SERVER, TOKEN, cluster="gpu-east", image="me/it:1", ca_file=authority))
    assert {kind for kind, _ in found} >= {
        "Namespace",
        "CustomResourceDefinition",
        "ServiceAccount",
        "ClusterRole",
        "Role",
        "ValidatingAdmissionPolicy",
        "Deployment",
    }
    assert found["Secret", "cube-agent-join"]["stringData"] == {"token": TOKEN}
    assert "data" not in found["Secret", "cube-agent-credential"], "what is kept there is kept"
    config = found["ConfigMap", "cube-agent-config"]["data"]
    assert config == {"CLUSTER_ID": "gpu-east", "API_SERVER_URL": SERVER}
    pod = found["Deployment", "cube-agent"]["spec"]["template"]["spec"]  # type: ignore[index]
    (container,) = pod["containers"]
    assert container["image"] == "me/it:1"
    names = {one["name"] for one in container["env"]}
    assert {"VERDERER_AGENT_CA_FILE", "VERDERER_AGENT_JOIN_TOKEN"} <= names
    assert TOKEN not in yaml.safe_dump(pod), "who reads the Deployment does not read the token"


def test_the_script_is_one_that_a_shell_takes() -> None:
    script = slurm_script(SERVER, TOKEN, user="slurm-agent", shared_dir="/shared/it's here")
    done = subprocess.run(["sh", "-n"], input=script, text=True, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "verderer agent join --kind slurm" in script


def test_the_script_brings_the_authority_along(tmp_path: Path) -> None:
    authority = tmp_path / "ca.pem"
    authority.write_text("-----BEGIN CERTIFICATE-----\nit's\n")
    script = slurm_script(SERVER, TOKEN, user="u", shared_dir="/s", ca_file=authority)
    # Run the part that writes it, with a folder of ours in the place of the agent's.
    home = tmp_path / "home"
    home.mkdir()
    start = script.index("install -m 0644")
    part = script[start : script.index("VERDERER_AGENT_JOIN_TOKEN")]
    mine = part.replace("/var/lib/verderer-agent", str(home))
    subprocess.run(["sh", "-eu"], input=mine, text=True, check=True)
    assert (home / "authority.pem").read_text() == authority.read_text()
    assert "--ca-file /var/lib/verderer-agent/authority.pem" in script


def test_the_unit_takes_the_folder_as_it_is() -> None:
    script = slurm_script(SERVER, TOKEN, user="u", shared_dir='/a "b" 5%\\c')
    assert r'Environment="VERDERER_SLURM_SHARED_DIR=/a \"b\" 5%%\\c"' in script


@pytest.mark.parametrize(
    "server", ["", "verderer.example.com", "ftp://x", "https://", "https://a\nb"]
)
def test_an_address_that_is_none_is_refused(server: str) -> None:
    with pytest.raises(Invalid, match="address"):
        kubernetes_manifests(Wanted(server, TOKEN))
    with pytest.raises(Invalid, match="address"):
        slurm_script(server, TOKEN, user="u", shared_dir="/s")


@given(st.text(max_size=60))
def test_nothing_but_a_join_token_is_taken_for_one(token: str) -> None:
    with pytest.raises(Invalid, match="join token"):
        slurm_script(SERVER, token, user="u", shared_dir="/s")


@given(st.text(max_size=40))
def test_a_user_s_name_cannot_bring_commands(user: str) -> None:
    try:
        script = slurm_script(SERVER, TOKEN, user=user, shared_dir="/s")
    except Invalid:
        return
    assert f"User={user}\n" in script
    assert user.replace("-", "").replace("_", "").isalnum()
