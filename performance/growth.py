"""How time and memory grow with the rows: a straight line through the logarithms, and what lies on it further out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

MILLION = 1_000_000


@dataclass(frozen=True)
class Point:
    """One measurement."""

    rows: int
    seconds: float
    peak_mb: float


@dataclass(frozen=True)
class Growth:
    """The fitted lines. An exponent of 1 means that twice the rows take twice the time."""

    exponent: float
    seconds_per_million_rows: float
    mb_per_thousand_rows: float


def fit(points: Sequence[Point]) -> Growth | None:
    """Least squares over all sizes; None while there are fewer than two."""
    if len({point.rows for point in points}) < 2:
        return None
    logs = [(math.log(point.rows), math.log(point.seconds)) for point in points]
    exponent, at_one = _line(logs)
    slope, _ = _line([(point.rows / 1000, point.peak_mb) for point in points])
    return Growth(exponent, math.exp(at_one + exponent * math.log(MILLION)), slope)


def expected_seconds(points: Sequence[Point], rows: int) -> float:
    """How long more rows may take: as the last size, or worse if the growth so far was worse than linear."""
    last = points[-1]
    found = fit(points)
    exponent = max(1.0, found.exponent if found else 1.0)
    expected: float = last.seconds * (rows / last.rows) ** exponent
    return expected


def sizes(first: int) -> list[int]:
    """`first`, then about three times as many each time, up to a million: 1,000, 3,000, 10,000 …"""
    found = []
    for power in range(7):
        found += [first * 10**power, 3 * first * 10**power]
    return [size for size in found if size <= max(MILLION, first)]


def _line(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Slope and intercept."""
    middle_x = sum(x for x, _ in points) / len(points)
    middle_y = sum(y for _, y in points) / len(points)
    spread = sum((x - middle_x) ** 2 for x, _ in points)
    slope = sum((x - middle_x) * (y - middle_y) for x, y in points) / spread
    return slope, middle_y - slope * middle_x
