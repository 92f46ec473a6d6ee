from __future__ import annotations

import json
import subprocess
import sys

PODS, NODES = 10_000, 1_000
LIMIT_KB = 64 * 1024


def test_ten_thousand_pods_and_a_thousand_nodes_fit_into_64_mib() -> None:
    crowd = [sys.executable, "-m", "tests.drivers.kubernetes.crowd", str(PODS), str(NODES)]
    with subprocess.Popen(crowd, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            port = server.stdout.readline().strip()
            done = subprocess.run(
                [sys.executable, "-m", "tests.drivers.kubernetes.footprint", port],
                check=True,
                capture_output=True,
                text=True,
                timeout=100,
            )
        finally:
            server.kill()
    said = json.loads(done.stdout)
    assert (said["nodes"], said["taken"]) == (NODES, NODES)
    assert said["peak"] < LIMIT_KB, said
