"""Metrics that read a reply as a number, and rows for them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dialeval.exchange import Exchange
from dialeval.metric import Judged, Level, Metric, MetricInfo
from dialeval.scores import Signature


class Number(Metric):
    """The number that a reply is; `worse` turns the direction."""

    info = MetricInfo("number", "NUMBER", Level.TURN, True, (-np.inf, np.inf), "A number.")

    def judge(self, exchanges: Sequence[Exchange], *, progress: bool = False) -> Judged:
        return Judged(np.array([float(row.response or "nan") for row in exchanges]))

    def signature(self) -> Signature:
        return Signature({"metric": "number"})


class Distance(Number):
    info = MetricInfo("distance", "DISTANCE", Level.TURN, False, (-np.inf, np.inf), "Lower is better.")


def rows(
    values: Sequence[float], ids: bool = True, system: str | None = None, per_context: int = 1
) -> list[dict[str, Any]]:
    found = []
    for at, value in enumerate(values):
        row: dict[str, Any] = {"context": [f"question {at // per_context}"], "response": f"{value:.6f}"}
        if ids:
            row["id"] = f"row-{at}"
        if system:
            row["system"] = system
        found.append(row)
    return found


def noisy(mean: float, count: int = 60, seed: int = 0) -> list[float]:
    return list(np.random.default_rng(seed).normal(mean, 1.0, count))


def written(path: Path, found: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in found), encoding="utf-8")
    return path
