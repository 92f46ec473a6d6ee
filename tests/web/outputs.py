"""Output, artifacts and curves for seeded runs."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from verderer.core.model.attempt import AttemptKey
from verderer.core.model.places import log_prefix, output_key
from verderer.objects.logs import Chunk, Gap, Mark, encode_chunk
from verderer.objects.store import ObjectStore
from verderer.store.database import Tx

TRAINING = (
    "\x1b[32mINFO\x1b[0m epoch {n} loss={loss:.4f} acc={acc:.3f}",
    "\x1b[2mstep {n} lr=0.001 tokens/s=18231 gpu=97%\x1b[0m",
    "loaded shard {n:05d} of 02048 <pictures & labels>",
    "\x1b[33mWARN\x1b[0m gradient norm {loss:.2f} clipped",
)
TRACEBACK = """\
Traceback (most recent call last):
  File "/work/train.py", line 88, in <module>
    model.fit(x, y)
\x1b[31mValueError: Found input variables with inconsistent numbers of samples: [1797, 1796]\x1b[0m
"""


def training(lines: int, *, broken: bool = False) -> bytes:
    """Lines like those of a training, with a traceback at the end when it is broken."""
    text = []
    for n in range(lines):
        loss = 2.3 * math.exp(-n / max(lines / 4, 1)) + 0.05
        line = TRAINING[(n * 7 // 3) % len(TRAINING)]
        text.append(line.format(n=n, loss=loss, acc=1 - loss / 2.6))
    body = "\n".join(text) + "\n"
    return (body + (TRACEBACK if broken else "")).encode()


async def write_log(
    tx: Tx, store: ObjectStore, key: AttemptKey, output: bytes, *, at: datetime, gap: bool = False
) -> None:
    """Store output in chunks of 256 KiB, the way an agent does."""
    row = await tx.fetchrow(
        "SELECT s.id, r.project_id FROM steps s JOIN runs r ON r.id = s.run_id"
        " WHERE s.run_id = $1 AND s.idx = $2",
        key.run,
        key.step,
    )
    assert row is not None
    size = 256 * 1024
    unix_ms = int(at.timestamp() * 1000)
    pieces = [output[n : n + size] for n in range(0, len(output), size)] or [b""]
    for sequence, data in enumerate(pieces):
        first = sequence * size
        marks = tuple(
            Mark(first + o, unix_ms + (first + o) // 10) for o in range(0, len(data), 4096)
        )
        gaps = (Gap(first + 100, 5000, "the disk was full"),) if gap and sequence == 0 else ()
        chunk = Chunk(first, data, marks, gaps)
        path = f"{log_prefix(row['project_id'], key)}0/{sequence:08d}"
        await store.put(path, encode_chunk(chunk))
        await tx.execute(
            "INSERT INTO log_chunks VALUES ($1,$2,0,$3,$4,$5,$6,$7,$8,$8,true,$9)",
            row["id"],
            key.number,
            sequence,
            first,
            len(data),
            chunk.lines,
            5000 if gaps else 0,
            at,
            sequence == len(pieces) - 1,
        )


async def write_artifact(
    tx: Tx, store: ObjectStore, key: AttemptKey, name: str, body: bytes | dict[str, bytes]
) -> None:
    """Store one file, or a folder of files by name."""
    row = await tx.fetchrow(
        "SELECT s.id, r.project_id FROM steps s JOIN runs r ON r.id = s.run_id"
        " WHERE s.run_id = $1 AND s.idx = $2",
        key.run,
        key.step,
    )
    assert row is not None
    path = output_key(row["project_id"], key, name)
    files = {f"{path}/{file}": one for file, one in body.items()} if isinstance(body, dict) else {}
    for place, content in (files or {path: body}).items():
        await store.put(place, content)
    await tx.execute(
        "INSERT INTO artifacts (step_id, number, name, key, size, sha256, files)"
        " VALUES ($1,$2,$3,$4,$5,$6,$7)",
        row["id"],
        key.number,
        name,
        path,
        sum(map(len, files.values())) if files else len(body),
        "3f" * 32,
        len(files) or 1,
    )


def curve(points: int, seed: int, *, start: float, end: float) -> Sequence[float]:
    """A loss that falls, with noise."""
    chance = random.Random(seed)
    span = start - end
    return [
        end + span * math.exp(-4 * n / points) + chance.gauss(0, span / 60) for n in range(points)
    ]


def uid(n: int) -> UUID:
    """A different one for each n."""
    return UUID(int=n + (4 << 76))


async def write_curves(tx: Tx, run: int, idx: int, project: int, *, at: datetime, n: int) -> None:
    """One tracked run of a step with three metrics and two parameters."""
    unix_ms = int(at.timestamp() * 1000)
    await tx.execute(
        "INSERT INTO tracking_experiments VALUES ($1, $2, 'digits', $3, $3) ON CONFLICT DO NOTHING",
        project,
        project,
        unix_ms,
    )
    tracked = await tx.fetchval(
        "INSERT INTO tracking_runs (uid, experiment_id, project_id, name, user_name, status,"
        " start_ms, run_id, step_idx, attempt)"
        " VALUES ($1, $2::int, $2::int, $3, 'ana', 'FINISHED', $4, $5, $6, 1) RETURNING id",
        uid(1000 * n + idx),
        project,
        f"bold-oak-{n}",
        unix_ms,
        run,
        idx,
    )
    for name, value in (("lr", f"{0.001 * n:.3f}"), ("optimiser", "adamw")):
        await tx.execute("INSERT INTO tracking_params VALUES ($1, $2, $3)", tracked, name, value)
    for key, start, end in (("loss", 2.3, 0.1), ("val_loss", 2.4, 0.2), ("accuracy", 0.1, 0.97)):
        values = curve(120, n * 7 + len(key), start=start, end=end)
        series = await tx.fetchval(
            "INSERT INTO tracking_series (tracked_id, key, step, at_ms, value)"
            " VALUES ($1, $2, $3, $4, $5) RETURNING id",
            tracked,
            key,
            len(values) - 1,
            unix_ms,
            values[-1],
        )
        await tx.execute(
            "INSERT INTO tracking_points VALUES ($1, $2, $3, $4)",
            series,
            list(range(len(values))),
            [unix_ms + 500 * i for i in range(len(values))],
            list(values),
        )


async def decorate(tx: Tx, store: ObjectStore, made: dict[str, int], *, now: datetime) -> None:
    """Give the runs of `seed.fill` their output, artifacts and curves."""
    digits, failed, sweep = made["digits"], made["nightly-eval"], made["lr-sweep"]
    project = await tx.fetchval("SELECT project_id FROM runs WHERE id = $1", digits)
    for idx, lines in ((0, 40), (1, 300), (2, 100_000), (3, 2_000), (4, 60)):
        number = 2 if idx == 2 else 1
        key = AttemptKey(digits, idx, number)
        await write_log(tx, store, key, training(lines), at=now, gap=idx == 3)
    for number in (1, 2):
        output = training(800, broken=True)
        await write_log(tx, store, AttemptKey(failed, 2, number), output, at=now)
    await write_log(tx, store, AttemptKey(sweep, 111, 1), training(500), at=now)
    await write_artifact(tx, store, AttemptKey(digits, 0, 1), "pictures", b"x" * 1_482_311)
    await write_artifact(tx, store, AttemptKey(digits, 2, 2), "model", b"y" * 48_120)
    await write_artifact(tx, store, AttemptKey(digits, 4, 1), "report.json", b'{"accuracy": 0.97}')
    plots = {"roc.svg": b"<svg/>" * 900, "by class/0.svg": b"<svg/>" * 300}
    await write_artifact(tx, store, AttemptKey(digits, 4, 1), "plots", plots)
    await write_curves(tx, digits, 2, project, at=now, n=1)
    await write_curves(tx, digits, 3, project, at=now, n=2)
