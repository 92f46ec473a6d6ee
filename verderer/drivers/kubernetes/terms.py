"""What an administrator decides about this cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from verderer.drivers.kubernetes import naming

RESTRICTED: Final = "restricted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """The settings of the driver; see `verderer.settings.KubernetesSettings` for each."""

    namespace: str = naming.AGENT_NAMESPACE
    project_prefix: str = "verderer-"
    create_namespaces: bool = True
    agent_account: str = naming.AGENT
    bind_project_role: str = naming.PROJECT_ROLE
    """ClusterRole that the agent binds to itself in a namespace it makes; empty: none."""
    pod_security: str = "baseline"
    quota: Mapping[str, str] = field(default_factory=dict)
    default_limits: Mapping[str, str] = field(default_factory=dict)
    default_requests: Mapping[str, str] = field(default_factory=dict)
    image_pull_secrets: tuple[str, ...] = ()
    default_image: str = ""
    identity_secret: str = ""
    """Secret in which the agent keeps its own key and credential; empty: not in the cluster."""
    carrier_image: str = ""
    """Image with the `verderer` command, for steps with inputs or outputs; empty: none such."""
    queue: str = ""
    """Kueue's LocalQueue; of effect only where the cluster serves Kueue's API."""
    start_wait_s: float = 300.0
    gang_wait_s: float = 600.0
    timeout_margin_s: float = 10.0
    """A kubelet that does not end what has run too long gets so much more before we do."""
    writes_per_s: float = 300.0
    publish_inventory: bool = True
