"""Orders: a plan becomes attempts, as far as it still holds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from verderer.core.model.resources import Resources
from verderer.store.database import Tx, columns

_FENCE = """
    SELECT 1 FROM leases
     WHERE name = $1 AND epoch = $2 AND expires_at > now()
       FOR KEY SHARE
"""
_RAISE = """
    UPDATE clusters SET revision = revision + 1
     WHERE id IN (SELECT id FROM clusters WHERE id = ANY($1) AND enabled
                   ORDER BY id FOR NO KEY UPDATE)
 RETURNING id, revision
"""
_FREE = """
    SELECT cluster_id, resource, allocatable - reserved AS free
      FROM capacity WHERE cluster_id = ANY($1)
     ORDER BY cluster_id, resource FOR NO KEY UPDATE
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
     RETURNING q.step_id, q.run_id, q.project_id, w.cluster_id)
    UPDATE steps AS s
       SET state = 'active', attempts = s.attempts + 1
      FROM taken AS t
     WHERE s.id = t.step_id AND CASE WHEN s.state = 'ready' THEN true END
 RETURNING s.id, s.run_id, s.idx, s.attempts, t.project_id, t.cluster_id
"""
_ADD = """
    INSERT INTO attempts (step_id, number, cluster_id, state, revision)
    SELECT step_id, number, cluster_id, 'assigned', revision
      FROM unnest($1::bigint[], $2::smallint[], $3::int[], $4::bigint[])
        AS u (step_id, number, cluster_id, revision)
"""
_RESERVE = """
    UPDATE capacity AS c SET reserved = c.reserved + u.amount
      FROM unnest($1::int[], $2::text[], $3::bigint[]) AS u (cluster_id, resource, amount)
     WHERE c.cluster_id = u.cluster_id AND c.resource = u.resource
"""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A step, where it should run, and what it asks for there in all."""

    step: int
    cluster: int
    asks: Resources


@dataclass(frozen=True, slots=True)
class Ordered:
    """An attempt that now exists."""

    step: int
    run: int
    idx: int
    number: int
    project: int
    cluster: int


@dataclass(slots=True)
class Applied:
    """What became of a plan."""

    ordered: list[Ordered] = field(default_factory=list)
    no_room: set[int] = field(default_factory=set)
    """Step ids that no longer fit; they stay in the queue."""


async def holds_lease(tx: Tx, name: str, epoch: int) -> bool:
    """Whether the lease is still ours; nobody can take it over and act before we commit."""
    return await tx.fetchval(_FENCE, name, epoch) is not None


async def apply(tx: Tx, plan: Sequence[Proposal]) -> Applied:
    """Write attempts for the part of `plan` that holds against the rows of now.

    Steps that left the queue meanwhile, or are being cancelled at this moment, are passed over.
    Nothing is reserved beyond what a cluster can give.
    """
    revisions = {
        row["id"]: row["revision"]
        for row in await tx.fetch(_RAISE, sorted({p.cluster for p in plan}))
    }
    fitting, no_room = await _trim(tx, [p for p in plan if p.cluster in revisions])
    applied = Applied(no_room=no_room | {p.step for p in plan if p.cluster not in revisions})
    if not fitting:
        return applied
    asks = {p.step: p.asks for p in fitting}
    rows = await tx.fetch(_TAKE, *columns([(p.step, p.cluster) for p in fitting], 2))
    applied.ordered = [Ordered(*row.values()) for row in rows]
    new = [(o.step, o.number, o.cluster, revisions[o.cluster]) for o in applied.ordered]
    await tx.execute(_ADD, *columns(new, 4))
    await reserve(tx, [(o.cluster, asks[o.step]) for o in applied.ordered])
    return applied


async def _trim(tx: Tx, plan: Sequence[Proposal]) -> tuple[list[Proposal], set[int]]:
    free: dict[tuple[int, str], int] = {
        (row["cluster_id"], row["resource"]): row["free"]
        for row in await tx.fetch(_FREE, sorted({p.cluster for p in plan}))
    }
    fitting: list[Proposal] = []
    no_room: set[int] = set()
    for p in plan:
        keys = [((p.cluster, resource), amount) for resource, amount in p.asks.items()]
        if all(free.get(key, 0) >= amount for key, amount in keys):
            for key, amount in keys:
                free[key] -= amount
            fitting.append(p)
        else:
            no_room.add(p.step)
    return fitting, no_room


async def reserve(tx: Tx, changes: Sequence[tuple[int, Resources]], *, sign: int = 1) -> None:
    """Add (or with `sign=-1` give back) amounts to what is reserved, by cluster id."""
    totals: defaultdict[tuple[int, str], int] = defaultdict(int)
    for cluster, amounts in changes:
        for resource, amount in amounts.items():
            totals[cluster, resource] += sign * amount
    await _add_totals(tx, totals)


async def _add_totals(tx: Tx, totals: Mapping[tuple[int, str], int]) -> None:
    rows = [(cluster, resource, n) for (cluster, resource), n in sorted(totals.items()) if n]
    if rows:
        await tx.execute(_RESERVE, *columns(rows, 3))
