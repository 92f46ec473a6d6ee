"""What things are called in a cluster."""

from __future__ import annotations

import hashlib
from typing import Final

GROUP: Final = "execution.cube.studio"
VERSION: Final = "v1"
PLURAL: Final = "cubepipelines"
KIND: Final = "CubePipeline"
CRD: Final = f"{PLURAL}.{GROUP}"

AGENT_NAMESPACE: Final = "cube-execution"
AGENT: Final = "cube-agent"
SYSTEM_NAMESPACE: Final = "cube-system"
CLUSTER_INFO: Final = "cluster-info"
PROJECT_ROLE: Final = "cube-agent-project"
STEP_ACCOUNT: Final = "verderer-step"

MANAGED_BY: Final = "app.kubernetes.io/managed-by"
US: Final = "verderer"
ATTEMPT: Final = "verderer.dev/attempt"
RUN: Final = "verderer.dev/run"
PROJECT: Final = "verderer.dev/project"
STEP: Final = "verderer.dev/step"
RUN_NAME: Final = "verderer.dev/run-name"
INTENTION: Final = "verderer.dev/intention"
"""Annotation: UID of the object that a Job, Service or Secret was made for."""
COMPLETION_INDEX: Final = "batch.kubernetes.io/job-completion-index"
QUEUE: Final = "kueue.x-k8s.io/queue-name"

CONTAINER: Final = "main"
FETCH: Final = "fetch"
"""The carrier before the program."""
STORE: Final = "store"
"""The carrier after it."""
FIELD_MANAGER: Final = "verderer-agent"
MAX_LABEL: Final = 63


def namespace_of(project: str, *, prefix: str) -> str:
    """The namespace of a project: its name behind `prefix`, shortened with a hash if too long.

    `project` is a DNS label already; so is the answer, and different projects never share one.
    """
    name = prefix + project
    return name if len(name) <= MAX_LABEL and not _looks_shortened(project) else _short(name)


def label_value(text: str) -> str:
    """`text` as near as a label's value may come; empty when nothing of it can stay."""
    kept = "".join(c if c.isascii() and (c.isalnum() or c in "-_.") else "-" for c in text)
    return kept[:MAX_LABEL].strip("-_.")


def _looks_shortened(project: str) -> bool:
    """A project must not be able to take the name that another one's was shortened to."""
    head, dash, tail = project.rpartition("-x")
    return bool(head and dash) and len(tail) == 10 and all(c in "0123456789abcdef" for c in tail)


def _short(name: str) -> str:
    digest = hashlib.sha256(name.encode()).hexdigest()[:10]
    return f"{name[: MAX_LABEL - 12].rstrip('-')}-x{digest}"


def intentions_path(namespace: str) -> str:
    """Where our objects live."""
    return f"/apis/{GROUP}/{VERSION}/namespaces/{namespace}/{PLURAL}"


def jobs_path(namespace: str) -> str:
    return f"/apis/batch/v1/namespaces/{namespace}/jobs"


def core_path(namespace: str, plural: str) -> str:
    """Pods, Services, Secrets and their like."""
    return f"/api/v1/namespaces/{namespace}/{plural}"
