"""Where the API server is and who we are there: a kubeconfig, or the account of our own pod."""

from __future__ import annotations

import os
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import httpx2
from lightkube.config.client_adapter import ConnectionParams
from lightkube.config.kubeconfig import KubeConfig, SingleConfig
from lightkube.core.exceptions import ConfigError

from verderer.core.errors import Fault, Invalid

CALL_S: Final = 30.0
"""Most time for one ordinary request."""
CONNECT_S: Final = 5.0
_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")


@dataclass(frozen=True, slots=True)
class Connection:
    """A chosen context."""

    config: SingleConfig

    @property
    def server(self) -> str:
        return str(self.config.cluster.server)

    def client(self, *, most: int | None = 100) -> httpx2.AsyncClient:
        """A new HTTP client with at most `most` connections (None: no bound).

        It trusts the authority of the configuration alone, reads a rotated token again, and never
        follows a redirect.

        Raises:
            Invalid: a certificate or a key cannot be used.
        """
        timeout = httpx2.Timeout(CALL_S, connect=CONNECT_S, pool=None)
        # The environment's proxies are for the way to the control plane, not to our own cluster.
        given = ConnectionParams(timeout=timeout, trust_env=False)
        try:
            params = given.httpx_params(self.config)
        except (ConfigError, OSError, ssl.SSLError) as error:
            raise Invalid(f"the kubeconfig cannot be used: {error}") from error
        limits = httpx2.Limits(
            max_connections=most, max_keepalive_connections=most, keepalive_expiry=30.0
        )
        return httpx2.AsyncClient(**params, limits=limits)


def connect(kubeconfig: Path | None = None, context: str = "") -> Connection:
    """Choose the cluster.

    `kubeconfig` names a file; without one it is our own pod's account, else `KUBECONFIG`, else
    `~/.kube/config`. `context` chooses within a file; empty: its current one.

    Raises:
        Invalid: there is no such file or context, or it is malformed.
        Fault: the file cannot be read.
    """
    try:
        if kubeconfig is None and not context and _ACCOUNT.exists():
            chosen = KubeConfig.from_service_account().get()
        else:
            named = kubeconfig or Path(os.environ.get("KUBECONFIG") or "~/.kube/config")
            chosen = KubeConfig.from_file(named).get(context or None)
    except OSError as error:
        raise Fault(f"the kubeconfig cannot be read: {error}") from error
    except (ConfigError, LookupError, TypeError, ValueError) as error:
        raise Invalid(
            f"no cluster to talk to: {error}",
            hint="set kubernetes.kubeconfig, or run the agent inside the cluster",
            code="kubeconfig",
        ) from error
    if chosen is None:
        raise Invalid("the kubeconfig names no context", code="kubeconfig")
    return Connection(chosen)
