"""One cluster on the screen: its checks, capacity, nodes and the reader's own steps."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from verderer.cli.screen.printing import print_facts, print_table
from verderer.cli.screen.tables import Cell, Column
from verderer.cli.screen.terminal import Tone, clean, look, paint
from verderer.cli.screen.words import ago, quantity, size

if TYPE_CHECKING:
    from verderer.wire.users import ClusterDetailOut


def print_detail(found: ClusterDetailOut) -> None:
    now = datetime.now(UTC)
    print_facts(
        [
            ("cluster", found.id),
            ("kind", found.kind),
            ("state", Cell(*look(found.state))),
            ("heard", ago(found.seen_at, now)),
            ("agent", found.agent_version),
        ]
    )
    _print_checks(found)
    print()
    print_table(
        [
            Column(title="RESOURCE", shrinks=True),
            Column(title="FREE", right=True),
            Column(title="RESERVED", right=True, rank=1),
            Column(title="TOTAL", right=True),
            Column(title="LARGEST NODE", right=True, rank=2),
        ],
        [
            [
                c.resource,
                *(quantity(v, c.resource) for v in (c.free, c.reserved, c.total, c.largest)),
            ]
            for c in found.capacity
        ],
        empty="No node of it has reported anything yet.",
    )
    print()
    print_table(
        [
            Column(title="NODE", shrinks=True),
            Column(title="STATE"),
            Column(title="CAPACITY", shrinks=True, rank=1),
            Column(title="CPU", right=True, rank=2),
            Column(title="MEMORY FREE", right=True, rank=3),
        ],
        [
            [
                node.name,
                Cell(*look("ready" if node.ready else "not ready")),
                ", ".join(f"{quantity(v, k)} {k}" for k, v in node.capacity.items()),
                "" if node.cpu_load is None else f"{node.cpu_load:.0%}",
                size(node.memory_free),
            ]
            for node in found.node_list
        ],
        empty="No nodes.",
    )
    if not found.live:
        return
    print()
    print_table(
        [
            Column(title="RUN"),
            Column(title="STEP", shrinks=True),
            Column(title="STATE"),
            Column(title="NODE", shrinks=True, rank=1),
            Column(title="SINCE", right=True, rank=2),
        ],
        [
            [one.run, one.step, Cell(*look(one.state)), one.node, ago(one.started_at, now)]
            for one in found.live
        ],
        empty="",
    )


def _print_checks(found: ClusterDetailOut) -> None:
    """A line each, with what to do about those that did not pass."""
    if not found.checks:
        return
    print()
    longest = max(len(one.name) for one in found.checks)
    for one in found.checks:
        word, tone = look(one.level)
        print(
            f"{paint(word.ljust(9), tone)}  {clean(one.name).ljust(longest)}  {clean(one.message)}"
        )
        if one.level != "pass":
            for line in one.remedy.splitlines():
                print(f"{' ' * (longest + 13)}{paint('→', Tone.BUSY)} {clean(line)}")
