"""Fewer points of a curve that still looks the same."""

from __future__ import annotations

from collections.abc import Sequence

from verderer.core.tracking.samples import Point


def thin(points: Sequence[Point], limit: int) -> list[Point]:
    """At most `limit` of the points, which come sorted: ends, and each bucket's lowest and highest.

    Peaks survive, which is what somebody looks for in a loss curve. NaN is kept where it is the
    only thing in its bucket. `limit` is at least 4; fewer points than that come back unchanged.
    """
    if len(points) <= max(limit, 4):
        return list(points)
    inner = points[1:-1]
    buckets = max(1, (max(limit, 4) - 2) // 2)
    kept = [points[0]]
    for i in range(buckets):
        bucket = inner[i * len(inner) // buckets : (i + 1) * len(inner) // buckets]
        kept.extend(_extremes(bucket))
    kept.append(points[-1])
    return kept


def _extremes(bucket: Sequence[Point]) -> list[Point]:
    known = [i for i, point in enumerate(bucket) if point.value == point.value]
    if not known:
        return [bucket[0]]
    low = min(known, key=lambda i: bucket[i].value)
    high = max(known, key=lambda i: bucket[i].value)
    return [bucket[i] for i in sorted({low, high})]
