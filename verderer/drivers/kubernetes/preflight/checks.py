"""What the answers of a cluster mean for us. Facts in, findings out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from verderer.core.errors import VerdererError
from verderer.core.model.cluster import CheckLevel, CheckReport
from verderer.drivers.kubernetes import naming
from verderer.drivers.kubernetes.preflight.rights import Right, remedy
from verderer.drivers.kubernetes.seen.devices import lacks_devices
from verderer.drivers.kubernetes.seen.nodes import is_ready
from verderer.drivers.kubernetes.seen.sights import Node
from verderer.drivers.kubernetes.terms import Terms

OLDEST: Final = (1, 27)
"""The first with Indexed Jobs' own labels and podFailurePolicy switched on."""
WALLED: Final = (1, 30)
CLOCK_SKEW_S: Final = 10.0


class Level(StrEnum):
    """How bad it is."""

    FINE = "fine"
    ODD = "odd"
    BAD = "bad"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One line for a person."""

    title: str
    level: Level
    message: str = ""
    remedy: str = ""
    """What to do or to apply."""

    def report(self) -> CheckReport:
        """The same for the control plane: what is bad keeps work away."""
        return CheckReport(
            # The agent compares its clock with the control plane's under the plain name.
            name="API server's clock" if self.title == "clock" else self.title,
            level=_LEVELS[self.level],
            required=self.level is Level.BAD,
            message=self.message,
            remedy=self.remedy,
        )


_LEVELS: Final = {
    Level.FINE: CheckLevel.PASS,
    Level.ODD: CheckLevel.WARN,
    Level.BAD: CheckLevel.FAIL,
}


def unreachable(error: VerdererError) -> Finding:
    """No answer at all."""
    return Finding(title="API server", level=Level.BAD, message=error.message, remedy=error.hint)


def version(text: str) -> Finding:
    """`git_version` of the server, such as `v1.37.2`."""
    numbers = _version(text)
    if numbers is None:
        return Finding(title="version", level=Level.ODD, message=f"cannot be read: {text}")
    if numbers < OLDEST:
        return Finding(
            title="version",
            level=Level.BAD,
            message=f"Kubernetes {text} is older than {OLDEST[0]}.{OLDEST[1]}",
            remedy="upgrade the cluster",
        )
    if numbers < WALLED:
        return Finding(
            title="version",
            level=Level.ODD,
            message=f"Kubernetes {text} cannot keep the agent's bindings to projects' namespaces",
            remedy="leave deploy/agent/walls.yaml out, or upgrade to 1.30",
        )
    return Finding(title="version", level=Level.FINE, message=text)


def clock(skew_s: float) -> Finding:
    """How far the API server's clock is ahead of ours."""
    message = f"{abs(skew_s):.0f} s {'ahead of' if skew_s > 0 else 'behind'} this machine"
    if abs(skew_s) <= CLOCK_SKEW_S:
        return Finding(title="clock", level=Level.FINE, message=message)
    return Finding(
        title="clock",
        level=Level.ODD,
        message=message,
        remedy="synchronise both with NTP: timeouts are measured by these clocks",
    )


def kind_served(*, served: bool) -> Finding:
    """Whether our own kind of object is known there."""
    if served:
        return Finding(title="CustomResourceDefinition", level=Level.FINE, message=naming.CRD)
    return Finding(
        title="CustomResourceDefinition",
        level=Level.BAD,
        message=f"{naming.CRD} is not installed",
        remedy="kubectl apply --server-side -f deploy/agent/crd.yaml",
    )


def rights(missing: Sequence[Right], asked: int, terms: Terms) -> Finding:
    """Rights of the agent, of `asked` that it needs."""
    if not missing:
        return Finding(title="rights", level=Level.FINE, message=f"all {asked} granted")
    listed = "; ".join(str(right) for right in sorted(missing)[:10])
    more = f" and {len(missing) - 10} more" if len(missing) > 10 else ""
    return Finding(
        title="rights",
        level=Level.BAD,
        message=f"the agent may not: {listed}{more}",
        remedy=remedy(missing, terms),
    )


def nodes(found: Iterable[Node]) -> list[Finding]:
    """What stands out among the nodes."""
    known = list(found)
    ready = sum(1 for node in known if is_ready(node))
    findings = [
        Finding(
            title="nodes",
            level=Level.FINE if ready else Level.BAD,
            message=f"{ready} of {len(known)} ready",
            remedy="" if ready else "no work can run until a node is ready and not cordoned",
        )
    ]
    return findings + [
        Finding(
            title=f"node {node.metadata.name}",
            level=Level.ODD,
            message=f"label {label} promises devices, and the node counts none",
            remedy="look at its device plugin and driver",
        )
        for node in known
        if (label := lacks_devices(node))
    ]


def _version(text: str) -> tuple[int, int] | None:
    major, _, rest = text.removeprefix("v").partition(".")
    minor = rest.partition(".")[0]
    digits = minor[: len(minor) - len(minor.lstrip("0123456789"))]
    return (int(major), int(digits)) if major.isdigit() and digits else None
