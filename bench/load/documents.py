"""What is submitted, encoded beforehand."""

from __future__ import annotations

import json
import random

from bench.load.http import request

ONE = """
metadata: {name: bench-one}
steps:
  - name: work
    command: [sh, -c, ":"]
    resources: {requests: {cpu: 100m}}
"""
TEN = """
metadata: {name: bench-ten}
steps:
  - name: prepare
    command: [sh, -c, ":"]
    resources: {requests: {cpu: 100m}}
  - name: train
    needs: [prepare]
    matrix: {seed: [1, 2, 3, 4, 5, 6, 7, 8]}
    command: [sh, -c, ":"]
    resources: {requests: {cpu: 200m, memory: 64Mi}}
  - name: report
    needs: [train]
    command: [sh, -c, ":"]
    resources: {requests: {cpu: 100m}}
"""
HUNDRED = """
metadata: {name: bench-hundred}
steps:
  - name: work
    matrix: {a: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9], b: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]}
    command: [sh, -c, ":"]
    resources: {requests: {cpu: 100m}}
"""
CHAIN_STEPS = 40


def chain(command: str = ":") -> str:
    """Steps that wait for each other, one behind the other."""
    steps = []
    for i in range(CHAIN_STEPS):
        needs = f"    needs: [s{i - 1}]\n" if i else ""
        steps.append(f'  - name: s{i}\n{needs}    command: [sh, -c, "{command}"]\n')
    return "metadata: {name: bench-chain}\nsteps:\n" + "".join(steps)


_MARK = "0000000000000000"


class Bulk:
    """Requests of many runs each, every run under an idempotency key of its own."""

    def __init__(self, token: str, project: str, document: str, *, runs: int) -> None:
        self.runs = runs
        keys = [{"idempotency_key": f"{_MARK}-{i}"} for i in range(runs)]
        body = json.dumps({"pipeline": document, "project": project, "runs": keys}).encode()
        self._request = request("POST", "/api/v1/runs/batch", token=token, body=body)
        self._salt = random.getrandbits(32)

    def __call__(self, number: int) -> bytes:
        return self._request.replace(_MARK.encode(), f"{self._salt:08x}{number:08x}".encode())


class Single:
    """One run in each request, under an idempotency key of its own."""

    def __init__(self, token: str, project: str, document: str) -> None:
        body = json.dumps({"pipeline": document, "project": project}).encode()
        self._request = request("POST", "/api/v1/runs", token=token, body=body, key=_MARK)
        self._salt = random.getrandbits(32)

    def __call__(self, number: int) -> bytes:
        key = f"{self._salt:08x}{number:08x}"
        return self._request.replace(_MARK.encode(), key.encode(), 1)
