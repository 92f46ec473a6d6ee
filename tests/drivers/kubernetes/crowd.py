"""An API server that only knows lists: thousands of pods and nodes as real ones look.

`python -m tests.drivers.kubernetes.crowd PODS NODES` prints its port and serves until killed.
"""

from __future__ import annotations

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

_NOISE = {f"f:{n}": {"f:mountPath": {}, "f:name": {}, "f:value": {}} for n in range(24)}


def pod(index: int, nodes: int) -> dict[str, Any]:
    """About 5 KB of JSON, most of which nobody needs."""
    uid = f"{index:08x}-0000-4000-8000-{index:012x}"
    env = [{"name": f"VARIABLE_{n}", "value": f"some value {n} of pod {index}"} for n in range(20)]
    return {
        "metadata": {
            "name": f"worker-{index}-abcde",
            "namespace": f"team-{index % 40}",
            "uid": uid,
            "resourceVersion": str(1000 + index),
            "creationTimestamp": "2026-12-01T10:00:00Z",
            "labels": {"app": f"app-{index % 300}", "pod-template-hash": f"{index % 997:x}"},
            "managedFields": [{"manager": "kubelet", "fieldsV1": _NOISE}],
        },
        "spec": {
            "nodeName": f"node-{index % nodes:04d}",
            "containers": [
                {
                    "name": "main",
                    "image": f"registry.example.com/team/app:{index}",
                    "env": env,
                    "resources": {
                        "requests": {"cpu": f"{100 + index % 50}m", "memory": "256Mi"},
                        "limits": {"memory": "512Mi"},
                    },
                }
            ],
        },
        "status": {"phase": "Running", "podIP": "10.1.2.3", "conditions": []},
    }


def node(index: int) -> dict[str, Any]:
    images = [
        {"names": [f"registry.example.com/i{n}@sha256:{n:064x}"], "sizeBytes": n} for n in range(50)
    ]
    amounts = {"cpu": "64", "memory": "527951484Ki", "nvidia.com/gpu": "8", "pods": "110"}
    return {
        "metadata": {
            "name": f"node-{index:04d}",
            "uid": f"node-{index}",
            "resourceVersion": str(index + 1),
            "labels": {
                "kubernetes.io/hostname": f"node-{index:04d}",
                "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
                **{f"feature.node.kubernetes.io/cpu-{n}": "true" for n in range(40)},
            },
            "annotations": {f"note-{n}": "x" * 60 for n in range(10)},
        },
        "spec": {},
        "status": {
            "allocatable": amounts,
            "capacity": amounts,
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
            "images": images,
        },
    }


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    pods = nodes = 0

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        query = parse_qs(url.query)
        if "watch" in query:
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.wfile.flush()
            self.rfile.read(1)
            return
        make, total = self._made(url.path, query)
        start = int(query.get("continue", ["0"])[0])
        end = min(total, start + int(query.get("limit", ["500"])[0]))
        meta = {"resourceVersion": "99999", "continue": str(end) if end < total else ""}
        body = json.dumps({"metadata": meta, "items": [make(n) for n in range(start, end)]})
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def _made(self, path: str, query: dict[str, list[str]]) -> tuple[Any, int]:
        if path.endswith("/nodes"):
            return node, self.nodes
        if path.endswith("/pods") and query["labelSelector"][0].startswith("!"):
            return (lambda n: pod(n, self.nodes)), self.pods
        return node, 0

    def log_message(self, *_: object) -> None:
        """Nothing."""


def main() -> None:
    Handler.pods, Handler.nodes = int(sys.argv[1]), int(sys.argv[2])
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
