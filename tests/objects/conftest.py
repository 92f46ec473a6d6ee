"""The backends that the contract suite runs over."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.objects import servers
from verderer.objects.bucket import BucketAdmin
from verderer.objects.config import ObjectsConfig
from verderer.objects.store import ObjectStore, open_store


@pytest.fixture(scope="session")
def moto_server() -> Iterator[servers.Server]:
    with servers.moto() as server:
        yield server


@pytest.fixture(scope="session")
def versitygw_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[servers.Server]:
    if servers.versitygw_binary() is None:
        pytest.skip("NOT TESTED against real S3 signatures: no versitygw binary on PATH")
    with servers.versitygw(tmp_path_factory.mktemp("versitygw")) as server:
        yield server


@pytest.fixture(params=["moto", "versitygw"])
def s3_server(request: pytest.FixtureRequest) -> servers.Server:
    server: servers.Server = request.getfixturevalue(f"{request.param}_server")
    return server


@pytest.fixture(params=["memory", "local", "moto", "versitygw"])
async def objects_config(request: pytest.FixtureRequest, tmp_path: Path) -> ObjectsConfig:
    """Settings of an empty store on each backend."""
    if request.param == "memory":
        return ObjectsConfig(url="memory://")
    if request.param == "local":
        return ObjectsConfig(url=str(tmp_path / "objects"))
    server: servers.Server = request.getfixturevalue(f"{request.param}_server")
    config = server.config(f"s3://b-{uuid.uuid4().hex}/pre/fix")
    await BucketAdmin(config).create()
    return config


@pytest.fixture
def store(objects_config: ObjectsConfig) -> ObjectStore:
    return open_store(objects_config)
