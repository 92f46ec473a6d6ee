"""Output of one step through the real local agent, until the last byte is stored and known."""

from __future__ import annotations

import asyncio
import json
import random
import time
from pathlib import Path

from bench.bench import Bench
from bench.figures import at_least
from bench.load.documents import Single
from bench.load.http import Connection
from bench.platform.platform import PROJECT
from verderer.core.model.ids import parse_run_id

NAME = "logs of one step through one agent"
_STORED = """
    SELECT coalesce(sum(c.size), 0)::bigint AS size, coalesce(sum(c.lost), 0)::bigint AS lost,
           coalesce(bool_or(c.complete), false) AS complete,
           extract(epoch FROM clock_timestamp() - min(a.started_at))::float8 AS seconds
      FROM steps s JOIN attempts a ON a.step_id = s.id
      LEFT JOIN log_chunks c ON c.step_id = s.id
     WHERE s.run_id = $1
"""
_PIECE_MB = 10


async def run(bench: Bench) -> None:
    platform = bench.platform
    await platform.wipe()
    await platform.start(clusters=0)
    await platform.start_local()
    piece = platform.roles.folder / "lines.txt"
    piece.write_text(_lines())
    piece.chmod(0o644)
    times = bench.scale.log_mb // _PIECE_MB
    document = _document(piece, times)
    with bench.meter() as meter:
        repeats = range(min(3, bench.scale.repeats))
        values = [await _once(bench, document, number, times) for number in repeats]
    note = f"{times * _PIECE_MB} MB of text lines of {len(_lines()) // _count():.0f} bytes"
    goal = at_least(50, "Loki 4 MB/s a tenant")
    bench.figure(NAME, "MB/s raw", values, meter, goal=goal, note=note)


async def _once(bench: Bench, document: str, number: int, times: int) -> float:
    platform = bench.platform
    connection = await Connection.open(platform.roles.port)
    asked = Single(platform.token, PROJECT, document)(number)
    status, body = await connection.exchange(asked)
    connection.close()
    if status >= 300:
        raise RuntimeError(f"{status} {body[:300]!r}")
    run = parse_run_id(json.loads(body)["id"])
    deadline = time.monotonic() + 300
    while True:
        (stored,) = await platform.sql.fetch(_STORED, run)
        if stored["complete"]:
            break
        platform.check()
        if time.monotonic() > deadline:
            raise TimeoutError(f"{stored['size']} bytes are stored")
        await asyncio.sleep(0.05)
    if stored["lost"] or stored["size"] != times * len(_lines()):
        raise RuntimeError(f"{stored['size']} bytes stored, {stored['lost']} lost")
    return float(stored["size"] / 1e6 / stored["seconds"])


def _document(piece: Path, times: int) -> str:
    code = f"for i in $(seq {times}); do cat {piece}; done"
    step = {"name": "talk", "command": ["sh", "-c", code]}
    return json.dumps({"metadata": {"name": "bench-talk"}, "steps": [step]})


def _count() -> int:
    return _PIECE_MB * 10_000


def _lines() -> str:
    """Lines as training code writes them: half the text repeats, the numbers do not."""
    chance = random.Random(7)
    return "".join(
        f"2026-01-01T00:{i // 60000 % 60:02}:{i // 1000 % 60:02}.{i % 1000:03} INFO train step="
        f"{i:08} loss={chance.random():.6f} lr=0.000300 tok/s={chance.randrange(10**5):05}\n".ljust(
            99, "-"
        )[:99]
        + "\n"
        for i in range(_count())
    )
