"""Builds the client library's store for a configuration."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, TypeAlias

from obstore.store import LocalStore, MemoryStore, S3Store

from verderer.core.errors import Fault
from verderer.objects.config import Backend, Location, ObjectsConfig

if TYPE_CHECKING:
    from obstore.store import ClientConfig, RetryConfig, S3Config, S3Credential

Client: TypeAlias = LocalStore | MemoryStore | S3Store

# A request for gigabytes may run for hours; what must not happen is silence.
_CONNECT_TIMEOUT = timedelta(seconds=5)
_SILENCE_TIMEOUT = timedelta(seconds=60)
_REQUEST_TIMEOUT = timedelta(hours=12)
# Callers are loops that try again by themselves and doors whose client waits.
_MAX_RETRIES = 4
_RETRY_TIMEOUT = timedelta(seconds=30)


def build_client(config: ObjectsConfig, location: Location) -> Client:
    """Return the client for `location`; a local directory is made if it is not there.

    Raises:
        Fault: the directory cannot be made.
    """
    if location.backend is Backend.MEMORY:
        return MemoryStore()
    if location.root is not None:
        return _local(location)
    return _s3(config, location)


def _local(location: Location) -> LocalStore:
    assert location.root is not None  # noqa: S101
    try:
        # Only the server's own user: objects hold other people's data.
        location.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        return LocalStore(location.root, automatic_cleanup=True)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else ""
        raise Fault(
            f"the object store's directory {location.root} cannot be used: {reason or error}",
            hint="give the server's user a writable directory in [objects] url",
            retry_after_s=30.0,
        ) from error


def _s3(config: ObjectsConfig, location: Location) -> S3Store:
    settings: S3Config = {
        "virtual_hosted_style_request": False,
        # The only way to create without overwriting that a server-side copy has.
        "copy_if_not_exists": "multipart",
    }
    if config.region:
        settings["region"] = config.region
    if config.endpoint:
        settings["endpoint"] = config.endpoint
    client_options: ClientConfig = {
        "allow_http": config.allow_http,
        "connect_timeout": _CONNECT_TIMEOUT,
        "read_timeout": _SILENCE_TIMEOUT,
        "timeout": _REQUEST_TIMEOUT,
    }
    retry: RetryConfig = {"max_retries": _MAX_RETRIES, "retry_timeout": _RETRY_TIMEOUT}
    return S3Store(
        location.bucket,
        prefix=location.prefix or None,
        config=settings,
        client_options=client_options,
        retry_config=retry,
        credential_provider=_Fixed(config) if config.access_key else None,
    )


class _Fixed:
    """Our configured credential, alone.

    Given as plain settings it would be completed from the environment, where a session token that
    belongs to another key makes every signature wrong.
    """

    def __init__(self, config: ObjectsConfig) -> None:
        self._config = config

    def __call__(self) -> S3Credential:
        return {
            "access_key_id": self._config.access_key,
            "secret_access_key": self._config.secret_key,
            "token": None,
            "expires_at": None,
        }
