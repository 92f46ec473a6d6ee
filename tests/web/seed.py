"""Realistic rows for pages, screenshots and measurements.

    python -m tests.web.seed postgresql://… [--runs N] [--objects FOLDER]

brings an empty database to the schema and fills it: three clusters of which one is silent, a sweep
of two hundred steps under way, a run that failed, one that waits, and a history.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from tests.web.documents import DIGITS, FINETUNE, SWEEP
from tests.web.outputs import decorate
from verderer.core.explain import Reason, Why
from verderer.core.model.ids import make_run_id
from verderer.objects.config import ObjectsConfig
from verderer.objects.store import open_store
from verderer.store.database import Database, Tx, columns
from verderer.store.migrate import migrate
from verderer.usecases.people.passwords import hash_password

GI = 2**30
PASSWORD = "forest-of-dean-1217"
"""Everybody's."""


@dataclass(frozen=True, kw_only=True)
class Try:
    """An attempt to be written."""

    state: str
    cluster: str = "local"
    started: float = 0.0
    """Seconds after the run began."""
    took: float | None = None
    """Seconds; None while it is under way."""
    cause: str | None = None
    exit_code: int | None = None
    signal: int | None = None
    message: str = ""
    node: str = "node-1"


@dataclass(frozen=True, kw_only=True)
class Part:
    """A step to be written."""

    name: str
    state: str
    needs: Sequence[int] = ()
    tries: Sequence[Try] = ()
    template: int = 0
    matrix: dict[str, str] | None = None
    requests: dict[str, int] = field(default_factory=lambda: {"cpu": 2000, "memory": 4 * GI})
    nodes: int = 1
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Sample:
    """A run to be written."""

    name: str
    project: int
    state: str
    parts: Sequence[Part]
    age: timedelta
    document: str = DIGITS
    parameters: dict[str, str] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    actor: str = "user:ana@example.org"


_STEPS = """
    INSERT INTO steps (id, run_id, idx, name, template, matrix, shape_id, state, waits, attempts,
                       failures, note, ready_at, started_at, ended_at)
    SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::int[], $4::text[], $5::smallint[],
        $6::jsonb[], $7::int[], $8::step_state[], $9::int[], $10::smallint[], $11::smallint[],
        $12::text[], $13::timestamptz[], $14::timestamptz[], $15::timestamptz[])
"""
_ATTEMPTS = """
    INSERT INTO attempts (step_id, number, cluster_id, state, revision, node, assigned_at,
                          started_at, ended_at, cause, exit_code, signal, message)
    SELECT * FROM unnest($1::bigint[], $2::smallint[], $3::int[], $4::attempt_state[],
        $5::bigint[], $6::text[], $7::timestamptz[], $8::timestamptz[], $9::timestamptz[],
        $10::end_cause[], $11::int[], $12::smallint[], $13::text[])
"""
_OVER = {"succeeded", "failed", "cancelled", "skipped"}


class Seeder:
    """Writes samples with the tables' own rules kept."""

    def __init__(self, tx: Tx, now: datetime) -> None:
        self._tx = tx
        self._now = now
        self._clusters: dict[str, int] = {}
        self._step = 1_000_000
        self._chance = random.Random(7)

    async def people(self, password_hash: str = "") -> None:
        """An admin, two members, three projects."""
        for email, name, admin in (
            ("admin@example.org", "Admin", True),
            ("ana@example.org", "Ana Lima", False),
            ("wei@example.org", "Wei Chen", False),
        ):
            await self._tx.execute(
                "INSERT INTO users (email, name, platform_admin, password_hash)"
                " VALUES ($1, $2, $3, $4)",
                email,
                name,
                admin,
                password_hash or None,
            )
        for name, title in (("demo", "Demo"), ("llm", "Language models"), ("vision", "Vision")):
            await self._tx.execute(
                "INSERT INTO projects (name, title) VALUES ($1, $2)", name, title
            )
        await self._tx.execute(
            "INSERT INTO project_members SELECT p.id, u.id, 'member' FROM projects p, users u"
            " WHERE u.email = 'ana@example.org' AND p.name IN ('demo', 'vision')"
        )

    async def clusters(self) -> None:
        """One local, one Kubernetes, one that was last heard of four minutes ago."""
        await self._cluster("local", "local", timedelta(seconds=2))
        await self._cluster("proj-a-gpu", "kubernetes", timedelta(seconds=4))
        await self._cluster("proj-b-tpu", "kubernetes", timedelta(minutes=4))
        await self._node("local", "node-1", {"cpu": 16000, "memory": 64 * GI})
        for n in range(6):
            gpu = {"cpu": 96_000, "memory": 1024 * GI, "nvidia.com/gpu": 8000}
            await self._node("proj-a-gpu", f"gpu-{n:02}", gpu, ready=n != 5)
        for n in range(4):
            tpu = {"cpu": 96_000, "memory": 384 * GI, "google.com/tpu": 4000}
            await self._node("proj-b-tpu", f"tpu-{n:02}", tpu)

    async def _cluster(self, name: str, kind: str, silent: timedelta) -> None:
        key = await self._tx.fetchval(
            "INSERT INTO clusters (cluster_id, kind, epoch, agent_version, revision)"
            " VALUES ($1, $2, 3, '0.1.0', 100) RETURNING id",
            name,
            kind,
        )
        self._clusters[name] = key
        await self._tx.execute(
            "INSERT INTO heartbeats VALUES ($1, now() - $2::interval)", key, silent
        )

    async def _node(
        self, cluster: str, name: str, amounts: dict[str, int], *, ready: bool = True
    ) -> None:
        key = self._clusters[cluster]
        await self._tx.execute(
            "INSERT INTO nodes VALUES ($1, $2, $3, $4, $5, $6, $7, now())",
            key,
            name,
            ready,
            amounts,
            {"zone": "a", "pool": "train"},
            self._chance.random(),
            amounts["memory"] // 3,
        )
        for resource, amount in amounts.items() if ready else ():
            await self._tx.execute(
                "INSERT INTO capacity VALUES ($1, $2, $3, $3, $4)"
                " ON CONFLICT (cluster_id, resource) DO UPDATE"
                " SET allocatable = capacity.allocatable + $3,"
                "     reserved = capacity.reserved + $4",
                key,
                resource,
                amount,
                amount * 7 // 8 // 1000 * 1000,
            )

    async def run(self, sample: Sample) -> int:
        """Write one run with its steps, attempts, edges and audit; its id comes back."""
        began = self._now - sample.age
        run = make_run_id(
            unix_ms=int(began.timestamp() * 1000), chance=self._chance.getrandbits(22)
        )
        digest = hashlib.sha256(sample.document.encode()).digest()
        await self._tx.execute(
            "INSERT INTO documents VALUES ($1, $2) ON CONFLICT DO NOTHING", digest, sample.document
        )
        await self._insert_run(run, sample, digest, began)
        await self._insert_steps(run, sample, began)
        await self._tx.execute(
            "INSERT INTO run_counters VALUES ($1, $2, 0, 1) ON CONFLICT"
            " (project_id, state, shard) DO UPDATE SET n = run_counters.n + 1",
            sample.project,
            sample.state,
        )
        await self._tx.execute(
            "INSERT INTO audit (at, actor, action, project_id, run_id, origin)"
            " VALUES ($1, $2, 'run.submitted', $3, $4, 'cli')",
            began,
            sample.actor,
            sample.project,
            run,
        )
        return run

    async def _insert_run(self, run: int, sample: Sample, digest: bytes, began: datetime) -> None:
        ends = [_end(began, part) for part in sample.parts]
        over = sample.state in _OVER
        await self._tx.execute(
            "INSERT INTO runs (id, project_id, name, labels, document, parameters, state, steps,"
            " open, failed, actor, created_at, started_at, ended_at)"
            " VALUES ($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11,$12,$13,$14)",
            run,
            sample.project,
            sample.name,
            sample.labels,
            digest,
            sample.parameters,
            sample.state,
            len(sample.parts),
            sum(part.state not in _OVER for part in sample.parts),
            sum(part.state == "failed" for part in sample.parts),
            sample.actor,
            began,
            began + timedelta(seconds=1) if sample.state != "queued" else None,
            max((e for e in ends if e), default=began + timedelta(seconds=9)) if over else None,
        )

    async def _insert_steps(self, run: int, sample: Sample, began: datetime) -> None:
        ids = range(self._step, self._step + len(sample.parts))
        self._step += 1000 * (1 + len(sample.parts) // 1000)
        steps, attempts, edges, waiting = [], [], [], []
        for idx, (key, part) in enumerate(zip(ids, sample.parts, strict=True)):
            shape = await self._shape(part)
            steps.append(_step_row(key, run, idx, part, shape, began, sample.parts))
            attempts += [self._try_row(key, n, t, began) for n, t in enumerate(part.tries, 1)]
            edges += [(ids[need], key) for need in part.needs]
            if part.state == "ready":
                waiting.append((key, run, sample.project, shape, began))
        await self._tx.execute(_STEPS, *columns(steps, 15))
        await self._tx.execute(_ATTEMPTS, *columns(attempts, 13))
        await self._tx.executemany("INSERT INTO needs VALUES ($1, $2)", edges)
        await self._tx.executemany(
            "INSERT INTO queue (step_id, run_id, project_id, shape_id, ready_at)"
            " VALUES ($1, $2, $3, $4, $5)",
            waiting,
        )

    async def _shape(self, part: Part) -> int:
        text = f"{sorted(part.requests.items())}{part.nodes}"
        key = await self._tx.fetchval(
            "INSERT INTO shapes (digest, requests, nodes) VALUES ($1, $2, $3)"
            " ON CONFLICT (digest) DO UPDATE SET nodes = excluded.nodes RETURNING id",
            hashlib.sha256(text.encode()).digest(),
            part.requests,
            part.nodes,
        )
        return int(key)

    def _try_row(self, key: int, number: int, one: Try, began: datetime) -> tuple[object, ...]:
        at = began + timedelta(seconds=one.started)
        starting = one.state in {"assigned", "starting"}
        return (
            key,
            number,
            self._clusters[one.cluster],
            one.state,
            100,
            one.node,
            at - timedelta(seconds=0.4),
            None if starting else at,
            at + timedelta(seconds=one.took) if one.took is not None else None,
            one.cause,
            one.exit_code,
            one.signal,
            one.message,
        )

    async def hold(self, project: int, requests: dict[str, int], reasons: list[object]) -> None:
        """Say why steps of one shape wait."""
        shape = await self._shape(Part(name="", state="ready", requests=requests))
        await self._tx.execute(
            "INSERT INTO lane_holds (project_id, shape_id, resource_group_id, reasons)"
            " VALUES ($1, $2, 1, $3)",
            project,
            shape,
            reasons,
        )


def _end(began: datetime, part: Part) -> datetime | None:
    if part.state not in _OVER:
        return None
    last = part.tries[-1] if part.tries else None
    seconds = last.started + (last.took or 0) if last else 2
    return began + timedelta(seconds=seconds)


def _step_row(
    key: int, run: int, idx: int, part: Part, shape: int, began: datetime, parts: Sequence[Part]
) -> tuple[object, ...]:
    waits = sum(parts[need].state not in _OVER for need in part.needs)
    first = part.tries[0].started if part.tries else None
    return (
        key,
        run,
        idx,
        part.name,
        part.template,
        part.matrix,
        shape,
        part.state,
        waits if part.state == "blocked" else 0,
        len(part.tries),
        sum(t.state in {"failed", "lost"} for t in part.tries),
        part.note,
        began if part.state != "blocked" else None,
        began + timedelta(seconds=first) if first is not None else None,
        _end(began, part),
    )


def ok(started: float, took: float, **more: object) -> Try:
    """An attempt that succeeded."""
    return Try(
        state="succeeded",
        started=started,
        took=took,
        cause="exit",
        exit_code=0,
        **more,  # type: ignore[arg-type]
    )


def digits(state: str = "succeeded") -> list[Part]:
    """Five steps: two trainings side by side, and what follows from them."""
    last = state == "succeeded"
    broken = Try(
        state="failed",
        started=22,
        took=13.2,
        cause="exit",
        exit_code=1,
        message="ValueError: Found input variables with inconsistent numbers of samples",
    )
    return [
        Part(name="fetch", state="succeeded", tries=[ok(1, 4.2)]),
        Part(name="features", state="succeeded", needs=[0], tries=[ok(6, 14.8)], template=1),
        Part(
            name="train",
            state="succeeded" if last else "failed",
            needs=[1],
            template=2,
            note="" if last else "exited with code 1: " + broken.message,
            tries=[broken, ok(41, 52)] if last else [broken, _later(broken, 41)],
        ),
        Part(name="baseline", state="succeeded", needs=[1], tries=[ok(22, 31)], template=3),
        Part(
            name="evaluate",
            state="succeeded" if last else "skipped",
            needs=[2, 3],
            template=4,
            note="" if last else "train failed",
            tries=[ok(94, 8.1)] if last else [],
        ),
    ]


def _later(one: Try, started: float) -> Try:
    return Try(**{**one.__dict__, "started": started})


def sweep(points: int = 198) -> list[Part]:
    """A preparation, very many trainings in every state, and a choice at the end."""
    parts = [Part(name="prepare", state="succeeded", tries=[ok(1, 22)])]
    for n in range(points):
        at = 25 + 40 * (n // 12)
        matrix = {"lr": f"{0.001 * (1 + n // 18):.3f}", "seed": str(n % 18)}
        state, tries = "succeeded", [ok(at, 20 + n * 7 % 31)]
        if n in {17, 61}:
            state = "failed"
            tries = [
                Try(state="failed", started=at, took=9, cause="oom", message="limit 4 GiB"),
                Try(state="failed", started=at + 12, took=9, cause="oom", message="limit 4 GiB"),
            ]
        if n >= 110:
            state, tries = "active", [Try(state="running", started=at)]
        if n >= 120:
            state, tries = "active", [Try(state="starting", started=at)]
        if n >= 124:
            state, tries = "ready", []
        parts.append(
            Part(
                name=f"train-{n}",
                state=state,
                tries=tries,
                needs=[0],
                template=1,
                matrix=matrix,
            )
        )
    parts.append(Part(name="choose", state="blocked", needs=range(1, points + 1), template=2))
    return parts


async def fill(
    tx: Tx, *, now: datetime, password_hash: str = "", history: int = 120
) -> dict[str, int]:
    """Write everything; the ids of the runs worth looking at come back by name."""
    seeder = Seeder(tx, now)
    await seeder.people(password_hash)
    await seeder.clusters()
    project = {r["name"]: r["id"] for r in await tx.fetch("SELECT id, name FROM projects")}
    await _history(seeder, project, history)
    made = {sample.name: await seeder.run(sample) for sample in _samples(project)}
    await seeder.hold(
        project["llm"],
        {"cpu": 32_000, "memory": 256 * GI, "nvidia.com/gpu": 8000},
        [
            Reason(
                why=Why.CAPACITY,
                cluster="proj-a-gpu",
                resource="nvidia.com/gpu",
                asked=8000,
                free=5000,
                total=40_000,
            ).as_dict(),
            Reason(why=Why.OFFLINE, cluster="proj-b-tpu", seconds=240).as_dict(),
            Reason(
                why=Why.NO_SUCH_RESOURCE, cluster="local", resource="nvidia.com/gpu", asked=8000
            ).as_dict(),
        ],
    )
    return made


async def _history(seeder: Seeder, project: dict[str, int], count: int) -> None:
    for n in range(count, 0, -1):
        state = "failed" if n % 9 == 4 else "succeeded"
        await seeder.run(
            Sample(
                name=("digits", "nightly-eval", "tokenise", "embed-images")[n % 4],
                project=list(project.values())[n % len(project)],
                state=state,
                parts=digits(state),
                age=timedelta(hours=3 * n, minutes=n * 7 % 60),
                labels={"team": ("vision", "nlp")[n % 2]},
                actor=("user:ana@example.org", "user:wei@example.org")[n % 2],
            )
        )


def _samples(project: dict[str, int]) -> Iterable[Sample]:
    gpu = {"cpu": 32_000, "memory": 256 * GI, "nvidia.com/gpu": 8000}
    yield Sample(
        name="lr-sweep",
        project=project["vision"],
        state="running",
        parts=sweep(),
        age=timedelta(minutes=7),
        document=SWEEP,
        parameters={"epochs": "12", "dataset": "digits"},
        labels={"team": "vision"},
    )
    yield Sample(
        name="nightly-eval",
        project=project["demo"],
        state="failed",
        parts=digits("failed"),
        age=timedelta(minutes=51),
        labels={"team": "nlp"},
    )
    yield Sample(
        name="digits",
        project=project["demo"],
        state="succeeded",
        parts=digits(),
        age=timedelta(hours=2),
        parameters={"epochs": "30"},
        labels={"team": "vision"},
    )
    yield Sample(
        name="llm-finetune",
        project=project["llm"],
        state="running",
        document=FINETUNE,
        age=timedelta(minutes=12),
        labels={"team": "nlp"},
        actor="user:wei@example.org",
        parts=[
            Part(name="tokenise", state="succeeded", tries=[ok(1, 96)]),
            Part(name="train", state="ready", needs=[0], template=1, requests=gpu),
            Part(name="evaluate", state="blocked", needs=[1], template=2),
            Part(name="publish", state="blocked", needs=[2], template=3),
        ],
    )
    yield Sample(
        name="pretrain-tpu",
        project=project["llm"],
        state="running",
        document=FINETUNE,
        age=timedelta(hours=6),
        labels={"team": "nlp"},
        actor="user:wei@example.org",
        parts=[
            Part(
                name="train",
                state="active",
                requests={"cpu": 64_000, "memory": 200 * GI, "google.com/tpu": 4000},
                tries=[Try(state="running", cluster="proj-b-tpu", started=20, node="tpu-00")],
            ),
            Part(name="publish", state="blocked", needs=[0], template=1),
        ],
    )
    yield Sample(
        name="embed-images",
        project=project["vision"],
        state="cancelled",
        age=timedelta(minutes=31),
        parts=[
            Part(
                name="embed",
                state="cancelled",
                tries=[Try(state="cancelled", started=2, took=70, cause="cancelled")],
            ),
            Part(name="index", state="cancelled", needs=[0], template=1),
        ],
    )


async def main(dsn: str, history: int, objects: str) -> None:
    """Migrate and fill."""
    await migrate(dsn)
    database = await Database.open(dsn)
    hashed = await hash_password(PASSWORD)
    async with database.transaction() as tx:
        now = datetime.now(UTC)
        made = await fill(tx, now=now, password_hash=hashed, history=history)
        if objects:
            await decorate(tx, open_store(ObjectsConfig(url=objects)), made, now=now)
    await database.close()
    for name, run in made.items():
        print(f"{name:16} {run}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dsn")
    parser.add_argument("--runs", type=int, default=120)
    parser.add_argument("--objects", default="", help="folder of the object store, for output")
    given = parser.parse_args()
    asyncio.run(main(given.dsn, given.runs, given.objects))
