"""Keeps the agent's identity in a Secret beside it, so that a new pod is the same agent."""

from __future__ import annotations

import base64
import binascii
from typing import Final

import msgspec

from verderer.agent.identity.keeping import Identity, decode
from verderer.core.errors import Fault, NotFound, VerdererError
from verderer.drivers.kubernetes.calls.api import Api
from verderer.drivers.kubernetes.calls.connection import Connection

_KEY: Final = "identity.json"
_WRITES_PER_S: Final = 10.0


class _Secret(msgspec.Struct):
    data: dict[str, str] | None = None


class SecretKeeper:
    """One key of one Secret, which is there already: the agent may change it, not make others."""

    def __init__(self, connection: Connection, namespace: str, name: str) -> None:
        self._connection = connection
        self._name = name
        self._path = f"/api/v1/namespaces/{namespace}/secrets/{name}"

    async def load(self) -> Identity | None:
        """See `Keeper`."""
        api = Api(self._connection, writes_per_s=_WRITES_PER_S)
        try:
            secret = await api.get(self._path, _Secret)
        except VerdererError as error:
            raise self._trouble("read", error) from error
        finally:
            await api.close()
        text = (secret.data or {}).get(_KEY)
        if text is None:
            return None
        try:
            return decode(base64.b64decode(text, validate=True), self._path)
        except binascii.Error as error:
            raise Fault(f"the agent's identity in {self._path} is damaged") from error

    async def save(self, identity: Identity) -> None:
        """See `Keeper`."""
        text = base64.b64encode(msgspec.json.encode(identity)).decode()
        api = Api(self._connection, writes_per_s=_WRITES_PER_S)
        try:
            await api.patch(self._path, {"data": {_KEY: text}}, _Secret)
        except VerdererError as error:
            raise self._trouble("changed", error) from error
        finally:
            await api.close()

    def _trouble(self, verb: str, error: VerdererError) -> Fault:
        missing = isinstance(error, NotFound)
        return Fault(
            f"the Secret {self._name} cannot be {verb}: {error.message}",
            hint="Apply the agent's manifests anew: they make it, empty."
            if missing
            else "The agent's Role must let it get and patch this one Secret.",
        )
