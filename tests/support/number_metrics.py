"""Metrics that read a reply as a number, and rows for them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dialeval.core.exchange import Exchange
from dialeval.core.scores import Signature
from dialeval.registry.interface import Fault, Judged, Level, Metric, MetricInfo


class Number(Metric):
    """The number that a reply is; `worse` turns the direction."""

    info = MetricInfo("number", "NUMBER", Level.TURN, True, (-np.inf, np.inf), "A number.")

    def judge(self, exchanges: Sequence[Exchange], *, progress: bool = False) -> Judged:
        return Judged(np.array([float(row.response or "nan") for row in exchanges]))

    def signature(self) -> Signature:
        return Signature({"metric": "number"})


class Distance(Number):
    info = MetricInfo("distance", "DISTANCE", Level.TURN, False, (-np.inf, np.inf), "Lower is better.")


class Manners(Number):
    """The number, beside it how civil and how steady the reply is: `1.5;0.2;0.9`."""

    info = replace(Number.info, aspects=("civil", "steady", "dry"))

    def judge(self, exchanges: Sequence[Exchange], *, progress: bool = False) -> Judged:
        read = np.array([[float(part) for part in row.response.split(";")] for row in exchanges])
        dry = np.full(len(read), np.nan)
        return Judged(read[:, 0], aspects={"civil": read[:, 1], "steady": read[:, 2], "dry": dry})

    def faults(self, level: Level = Level.TURN) -> Mapping[str, Fault]:
        return {"civil": Fault(0.1, "rude")}


def said(values: Sequence[float], civil: Any = 1.0, steady: Any = 0.9) -> list[dict[str, Any]]:
    beside = [np.broadcast_to(np.asarray(one, dtype=float), len(values)) for one in (civil, steady)]
    texts = [";".join(f"{part:.6f}" for part in row) for row in zip(values, *beside, strict=True)]
    return [{"context": [f"q {at}"], "response": text, "id": f"{at}"} for at, text in enumerate(texts)]


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


def value(exchanges: Sequence[Exchange]) -> list[float]:
    """The number that a reply is, as a function: `python:number_metrics:value`."""
    return [float(row.response) for row in exchanges]


def letters(exchanges: Sequence[Exchange]) -> list[int]:
    return [len(row.response) for row in exchanges]


def noisy(mean: float, count: int = 60, seed: int = 0) -> list[float]:
    return list(np.random.default_rng(seed).normal(mean, 1.0, count))
