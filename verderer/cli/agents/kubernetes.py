"""The process of an agent beside a Kubernetes cluster, or inside it."""

from __future__ import annotations

from dataclasses import replace

import structlog

from verderer.agent.identity.keeping import Keeper
from verderer.agent.run import run_agent
from verderer.cli.agents.identity import agent_config
from verderer.cli.agents.secret import SecretKeeper
from verderer.core.errors import Refusal
from verderer.drivers.kubernetes.calls.connection import Connection, connect
from verderer.drivers.kubernetes.driver import KubernetesDriver
from verderer.drivers.kubernetes.terms import Terms
from verderer.settings import Settings

log = structlog.get_logger("verderer.kubernetes")


async def run(settings: Settings) -> int:
    """Serve the cluster until a signal; return the process's exit code.

    Raises:
        Refusal: no cluster is named, a setting is malformed, or there is no credential.
    """
    connection, agreed = connection_of(settings), terms(settings)
    config = await agent_config(settings, keeper=_keeper(settings, connection))
    config = replace(config, carry_url=settings.kubernetes.carrier_url)
    driver = KubernetesDriver(connection, agreed, state_dir=settings.agent_spool_dir)
    try:
        return await run_agent(config, driver)
    finally:
        await driver.close()


def _keeper(settings: Settings, connection: Connection) -> Keeper | None:
    """Where the identity is kept, if not in the usual file."""
    given = settings.kubernetes
    if not given.identity_secret:
        return None
    return SecretKeeper(connection, given.namespace, given.identity_secret)


def connection_of(settings: Settings) -> Connection:
    """The cluster that the settings name. Raises Invalid, or Fault for an unreadable file."""
    return connect(settings.kubernetes.kubeconfig, settings.kubernetes.context)


def terms(settings: Settings) -> Terms:
    """What the driver is told.

    Raises:
        Refusal: a list of amounts is malformed.
    """
    given = settings.kubernetes
    return Terms(
        namespace=given.namespace,
        agent_account=given.service_account,
        project_prefix=given.project_prefix,
        create_namespaces=given.create_namespaces,
        bind_project_role=given.project_role if given.create_namespaces else "",
        pod_security=given.pod_security,
        quota=_amounts("quota", given.quota),
        default_requests=_amounts("default_requests", given.default_requests),
        default_limits=_amounts("default_limits", given.default_limits),
        image_pull_secrets=tuple(_names(given.image_pull_secrets)),
        default_image=given.default_image,
        identity_secret=given.identity_secret,
        carrier_image=given.carrier_image,
        queue=given.queue,
        start_wait_s=given.start_wait_s,
        gang_wait_s=given.gang_wait_s,
        writes_per_s=given.writes_per_s,
        publish_inventory=given.publish_inventory,
    )


def _names(text: str) -> list[str]:
    return [name for part in text.split(",") if (name := part.strip())]


def _amounts(setting: str, text: str) -> dict[str, str]:
    found = {}
    for part in _names(text):
        name, equals, amount = (piece.strip() for piece in part.rpartition("="))
        if not (name and equals and amount):
            raise Refusal(
                f"kubernetes.{setting} holds {part!r}",
                hint="Write name=amount pairs with commas, such as cpu=100m,memory=256Mi.",
                code="settings",
            )
        found[name] = amount
    return found
