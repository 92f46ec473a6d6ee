"""What the settings mean, and which contradict each other."""

from __future__ import annotations

from pathlib import Path

import pytest

from verderer.core.errors import Invalid
from verderer.objects.config import Backend, Location, ObjectsConfig, locate

SECRET = "a-secret-that-must-never-be-printed"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("memory://", Location(backend=Backend.MEMORY)),
        ("/var/objects", Location(backend=Backend.LOCAL, root=Path("/var/objects"))),
        ("file:///var/my%20objects", Location(backend=Backend.LOCAL, root=Path("/var/my objects"))),
        ("s3://b", Location(backend=Backend.S3, bucket="b")),
        ("s3://b/p/q/", Location(backend=Backend.S3, bucket="b", prefix="p/q")),
    ],
)
def test_urls(url: str, expected: Location) -> None:
    assert locate(ObjectsConfig(url=url)) == expected


def test_a_relative_directory_is_made_absolute() -> None:
    assert locate(ObjectsConfig(url="objects")).root == Path.cwd() / "objects"


@pytest.mark.parametrize(
    ("config", "field"),
    [
        pytest.param(ObjectsConfig(url=""), "url", id="nothing"),
        pytest.param(ObjectsConfig(url="file://"), "url", id="no directory"),
        pytest.param(ObjectsConfig(url="gs://b"), "url", id="an unknown scheme"),
        pytest.param(ObjectsConfig(url="s3://"), "url", id="no bucket"),
        pytest.param(
            ObjectsConfig(url=f"s3://key:{SECRET}@b"), "url", id="a credential in the url"
        ),
        pytest.param(ObjectsConfig(url="s3://b", access_key="k"), "access_key", id="half of one"),
        pytest.param(
            ObjectsConfig(url="s3://b", secret_key=SECRET), "access_key", id="the other half"
        ),
        pytest.param(
            ObjectsConfig(url="s3://b", endpoint="http://s3"), "endpoint", id="no TLS, not allowed"
        ),
        pytest.param(ObjectsConfig(url="s3://b", endpoint="s3:9000"), "endpoint", id="no address"),
        pytest.param(
            ObjectsConfig(url="s3://b", endpoint=f"https://k:{SECRET}@s3"),
            "endpoint",
            id="a credential in the endpoint",
        ),
        pytest.param(
            ObjectsConfig(url="memory://", endpoint="https://s3"), "endpoint", id="not on S3"
        ),
    ],
)
def test_is_refused_by_field_and_without_the_secret(config: ObjectsConfig, field: str) -> None:
    with pytest.raises(Invalid) as refused:
        locate(config)
    (problem,) = refused.value.problems
    assert problem.field == f"objects.{field}"
    assert problem.hint
    assert SECRET not in f"{refused.value} {problem}"


def test_a_config_does_not_print_its_credential() -> None:
    config = ObjectsConfig(url="s3://b", access_key="AK-VISIBLE", secret_key=SECRET)
    assert SECRET not in repr(config)
    assert "AK-VISIBLE" not in repr(config)
