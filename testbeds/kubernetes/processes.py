"""A node that runs the containers of its pods as plain processes: a peer for tests, no kubelet.

It does what a pod's specification says and in its order: init containers one after the other, each
to its end, then the containers together, each with the specification's command, arguments,
environment (Secrets and fields resolved) and working directory. What it does not have are images
and walls: programs are the machine's own, and where a volume is mounted is replaced by a folder
wherever that path stands in a command, an argument or a variable.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import ssl
import subprocess
import sys
import threading
import time
import urllib.error
from collections.abc import Mapping
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from testbeds.kubernetes.cluster import Cluster

_STATUS = "application/strategic-merge-patch+json"
_NODES = "/api/v1/nodes"
_LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
_EVERY_S = 0.2
_BEAT_S = 3.0


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class ProcessNode:
    """One node; its pods' files lie in a folder of the cluster's."""

    def __init__(self, cluster: Cluster, name: str, amounts: Mapping[str, str]) -> None:
        self.cluster = cluster
        self.name = name
        self.folder = cluster.folder / f"processes-{name}"
        self._amounts = dict(amounts)
        self._over = threading.Event()
        self._threads: list[threading.Thread] = []
        self._taken: set[str] = set()
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self.secrets: list[bytes] = []
        """All that pods were given of Secrets."""

    def __enter__(self) -> ProcessNode:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._serve_logs()
        self.cluster.add_node(self.name, self._amounts)
        for work in (self._beat, self._look):
            thread = threading.Thread(target=work, daemon=True)
            thread.start()
            self._threads.append(thread)
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._logs.shutdown()
        self._logs.server_close()
        for process in list(self.running.values()):
            process.kill()
        for thread in self._threads:
            thread.join(10)

    def _serve_logs(self) -> None:
        class Handler(BaseHTTPRequestHandler):
            folder = self.folder
            over = self._over

            def do_GET(self) -> None:
                parts = self.path.partition("?")[0].split("/")
                path = self.folder / parts[3] / f"{parts[4]}.log"
                while "follow=true" in self.path and not path.with_suffix(".done").exists():
                    if self.over.wait(0.1):
                        return
                body = path.read_bytes() if path.exists() else b""
                if "timestamps=true" in self.path:
                    stamp = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f000Z").encode()
                    body = b"".join(stamp + b" " + one for one in body.splitlines(keepends=True))
                self.send_response(200)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Nobody listens."""

        self._logs = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        certs = self.cluster.folder / "certs"
        context.load_cert_chain(certs / "apiserver.crt", certs / "apiserver.key")
        self._logs.socket = context.wrap_socket(self._logs.socket, server_side=True)
        threading.Thread(target=self._logs.serve_forever, daemon=True).start()

    def _beat(self) -> None:
        """Say that the node is alive, as a kubelet does."""
        port = self._logs.server_address[1]
        lease = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": self.name, "namespace": "kube-node-lease"},
            "spec": {"holderIdentity": self.name, "leaseDurationSeconds": 40},
        }
        while True:
            at = now()
            status = {
                "capacity": self._amounts,
                "allocatable": self._amounts,
                "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
                "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
                "conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": at}],
            }
            lease["spec"]["renewTime"] = datetime.now(UTC).strftime(  # type: ignore[index]
                "%Y-%m-%dT%H:%M:%S.%fZ"
            )
            try:
                self.cluster.call(
                    "PATCH", f"{_NODES}/{self.name}/status", {"status": status}, kind=_STATUS
                )
                self.cluster.apply(lease, f"{_LEASES}/{self.name}")
            except OSError:
                pass  # said again in a moment
            if self._over.wait(_BEAT_S):
                return

    def _look(self) -> None:
        while not self._over.wait(_EVERY_S):
            try:
                query = f"/api/v1/pods?fieldSelector=spec.nodeName={self.name}"
                pods = self.cluster.call("GET", query)["items"]
            except OSError:
                continue
            for pod in pods:
                uid = pod["metadata"]["uid"]
                if pod["metadata"].get("deletionTimestamp"):
                    self._end(pod)
                elif uid not in self._taken:
                    self._taken.add(uid)
                    runner = PodRunner(self, pod)
                    thread = threading.Thread(target=runner.run, daemon=True)
                    thread.start()
                    self._threads.append(thread)

    def _end(self, pod: dict[str, Any]) -> None:
        process = self.running.get(pod["metadata"]["uid"])
        if process is not None:
            process.kill()
        meta = pod["metadata"]
        path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"
        try:
            self.cluster.call("DELETE", f"{path}?gracePeriodSeconds=0")
        except urllib.error.HTTPError as error:
            if error.code != 404:
                raise


class PodRunner:
    """Runs one pod to its end and says so as a kubelet does."""

    def __init__(self, node: ProcessNode, pod: dict[str, Any]) -> None:
        self._node = node
        self._pod = pod
        self._meta = pod["metadata"]
        self._spec = pod["spec"]
        self._folder = node.folder / self._meta["name"]
        self._init: list[dict[str, Any]] = []
        self._main: list[dict[str, Any]] = []

    def run(self) -> None:
        self._volumes()
        for container in self._spec.get("initContainers", ()):
            if self._run(container, self._init, phase="Pending"):
                self._say("Failed")
                return
        codes = [
            self._run(container, self._main, phase="Running")
            for container in self._spec["containers"]
        ]
        self._say("Failed" if any(codes) else "Succeeded")

    def _volumes(self) -> None:
        for volume in self._spec.get("volumes", ()):
            folder = self._folder / "volumes" / volume["name"]
            folder.mkdir(parents=True)
            source = volume.get("secret")
            if source:
                data = self._secret(source["secretName"])
                for item in source["items"]:
                    file = folder / item["path"]
                    file.write_bytes(data[item["key"]])
                    file.chmod(source["defaultMode"])

    def _secret(self, name: str) -> dict[str, bytes]:
        path = f"/api/v1/namespaces/{self._meta['namespace']}/secrets/{name}"
        found = self._node.cluster.call("GET", path)["data"]
        opened = {key: base64.b64decode(text) for key, text in found.items()}
        self._node.secrets += opened.values()
        return opened

    def _run(self, container: dict[str, Any], told: list[dict[str, Any]], *, phase: str) -> int:
        name = container["name"]
        places = {
            one["mountPath"]: str(self._folder / "volumes" / one["name"])
            for one in container.get("volumeMounts", ())
        }
        words = self._folder / f"{name}.words"
        places[container.get("terminationMessagePath", "/dev/termination-log")] = str(words)
        command = [_placed(one, places) for one in container["command"]]
        command += [_placed(one, places) for one in container.get("args", ())]
        status: dict[str, Any] = {"name": name, "state": {"running": {"startedAt": now()}}}
        told.append(status)
        self._say(phase)
        log = self._folder / f"{name}.log"
        with log.open("wb") as out:
            process = subprocess.Popen(
                [_program(command[0]), *command[1:]],
                env=self._environment(container, places),
                cwd=_placed(container.get("workingDir", str(self._folder)), places),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
            )
            self._node.running[self._meta["uid"]] = process
            code = process.wait()
        log.with_suffix(".done").touch()
        code = 128 - code if code < 0 else code
        status["state"] = {
            "terminated": {
                "exitCode": code,
                "reason": "Error" if code else "Completed",
                "message": words.read_text() if words.exists() else "",
                "startedAt": status["state"]["running"]["startedAt"],
                "finishedAt": now(),
            }
        }
        return code

    def _environment(self, container: dict[str, Any], places: dict[str, str]) -> dict[str, str]:
        found = {"PATH": os.environ["PATH"]}
        for one in container.get("env", ()):
            source = one.get("valueFrom")
            if source is None:
                found[one["name"]] = _placed(one.get("value", ""), places)
            elif "secretKeyRef" in source:
                wanted = source["secretKeyRef"]
                found[one["name"]] = self._secret(wanted["name"])[wanted["key"]].decode()
            else:
                field = source["fieldRef"]["fieldPath"].split("'")[1]
                found[one["name"]] = self._meta["annotations"][field]
        return found

    def _say(self, phase: str) -> None:
        status = {
            "phase": phase,
            "startTime": now(),
            "initContainerStatuses": [_status(one) for one in self._init],
            "containerStatuses": [_status(one) for one in self._main],
        }
        meta = self._meta
        path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}/status"
        try:
            self._node.cluster.call("PATCH", path, {"status": status}, kind=_STATUS)
        except urllib.error.HTTPError as error:
            if error.code not in (404, 409):
                raise


def _status(one: dict[str, Any]) -> dict[str, Any]:
    known: dict[str, Any] = json.loads(json.dumps(one))
    return {"image": "any", "imageID": "any", "ready": False, "restartCount": 0, **known}


def _placed(text: str, places: Mapping[str, str]) -> str:
    for path in sorted(places, key=len, reverse=True):
        text = text.replace(path, places[path])
    return text


def _program(name: str) -> str:
    """A program of the machine; `verderer` is the one of this very environment."""
    own = Path(sys.executable).parent / name
    return str(own) if "/" not in name and own.exists() else shutil.which(name) or name


def wait_for_node(cluster: Cluster, name: str) -> None:
    """Return once the scheduler may use the node."""
    deadline = time.monotonic() + 60
    while cluster.call("GET", f"{_NODES}/{name}")["spec"].get("taints"):
        if time.monotonic() > deadline:
            raise TimeoutError(f"{name} did not become ready")
        time.sleep(0.2)
