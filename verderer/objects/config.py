"""Where objects are kept: the settings, and what their URL means."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from urllib.parse import unquote, urlsplit

from verderer.core.errors import Invalid, Problem

_HINT = "use a directory, file:///directory, s3://bucket/prefix or memory://"


class Backend(StrEnum):
    """What keeps the bytes."""

    MEMORY = "memory"
    """This process alone; for tests."""
    LOCAL = "local"
    S3 = "s3"


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectsConfig:
    """The object store's settings, as the front door read them."""

    url: str
    """A directory, `file:///directory`, `s3://bucket/prefix` or `memory://`."""
    endpoint: str = ""
    """Address of an S3 server other than Amazon's, such as `https://s3.example.com`."""
    region: str = ""
    """Empty: what the environment says, else `us-east-1`."""
    access_key: str = field(default="", repr=False)
    """Empty together with `secret_key`: the machine's own identity (environment, role)."""
    secret_key: str = field(default="", repr=False)
    allow_http: bool = False
    """Whether `endpoint` may be without TLS."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """What an `ObjectsConfig.url` points at."""

    backend: Backend
    root: Path | None = None
    """The directory, absolute; set for `LOCAL` alone."""
    bucket: str = ""
    prefix: str = ""
    """Inside the bucket, without a `/` at either end."""


def locate(config: ObjectsConfig) -> Location:
    """Read the URL and refuse settings that contradict each other.

    Raises:
        Invalid: an unknown scheme, no bucket or directory, half a credential, an endpoint
            without TLS that was not allowed. The message never holds a credential.
    """
    location = _read_url(config.url)
    if location.backend is Backend.S3:
        _check_s3(config)
    elif config.endpoint:
        raise _wrong("endpoint", "an endpoint goes only with an s3:// url", "remove it")
    return location


def _read_url(url: str) -> Location:
    scheme, separator, rest = url.partition("://")
    if not separator:
        return _directory(url)
    if scheme == "file":
        return _directory(unquote(rest.removeprefix("localhost")))
    if scheme == "memory":
        return Location(backend=Backend.MEMORY)
    if scheme in ("s3", "s3a"):
        return _bucket(rest)
    raise _wrong("url", "the object store's url has an unknown scheme", _HINT)


def _directory(path: str) -> Location:
    if not path or "\0" in path:
        raise _wrong("url", "the object store's url names no directory", _HINT)
    return Location(backend=Backend.LOCAL, root=Path(path).expanduser().absolute())


def _bucket(rest: str) -> Location:
    bucket, _, prefix = rest.partition("/")
    if "@" in bucket or "?" in rest or "#" in rest:
        raise _wrong(
            "url", "an s3:// url holds a bucket and a prefix, nothing else", "use access_key"
        )
    if not bucket:
        raise _wrong("url", "the object store's url names no bucket", _HINT)
    return Location(backend=Backend.S3, bucket=bucket, prefix=prefix.strip("/"))


def _check_s3(config: ObjectsConfig) -> None:
    if bool(config.access_key) != bool(config.secret_key):
        raise _wrong(
            "access_key",
            "access_key and secret_key go together",
            "set both, or neither to use the machine's own identity",
        )
    if not config.endpoint:
        return
    parts = urlsplit(config.endpoint)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username:
        raise _wrong("endpoint", "the endpoint is no http(s) address", "https://s3.example.com")
    if parts.scheme == "http" and not config.allow_http:
        raise _wrong(
            "endpoint",
            "the endpoint has no TLS, so objects would cross the network readable",
            "use https://, or set allow_http = true where that is acceptable",
        )


def _wrong(name: str, message: str, hint: str) -> Invalid:
    problem = Problem(message=message, field=f"objects.{name}", hint=hint)
    return Invalid(message, problems=(problem,), hint=hint, code="invalid_objects_config")
