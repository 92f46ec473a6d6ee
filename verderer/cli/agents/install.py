"""What installs an agent beside a cluster, as text for a person to look at and to apply."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from verderer.core.credentials import TokenKind, kind_of
from verderer.core.errors import Fault, Invalid, Problem
from verderer.core.version import VERSION

_IMAGE = f"verderer/verderer:{VERSION}"
_FILES = ("namespaces", "crd", "rbac", "walls", "agent")
_CA = "/etc/verderer-ca"
_HOME = "/var/lib/verderer-agent"
_USER = re.compile(r"[a-z_][a-z0-9_-]{0,31}")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a person asked for."""

    server: str
    token: str
    cluster: str = ""
    image: str = ""
    ca_file: Path | None = None


def kubernetes_manifests(wanted: Wanted) -> str:
    """YAML for `kubectl apply --server-side -f -`: all that the agent needs, its token in a Secret.

    Raises:
        Invalid: address or token is none.
        Fault: a file cannot be read.
    """
    _check(wanted.server, wanted.token)
    found = [one for name in _FILES for one in _documents(name)]
    for one in found:
        if one["kind"] == "ConfigMap" and one["metadata"]["name"] == "cube-agent-config":
            one["data"] = {
                "CLUSTER_ID": wanted.cluster or "joined",
                "API_SERVER_URL": wanted.server,
            }
        elif one["kind"] == "Deployment":
            _fill_in(one, wanted)
    found.append(_of("Secret", "cube-agent-join", stringData={"token": wanted.token}))
    if wanted.ca_file is not None:
        authority = {"ca.crt": _read(wanted.ca_file)}
        found.append(_of("ConfigMap", "cube-agent-ca", data=authority))
    return "---\n".join(yaml.safe_dump(one, sort_keys=False) for one in found)


def slurm_script(
    server: str, token: str, *, user: str, shared_dir: str, ca_file: Path | None = None
) -> str:
    """A shell script to look at, and to run as root on a login node.

    Raises:
        Invalid: address, token, user or folder is none.
        Fault: the authority's file cannot be read.
    """
    _check(server, token)
    if not _USER.fullmatch(user):
        raise Invalid("--user must be the name of a user", hint="Small letters, digits, - and _.")
    if not shared_dir.startswith("/") or not shared_dir.isprintable():
        raise Invalid("--shared-dir must be an absolute path")
    folder = shlex.quote(shared_dir)
    where = f"--server {shlex.quote(server)} --data-dir {_HOME}"
    authority = ""
    if ca_file is not None:
        where += f" --ca-file {_HOME}/authority.pem"
        content = shlex.quote(_read(ca_file))
        authority = f"install -m 0644 /dev/null {_HOME}/authority.pem\n"
        authority += f"printf '%s' {content} > {_HOME}/authority.pem\n"
    return f"""#!/bin/sh
# Installs the agent on a Slurm login node. Run it as root, with verderer in /opt/verderer.
set -eu
install -d -o {user} -m 0700 {_HOME} {folder}
{authority}VERDERER_AGENT_JOIN_TOKEN={shlex.quote(token)} VERDERER_SLURM_SHARED_DIR={folder} \\
  runuser -u {user} -- /opt/verderer/bin/verderer agent join --kind slurm {where}
cat > /etc/systemd/system/verderer-agent.service <<'UNIT'
[Unit]
Description=Verderer agent
After=network-online.target
Wants=network-online.target

[Service]
User={user}
Environment="VERDERER_SLURM_SHARED_DIR={_in_unit(shared_dir)}"
ExecStart=/opt/verderer/bin/verderer agent --data-dir {_HOME}
Restart=always
RestartSec=2
NoNewPrivileges=yes

[Install]
WantedBy=multi-user.target
UNIT
systemctl daemon-reload
systemctl enable --now verderer-agent
"""


def _in_unit(text: str) -> str:
    """Between double quotes of a systemd unit, where `%` begins a specifier."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")


def _check(server: str, token: str) -> None:
    parts = urlsplit(server)
    if parts.scheme not in ("http", "https") or not parts.netloc or not server.isprintable():
        problem = Problem(field="server", message="must be an address such as https://example.com")
        raise Invalid("the control plane's address is none", problems=[problem])
    if kind_of(token) is not TokenKind.JOIN:
        problem = Problem(field="token", message="a join token begins with vrd_j_")
        raise Invalid("this is no join token", problems=[problem])


def _fill_in(deployment: dict[str, Any], wanted: Wanted) -> None:
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    container["image"] = wanted.image or _IMAGE
    for variable in container["env"]:
        if variable["name"] == "VERDERER_KUBERNETES_CARRIER_IMAGE":
            variable["value"] = container["image"]
    if wanted.ca_file is not None:
        container["env"].append({"name": "VERDERER_AGENT_CA_FILE", "value": f"{_CA}/ca.crt"})
        container["volumeMounts"].append({"name": "ca", "mountPath": _CA, "readOnly": True})
        pod["volumes"].append({"name": "ca", "configMap": {"name": "cube-agent-ca"}})


def _of(kind: str, name: str, **content: object) -> dict[str, Any]:
    labels = {"app.kubernetes.io/part-of": "verderer"}
    metadata = {"name": name, "namespace": "cube-execution", "labels": labels}
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, **content}


def _documents(name: str) -> Iterator[dict[str, Any]]:
    yield from (one for one in yaml.safe_load_all(_read(_folder() / f"{name}.yaml")) if one)


def _folder() -> Path:
    """In a wheel they lie in the package, in a checkout where people read them."""
    packed = Path(__file__).parents[1] / "manifests"
    return packed if packed.is_dir() else Path(__file__).parents[3] / "deploy" / "agent"


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as e:
        raise Fault(f"{path} cannot be read: {e}") from e
