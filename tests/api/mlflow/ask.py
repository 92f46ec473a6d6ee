"""Short ways to ask the tracking API without its client."""

from __future__ import annotations

from typing import Any

import httpx2

API = "/mlflow/api/2.0/mlflow"
FILES = "/mlflow/api/2.0/mlflow-artifacts/artifacts"


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


class Asker:
    """One caller, at one address of the API."""

    def __init__(self, client: httpx2.AsyncClient, token: str, base: str = "/mlflow") -> None:
        self.client = client
        self.headers = bearer(token)
        self.base = f"{base}/api/2.0"

    async def post(self, tail: str, **body: Any) -> httpx2.Response:
        return await self.client.post(f"{self.base}/mlflow/{tail}", json=body, headers=self.headers)

    async def get(self, tail: str, **query: Any) -> httpx2.Response:
        return await self.client.get(
            f"{self.base}/mlflow/{tail}", params=query, headers=self.headers
        )

    async def ok(self, tail: str, **body: Any) -> Any:
        """POST, and the answer, which must be one."""
        answer = await self.post(tail, **body)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def read(self, tail: str, **query: Any) -> Any:
        """GET, and the answer, which must be one."""
        answer = await self.get(tail, **query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def experiment(self, name: str = "e") -> str:
        return str((await self.ok("experiments/create", name=name))["experiment_id"])

    async def run(self, experiment: str | None = None, **more: Any) -> str:
        made = await self.ok("runs/create", experiment_id=experiment or "0", **more)
        return str(made["run"]["info"]["run_id"])

    async def file(self, method: str, path: str, body: bytes | None = None) -> httpx2.Response:
        return await self.client.request(
            method, f"{self.base}/mlflow-artifacts/artifacts/{path}", content=body,
            headers=self.headers,
        )  # fmt: skip
