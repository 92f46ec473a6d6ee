"""Starts and stops one: etcd, API server, controllers, scheduler, KWOK, on the loopback alone.

`python -m testbeds.kubernetes.cluster FOLDER` keeps one up for a person until Ctrl-C.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
CACHE = ROOT / ".cache" / "bin"
READY_WITHIN_S = 60.0

ADMIN = "admin-token"
AGENT = "agent-token"
NOBODY = "nobody-token"
AGENT_USER = "system:serviceaccount:cube-execution:cube-agent"


def find(program: str) -> str | None:
    """Path of a program that `build.sh` made, or of one on PATH."""
    own = CACHE / program
    return str(own) if own.is_file() else shutil.which(program)


def missing() -> str:
    """Why no cluster can be started here; empty when one can."""
    lacking = [name for name in ("kube", "kwok") if find(name) is None]
    return f"{' and '.join(lacking)} not built: run testbeds/kubernetes/build.sh" if lacking else ""


class Cluster:
    """One cluster with its state in `folder`."""

    def __init__(self, folder: Path, *, kwok: bool = True) -> None:
        self.folder = folder
        self._kwok = kwok
        ports = _free_ports(4)
        self._etcd_port, self._peer_port, self.port, self.kubelet_port = ports
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    @property
    def ca_file(self) -> Path:
        return self.folder / "certs" / "apiserver.crt"

    def __enter__(self) -> Cluster:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Return once the API server is ready and controllers have made the default account."""
        for name in ("certs", "etcd", "logs"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        self._write_keys()
        self._spawn("etcd", *self._etcd_flags())
        self.start_api_server()
        self.kubeconfig(ADMIN)
        self._spawn("controller-manager", *self._controller_flags())
        self._spawn(
            "scheduler",
            *("--kubeconfig", str(self.kubeconfig(ADMIN)), "--leader-elect=false"),
            *("--secure-port=0", "--kube-api-qps=500", "--kube-api-burst=1000"),
        )
        if self._kwok:
            self.start_kwok()
        self._wait("the default service account", self._has_account)

    def start_api_server(self) -> None:
        """Start it (again) and wait until it is ready."""
        self._spawn("apiserver", *self._api_flags())
        self._wait("the API server", lambda: self._get("/readyz") == b"ok")

    def start_kwok(self) -> None:
        """Start what plays the kubelets of every node."""
        program = find("kwok")
        assert program is not None
        certs = self.folder / "certs"
        logs = self.folder / "said.log"
        logs.touch()
        config = self.folder / "kwok.yaml"
        stages = (HERE / "stages.yaml").read_text(encoding="utf-8")
        config.write_text(stages.replace("LOGS_FILE", str(logs)), encoding="utf-8")
        self._run(
            "kwok",
            [
                program,
                *("--kubeconfig", str(self.kubeconfig(ADMIN)), "--manage-all-nodes=true"),
                *("--config", str(config), "--server-address", f"127.0.0.1:{self.kubelet_port}"),
                *("--node-ip", "127.0.0.1", "--node-port", str(self.kubelet_port)),
                *("--tls-cert-file", str(certs / "apiserver.crt")),
                *("--tls-private-key-file", str(certs / "apiserver.key")),
                *("--node-lease-duration-seconds", "40"),
            ],
        )

    def kill(self, part: str) -> None:
        """End one part as a crash would."""
        process = self._processes.pop(part)
        process.kill()
        process.wait()

    def stop(self) -> None:
        """End everything; the last started goes first."""
        for process in reversed(self._processes.values()):
            process.send_signal(signal.SIGTERM)
        until = time.monotonic() + 0.5
        for process in reversed(self._processes.values()):
            try:
                process.wait(max(0.0, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._processes.clear()

    def kubeconfig(self, token: str, *, url: str = "", namespace: str = "default") -> Path:
        """A kubeconfig file for the user behind `token`."""
        path = self.folder / f"{token}{'-other' if url else ''}.kubeconfig"
        cluster: dict[str, object] = {"server": url or self.url}
        if (url or self.url).startswith("https"):
            cluster["certificate-authority"] = str(self.ca_file)
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "this",
            "clusters": [{"name": "this", "cluster": cluster}],
            "users": [{"name": "me", "user": {"token": token}}],
            "contexts": [
                {
                    "name": "this",
                    "context": {"cluster": "this", "user": "me", "namespace": namespace},
                }
            ],
        }
        path.write_text(json.dumps(document), encoding="utf-8")
        path.chmod(0o600)
        return path

    def call(
        self, method: str, path: str, body: object = None, *, kind: str = "application/json"
    ) -> Any:
        """One request as administrator; the answer decoded. Raises urllib's HTTPError."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, method=method)
        request.add_header("Authorization", f"Bearer {ADMIN}")
        request.add_header("Content-Type", kind)
        with urllib.request.urlopen(request, context=self._tls(), timeout=30) as answer:
            return json.loads(answer.read())

    def apply(self, document: Mapping[str, Any], path: str) -> Any:
        """Server-side apply of one object, as kubectl does it."""
        return self.call(
            "PATCH",
            f"{path}{'&' if '?' in path else '?'}fieldManager=testbed&force=true",
            document,
            kind="application/apply-patch+yaml",
        )

    def add_node(self, name: str, amounts: Mapping[str, str], **labels: str) -> None:
        """A node for KWOK to bring to life, with `amounts` as capacity and allocatable."""
        given = {key.replace("__", "/").replace("_", "."): text for key, text in labels.items()}
        node = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **given}},
            "status": {"capacity": dict(amounts), "allocatable": dict(amounts)},
        }
        self.call("POST", "/api/v1/nodes", node)

    def _spawn(self, part: str, *flags: str) -> None:
        program = find("kube")
        assert program is not None
        self._run(part, [program, part, *flags])

    def _run(self, part: str, command: list[str]) -> None:
        with (self.folder / "logs" / f"{part}.log").open("ab") as log:
            self._processes[part] = subprocess.Popen(
                command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True
            )

    def _write_keys(self) -> None:
        keys = self.folder / "sa.key"
        if not keys.exists():
            subprocess.run(
                ["openssl", "genrsa", "-out", str(keys), "2048"], check=True, capture_output=True
            )
        (self.folder / "tokens.csv").write_text(
            f'{ADMIN},admin,1,"system:masters"\n'
            f'{AGENT},{AGENT_USER},2,"system:serviceaccounts,system:serviceaccounts:cube-execution"\n'
            f"{NOBODY},nobody,3\n",
            encoding="utf-8",
        )

    def _etcd_flags(self) -> list[str]:
        client, peer = (f"http://127.0.0.1:{p}" for p in (self._etcd_port, self._peer_port))
        return [
            *("--data-dir", str(self.folder / "etcd"), "--unsafe-no-fsync", "--log-level", "warn"),
            *("--listen-client-urls", client, "--advertise-client-urls", client),
            *("--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer),
            *("--initial-cluster", f"default={peer}"),
        ]

    def _api_flags(self) -> list[str]:
        key = str(self.folder / "sa.key")
        return [
            *("--etcd-servers", f"http://127.0.0.1:{self._etcd_port}"),
            *("--bind-address", "127.0.0.1", "--secure-port", str(self.port)),
            *("--cert-dir", str(self.folder / "certs"), "--allow-privileged"),
            *("--token-auth-file", str(self.folder / "tokens.csv")),
            *("--authorization-mode", "RBAC", "--endpoint-reconciler-type", "none"),
            *("--service-account-issuer", "https://kubernetes.default.svc"),
            *("--service-account-key-file", key, "--service-account-signing-key-file", key),
            *("--service-cluster-ip-range", "10.96.0.0/16"),
            *("--kubelet-preferred-address-types", "InternalIP"),
            *("--max-requests-inflight", "1000", "--max-mutating-requests-inflight", "500"),
        ]

    def _controller_flags(self) -> list[str]:
        return [
            *("--kubeconfig", str(self.kubeconfig(ADMIN)), "--leader-elect=false"),
            *("--service-account-private-key-file", str(self.folder / "sa.key")),
            *("--root-ca-file", str(self.ca_file), "--use-service-account-credentials"),
            *("--secure-port=0", "--kube-api-qps=500", "--kube-api-burst=1000"),
            # A minute would be too long for tests of nodes that go away.
            *("--node-monitor-grace-period=12s", "--node-monitor-period=1s"),
        ]

    def _tls(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.ca_file))

    def _get(self, path: str) -> bytes:
        request = urllib.request.Request(self.url + path)
        request.add_header("Authorization", f"Bearer {ADMIN}")
        with urllib.request.urlopen(request, context=self._tls(), timeout=5) as answer:
            body: bytes = answer.read()
            return body

    def _has_account(self) -> bool:
        return bool(self._get("/api/v1/namespaces/default/serviceaccounts/default"))

    def _wait(self, what: str, reached: Any) -> None:
        deadline = time.monotonic() + READY_WITHIN_S
        while True:
            try:
                if reached():
                    return
            except (OSError, urllib.error.URLError):
                pass
            for part, process in self._processes.items():
                if process.poll() is not None:
                    log = (self.folder / "logs" / f"{part}.log").read_text(errors="replace")
                    raise RuntimeError(f"{part} ended: {log[-2000:]}")
            if time.monotonic() > deadline:
                raise RuntimeError(f"{what} did not come up in {READY_WITHIN_S:.0f} s")
            time.sleep(0.05)


def _free_ports(number: int) -> list[int]:
    sockets = [socket.socket() for _ in range(number)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


def main() -> None:
    """Keep a cluster with two GPU nodes up until interrupted."""
    if why := missing():
        raise SystemExit(why)
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "kubernetes").absolute()
    with Cluster(folder) as cluster:
        for name in ("gpu-0", "gpu-1"):
            try:
                cluster.add_node(name, {"cpu": "64", "memory": "512Gi", "nvidia.com/gpu": "8"})
            except urllib.error.HTTPError as error:
                if error.code != 409:
                    raise
        print(f"export KUBECONFIG={cluster.kubeconfig(ADMIN)}", flush=True)
        signal.sigwait({signal.SIGINT, signal.SIGTERM})


if __name__ == "__main__":
    os.umask(0o077)
    main()
