"""Grants: each opens exactly what it says, for as long as it says."""

from __future__ import annotations

import urllib.error
import urllib.request
from urllib.parse import parse_qsl, unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.objects import servers
from verderer.core.errors import Invalid, NotAllowed
from verderer.objects.bucket import BucketAdmin
from verderer.objects.config import ObjectsConfig
from verderer.objects.grants import LocalGrants, PresignedGrants, open_grants
from verderer.objects.store import open_store

NOW = 1_800_000_000.0
GRANTS = LocalGrants(public_url="https://v.example.com/", instance_key=b"k" * 32, clock=lambda: NOW)


def taken_apart(url: str) -> tuple[str, dict[str, str]]:
    parts = urlsplit(url)
    assert f"{parts.scheme}://{parts.netloc}" == "https://v.example.com"
    return unquote(parts.path.removeprefix("/objects/")), dict(parse_qsl(parts.query))


async def test_a_grant_opens_its_object_until_it_expires() -> None:
    key = "artifacts/ü b/100%25?.bin"
    urls = await GRANTS.grant([key, "other"], "PUT", 60)
    assert list(urls) == [key, "other"]
    read, query = taken_apart(urls[key])
    assert read == key
    GRANTS.verify("PUT", key, query, NOW)
    GRANTS.verify("PUT", key, query, NOW + 59)
    with pytest.raises(NotAllowed) as refused:
        GRANTS.verify("PUT", key, query, NOW + 60)
    assert refused.value.code == "grant_expired"


async def test_a_get_grant_allows_head_and_nothing_else() -> None:
    key, query = taken_apart((await GRANTS.grant(["a/b"], "GET", 60))["a/b"])
    for method in ("GET", "HEAD"):
        GRANTS.verify(method, key, query, NOW)
    for method in ("PUT", "DELETE", "POST", "get", ""):
        with pytest.raises(NotAllowed):
            GRANTS.verify(method, key, query, NOW)


@pytest.mark.parametrize(
    "changes",
    [
        {"m": "PUT"},
        {"e": "9999999999"},
        {"e": "18000000600"},
        {"s": ""},
        {"s": "é"},
        {"s": "0" * 64},
        {"p": ""},
        {"p": "a/"},
        {"m": "GET\n1800000060"},
        {},
    ],
    ids=repr,
)
async def test_a_changed_grant_is_worth_nothing(changes: dict[str, str]) -> None:
    _, query = taken_apart((await GRANTS.grant(["a/b"], "GET", 60))["a/b"])
    changed = {**query, **changes} if changes else {}
    for method in ("GET", "PUT"):
        with pytest.raises(NotAllowed) as refused:
            GRANTS.verify(method, "a/b", changed, NOW)
        assert refused.value.code == "grant_invalid"


@given(key=st.text(alphabet="ab/%. ", min_size=1, max_size=6))
async def test_a_grant_opens_no_other_key(key: str) -> None:
    _, query = taken_apart((await GRANTS.grant(["a/b"], "GET", 60))["a/b"])
    if key == "a/b":
        GRANTS.verify("GET", key, query, NOW)
    else:
        with pytest.raises((NotAllowed, Invalid)):
            GRANTS.verify("GET", key, query, NOW)


async def test_another_instance_does_not_take_it() -> None:
    _, query = taken_apart((await GRANTS.grant(["a/b"], "GET", 60))["a/b"])
    other = LocalGrants(
        public_url="https://v.example.com", instance_key=b"other" * 8, clock=lambda: NOW
    )
    with pytest.raises(NotAllowed):
        other.verify("GET", "a/b", query, NOW)


async def test_a_prefix_grant_opens_the_folder_alone() -> None:
    grant = await GRANTS.grant_prefix("logs/p/r/", "PUT", 60)
    assert grant is not None
    key, query = taken_apart(grant.url("logs/p/r/ü/1"))
    assert key == "logs/p/r/ü/1"
    GRANTS.verify("PUT", key, query, NOW)
    for other in ("logs/p/r2/1", "logs/p/r", "logs/p/q/1", "x/logs/p/r/1"):
        with pytest.raises(NotAllowed):
            GRANTS.verify("PUT", other, query, NOW)
        with pytest.raises(NotAllowed):
            grant.url(other)
    with pytest.raises(Invalid):
        GRANTS.verify("PUT", "logs/p/r/../../q/1", query, NOW)
    for changed in ({**query, "p": "logs/p/"}, {k: v for k, v in query.items() if k != "p"}):
        with pytest.raises(NotAllowed):
            GRANTS.verify("PUT", "logs/p/r/1", changed, NOW)
    with pytest.raises(NotAllowed, match="expired"):
        GRANTS.verify("PUT", "logs/p/r/1", query, NOW + 61)


@pytest.mark.parametrize("prefix", ["", "/", "logs", "../"])
async def test_nobody_is_granted_everything(prefix: str) -> None:
    with pytest.raises(Invalid):
        await GRANTS.grant_prefix(prefix, "GET", 60)


async def test_bad_keys_and_times_are_refused() -> None:
    with pytest.raises(Invalid):
        await GRANTS.grant(["../x"], "GET", 60)
    for ttl_s in (0, -1, 0.5, 8 * 24 * 3600):
        with pytest.raises(ValueError, match="lasts"):
            await GRANTS.grant(["a"], "GET", ttl_s)
    with pytest.raises(ValueError, match="too short"):
        LocalGrants(public_url="https://x", instance_key=b"short", clock=lambda: NOW)


def test_the_store_decides_which_grants_there_are() -> None:
    def made(config: ObjectsConfig) -> object:
        return open_grants(
            open_store(config), public_url="https://x", instance_key=b"k" * 32, clock=lambda: NOW
        )

    assert isinstance(made(ObjectsConfig(url="memory://")), LocalGrants)
    assert isinstance(made(ObjectsConfig(url="s3://b")), PresignedGrants)


async def test_s3_presigned_urls_carry_bytes_without_credentials(
    s3_server: servers.Server,
) -> None:
    config = s3_server.config(f"s3://grants-{s3_server.name}/in/here")
    await BucketAdmin(config).create()
    store = open_store(config)
    grants = PresignedGrants(store)
    key = "a/ü b?.bin"
    put = (await grants.grant([key], "PUT", 60))[key]
    request = urllib.request.Request(
        put, data=b"hello", method="PUT", headers={"content-type": "application/octet-stream"}
    )
    with urllib.request.urlopen(request) as response:
        assert response.status == 200
    assert await store.get(key) == b"hello"
    get = (await grants.grant([key], "GET", 60))[key]
    with urllib.request.urlopen(get) as response:
        assert response.read() == b"hello"
    assert servers.SECRET_KEY not in get
    assert await grants.grant([], "GET", 60) == {}
    assert await grants.grant_prefix("a/", "GET", 60) is None


async def test_a_changed_presigned_url_is_refused(versitygw_server: servers.Server) -> None:
    config = versitygw_server.config("s3://grants-changed")
    await BucketAdmin(config).create()
    store = open_store(config)
    await store.put("a", b"a")
    await store.put("b", b"b")
    url = (await PresignedGrants(store).grant(["a"], "GET", 60))["a"]
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(url.replace("/a?", "/b?"))
    assert refused.value.code == 403
    refused.value.close()
