"""The bucket's settings, against real servers and on their documents."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.objects import servers
from verderer.core.errors import Fault
from verderer.objects.bucket import BucketAdmin, State
from verderer.objects.config import ObjectsConfig
from verderer.objects.s3 import lifecycle
from verderer.objects.s3.signing import Credential, Request, signed_headers

OTHERS = (
    f'<LifecycleConfiguration xmlns="{lifecycle.NAMESPACE}"><Rule><ID>theirs</ID>'
    "<Filter><Prefix>old/</Prefix></Filter><Status>Enabled</Status>"
    "<Expiration><Days>30</Days></Expiration></Rule></LifecycleConfiguration>"
)


async def test_a_bucket_is_made_once(s3_server: servers.Server) -> None:
    admin = BucketAdmin(s3_server.config(f"s3://made-{s3_server.name}"))
    assert await admin.exists() is State.OFF
    assert await admin.create() is State.ON
    assert await admin.exists() is State.ON
    assert await admin.create() is State.ON


async def test_versioning_is_turned_on_and_off(s3_server: servers.Server) -> None:
    admin = BucketAdmin(s3_server.config(f"s3://versions-{s3_server.name}"))
    await admin.create()
    assert await admin.versioning() is State.OFF
    assert await admin.set_versioning(True) is State.ON
    assert await admin.versioning() is State.ON
    assert await admin.set_versioning(False) is State.OFF
    assert await admin.versioning() is State.OFF


async def test_tmp_expires_by_a_rule_of_the_bucket(moto_server: servers.Server) -> None:
    admin = BucketAdmin(moto_server.config("s3://expiry/pre/fix"))
    await admin.create()
    assert await admin.tmp_expiry() is State.OFF
    for _ in range(2):
        assert await admin.set_tmp_expiry() is State.ON
        assert await admin.tmp_expiry() is State.ON
    elsewhere = BucketAdmin(moto_server.config("s3://expiry/elsewhere"))
    assert await elsewhere.tmp_expiry() is State.OFF


async def test_a_server_without_lifecycle_says_so(versitygw_server: servers.Server) -> None:
    admin = BucketAdmin(versitygw_server.config("s3://no-expiry"))
    await admin.create()
    assert await admin.set_tmp_expiry() is State.NOT_SUPPORTED


@pytest.mark.parametrize("url", ["memory://", "local"])
async def test_a_store_without_a_bucket_says_so(url: str, tmp_path: Path) -> None:
    admin = BucketAdmin(ObjectsConfig(url=str(tmp_path) if url == "local" else url))
    answers = [
        await admin.exists(),
        await admin.create(),
        await admin.versioning(),
        await admin.set_versioning(True),
        await admin.tmp_expiry(),
        await admin.set_tmp_expiry(),
    ]
    assert set(answers) == {State.NOT_APPLICABLE}


async def test_a_refusal_is_a_fault_without_the_secret(versitygw_server: servers.Server) -> None:
    admin = BucketAdmin(versitygw_server.config("s3://refused", secret_key="not-the-secret"))
    with pytest.raises(Fault, match="SignatureDoesNotMatch") as failed:
        await admin.create()
    assert "not-the-secret" not in f"{failed.value} {failed.value.detail}"


async def test_without_a_key_the_remedy_is_named() -> None:
    with pytest.raises(Fault) as failed:
        await BucketAdmin(ObjectsConfig(url="s3://b")).exists()
    assert "access_key" in failed.value.hint


async def test_a_server_that_is_not_there_is_a_fault() -> None:
    config = servers.Server("none", f"http://127.0.0.1:{servers.free_port()}").config("s3://b")
    with pytest.raises(Fault, match="cannot reach"):
        await BucketAdmin(config).exists()


def test_rules_of_others_stay_and_ours_is_not_doubled() -> None:
    once = lifecycle.with_rules(OTHERS, root="", tmp="tmp/", days=7).decode()
    twice = lifecycle.with_rules(once, root="", tmp="tmp/", days=7).decode()
    for document in (once, twice):
        assert document.count("<ID>theirs</ID>") == 1
        assert document.count("<Rule>") == 3
        assert lifecycle.expires(document, "tmp/", 7)
    assert not lifecycle.expires(OTHERS, "tmp/", 7)


@pytest.mark.parametrize(
    ("change", "covers"),
    [
        pytest.param(("<Days>7", "<Days>8"), False, id="too late"),
        pytest.param(("<Days>7", "<Days>1"), True, id="sooner"),
        pytest.param((">Enabled<", ">Disabled<"), False, id="turned off"),
        pytest.param(("<Prefix>tmp/", "<Prefix>tmp/x/"), False, id="only a part"),
        pytest.param(("<Prefix>tmp/", "<Prefix>"), True, id="everything"),
        pytest.param(("<Filter>", "<Filter><Tag><Key>k</Key></Tag>"), False, id="only some"),
    ],
)
def test_what_counts_as_expiring(change: tuple[str, str], covers: bool) -> None:
    document = lifecycle.with_rules("", root="", tmp="tmp/", days=7).decode()
    assert lifecycle.expires(document, "tmp/", 7)
    assert lifecycle.expires(document.replace(*change), "tmp/", 7) is covers


def test_an_unreadable_document_is_a_fault_and_is_not_overwritten() -> None:
    with pytest.raises(Fault, match="cannot be read"):
        lifecycle.with_rules("<not xml", root="", tmp="tmp/", days=7)


def test_the_signature_is_that_of_the_published_example() -> None:
    """AWS's own example: GET /?lifecycle of examplebucket, 2013-05-24."""
    request = Request(
        method="GET",
        host="examplebucket.s3.amazonaws.com",
        path="/",
        query={"lifecycle": ""},
        headers={},
        body=b"",
    )
    credential = Credential(
        "AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "us-east-1"
    )
    headers = signed_headers(credential, request, now=datetime(2013, 5, 24, tzinfo=UTC))
    assert headers["authorization"].endswith(
        "Signature=fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"
    )
