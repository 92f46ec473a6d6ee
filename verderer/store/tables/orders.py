"""Orders: a plan becomes attempts, as far as it still holds."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from verderer.core.errors import Conflict
from verderer.core.model.resources import Resources
from verderer.store.database import Tx, columns
from verderer.store.tables.governed import ledger

Key = TypeVar("Key")

# In one trip: that the lease is still ours, and nobody can take it over and act before we commit;
# the clusters' new revisions; and what is free there, which `take_room` makes certain.
_OPEN = """
    WITH fence AS MATERIALIZED (
        SELECT 1 FROM leases
         WHERE name = $1 AND epoch = $2 AND expires_at > now()
           FOR KEY SHARE),
    raised AS (
        UPDATE clusters SET revision = revision + 1
         WHERE EXISTS (SELECT FROM fence)
           AND id IN (SELECT id FROM clusters WHERE id = ANY($3) AND enabled
                       ORDER BY id FOR NO KEY UPDATE)
     RETURNING id, revision)
    SELECT r.id, r.revision, c.resource, c.allocatable - c.reserved AS free
      FROM fence LEFT JOIN raised AS r ON true LEFT JOIN capacity AS c ON c.cluster_id = r.id
"""
# CASE keeps the planner from guessing, as in `steps.py`.
_TAKE = """
    WITH wanted AS (
        SELECT q.step_id, u.cluster_id
          FROM unnest($1::bigint[], $2::int[]) AS u (step_id, cluster_id)
          JOIN queue AS q USING (step_id)
           FOR UPDATE OF q SKIP LOCKED),
    taken AS (
        DELETE FROM queue AS q USING wanted AS w
         WHERE q.step_id = w.step_id
     RETURNING q.step_id, q.run_id, q.project_id, q.resource_group_id, w.cluster_id)
    UPDATE steps AS s
       SET state = 'active', attempts = s.attempts + 1
      FROM taken AS t
     WHERE s.id = t.step_id AND CASE WHEN s.state = 'ready' THEN true END
 RETURNING s.id, s.run_id, s.idx, s.attempts, t.project_id, t.cluster_id,
           t.resource_group_id
"""
_ADDED = ("step_id", "number", "cluster_id", "state", "revision", "resource_group_id")
# Everybody takes these rows in one order. A row that has no room for it is left as it is.
_RESERVE = """
    WITH held AS MATERIALIZED (
        SELECT c.cluster_id, c.resource, u.amount
          FROM unnest($1::int[], $2::text[], $3::bigint[]) AS u (cluster_id, resource, amount)
          JOIN capacity AS c ON c.cluster_id = u.cluster_id AND c.resource = u.resource
         ORDER BY c.cluster_id, c.resource FOR NO KEY UPDATE OF c)
    UPDATE capacity AS c SET reserved = c.reserved + h.amount
      FROM held AS h
     WHERE c.cluster_id = h.cluster_id AND c.resource = h.resource
       AND CASE WHEN h.amount < 0 THEN true ELSE c.reserved + h.amount <= c.allocatable END
"""


class Proposal(NamedTuple):
    """A step, where it should run, and what it asks for there in all."""

    step: int
    cluster: int
    group: int
    asks: Resources


class Ordered(NamedTuple):
    """An attempt that now exists."""

    step: int
    run: int
    idx: int
    number: int
    project: int
    cluster: int
    group: int


@dataclass(slots=True)
class Applied:
    """What became of a plan. It holds once its room is taken, see `take_room`."""

    ordered: list[Ordered] = field(default_factory=list)
    no_room: set[int] = field(default_factory=set)
    """Step ids that no longer fit; they stay in the queue."""
    asks: dict[tuple[int, str], int] = field(default_factory=dict)
    """What `ordered` asks for, by cluster and resource."""
    booked: ledger.Amounts = field(default_factory=dict)
    """The same, by who uses it."""


async def apply(tx: Tx, plan: Sequence[Proposal], *, lease: str, epoch: int, rules: int) -> Applied:
    """Write attempts for the part of `plan` that holds against the rows of now.

    Steps that left the queue meanwhile, or are being cancelled at this moment, are passed over.
    Nothing is ordered beyond what a cluster can give or a quota allows; `take_room` makes that
    certain. `rules` is the version of those that the plan was made under.

    Raises:
        Conflict: `lease_lost`: the lease is no longer ours under this epoch; nothing was written.
            `no_room`: the rules have changed since; nothing was written either.
    """
    groups = await ledger.open_groups(tx, sorted({p.group for p in plan}))
    if groups.version != rules:
        raise Conflict("the rules have changed a moment ago", code="no_room")
    opened = await tx.fetch(_OPEN, lease, epoch, sorted({p.cluster for p in plan}))
    if not opened:
        raise Conflict("another scheduler leads now", code="lease_lost")
    revisions = {row["id"]: row["revision"] for row in opened}
    free = {(row["id"], row["resource"]): row["free"] for row in opened}
    free |= {_account(group, name): left for (group, name), left in groups.free.items()}
    fitting, no_room = _trim(free, [p for p in plan if p.cluster in revisions])
    applied = Applied(no_room=no_room | {p.step for p in plan if p.cluster not in revisions})
    if not fitting:
        return applied
    asks = {p.step: p.asks for p in fitting}
    rows = await tx.fetch(_TAKE, *columns([(p.step, p.cluster) for p in fitting], 2))
    applied.ordered = [Ordered(*row) for row in rows]
    new = [
        (o.step, o.number, o.cluster, "assigned", revisions[o.cluster], o.group)
        for o in applied.ordered
    ]
    await tx.copy_records_to_table("attempts", records=new, columns=_ADDED)
    applied.asks = _totals((o.cluster, asks[o.step]) for o in applied.ordered)
    applied.booked = _totals(
        (ledger.Holder(o.group, o.project), asks[o.step]) for o in applied.ordered
    )
    return applied


async def take_room(tx: Tx, applied: Applied) -> None:
    """Reserve what the orders ask for: the last thing before the commit.

    Whoever gives room back waits for whoever holds these rows, so they are held for a moment only.

    Raises:
        Conflict: `no_room`: a cluster or a quota has shrunk since `apply` looked; give up the
            transaction.
    """
    if await _add_totals(tx, applied.asks) < sum(1 for n in applied.asks.values() if n):
        raise Conflict("a cluster gives less than a moment ago", code="no_room")
    await ledger.take(tx, applied.booked)


def _trim(
    free: dict[tuple[int, str], int], plan: Sequence[Proposal]
) -> tuple[list[Proposal], set[int]]:
    fitting: list[Proposal] = []
    no_room: set[int] = set()
    for p in plan:
        keys = [((p.cluster, resource), amount) for resource, amount in p.asks.items()]
        bounded = [(_account(p.group, resource), amount) for resource, amount in p.asks.items()]
        keys += [(key, amount) for key, amount in bounded if key in free]
        for key, amount in keys:
            if free.get(key, 0) < amount:
                no_room.add(p.step)
                break
        else:
            for key, amount in keys:
                free[key] -= amount
            fitting.append(p)
    return fitting, no_room


class Return(NamedTuple):
    """What an attempt that is over had reserved."""

    group: int | None
    """None: it was ordered before there were groups."""
    project: int
    amounts: Resources


async def give_room(tx: Tx, cluster: int, returns: Sequence[Return]) -> None:
    """Give back what was reserved on a cluster: the last thing before the commit."""
    totals = _totals((cluster, each.amounts) for each in returns)
    await _add_totals(tx, {key: -n for key, n in totals.items()})
    held = ((ledger.Holder(r.group, r.project), r.amounts) for r in returns if r.group)
    await ledger.give(tx, _totals(held))


def _account(group: int, resource: str) -> tuple[int, str]:
    """Beside the numbers of clusters, which are above zero."""
    return -group, resource


def _totals(changes: Iterable[tuple[Key, Resources]]) -> dict[tuple[Key, str], int]:
    totals: defaultdict[tuple[Key, str], int] = defaultdict(int)
    for (key, amounts), times in Counter(changes).items():
        for resource, amount in amounts.items():
            totals[key, resource] += times * amount
    return totals


async def _add_totals(tx: Tx, totals: Mapping[tuple[int, str], int]) -> int:
    """Return how many rows were changed."""
    rows = [(cluster, resource, n) for (cluster, resource), n in sorted(totals.items()) if n]
    if not rows:
        return 0
    status: str = await tx.execute(_RESERVE, *columns(rows, 3))
    return int(status.rpartition(" ")[2])
