"""Scoring on a Ray cluster: readers and tokenisers on CPUs, actors that hold the models, results as they finish.

    >>> import dialeval.ray, ray                                                          # doctest: +SKIP
    >>> rows = ray.data.read_parquet("s3://bucket/replies/")                              # doctest: +SKIP
    >>> scored = dialeval.ray.score(rows, metrics=["density", "fbd"])                     # doctest: +SKIP
    >>> scored.rows.write_parquet("s3://bucket/scores/")                                  # doctest: +SKIP
    >>> scored.systems["fbd"].values                                                      # doctest: +SKIP

For Parquet files, `score_files` (and `dialeval score --engine ray`) also numbers the rows, counts
what was cut, and resumes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dialeval.exchange import EmptyPolicy
from dialeval.metric import Scale
from dialeval.ray.cluster import Workers, connect
from dialeval.ray.files import score_files
from dialeval.ray.recipe import ScoringRecipe
from dialeval.ray.tables import reduce_rows, score_rows
from dialeval.scores import Scores

if TYPE_CHECKING:
    from ray.data import Dataset

__all__ = ["Scored", "score", "score_files"]

#: Rows that travel together; an actor that dies loses no more than such a packet.
PACKET_ROWS = 4096


@dataclass(frozen=True)
class Scored:
    """Rows with their scores, lazily as any data set of Ray's, and the values of systems."""

    rows: Dataset | None
    systems: Mapping[str, Scores]


def score(
    dataset: Dataset,
    metrics: str | Sequence[str],
    *,
    columns: Mapping[str, str] | None = None,
    checkpoints: Mapping[str, str] | None = None,
    scale: Scale = "native",
    empty: EmptyPolicy = "error",
    explain: bool = False,
    actors: int | None = None,
    cpus_per_actor: float | None = None,
    gpus_per_actor: float | None = None,
    packet_rows: int = PACKET_ROWS,
    **options: Any,
) -> Scored:
    """Score a data set of Ray's: its columns, one more per metric and aspect, and whether a row is `empty`.

    Metrics of rows are lazy: nothing is scored before the rows are written, iterated or taken. Metrics
    of systems (FBD, PRD) are computed at once; only moments and counts leave the actors.

    Args:
        dataset: rows with `context` and `response`, and `references`, `system`, `facts`, `id`,
            `following`, `speakers` where needed.
        metrics: names, as `dialeval.load` takes them.
        columns: field to column, for instance `{"response": "reply"}`.
        checkpoints: weights by metric, where not the embedded ones.
        explain: add the ends of an interval and a reason to each value, from metrics that give them.
        actors: processes that hold models; by default one per GPU, or per two cores without GPUs.
        packet_rows: rows that travel between stages together.
        options: for those metrics that take them: `device`, `dtype`, `batch_tokens`, `reference`, ...
    """
    connect()
    recipe = ScoringRecipe.of(
        [metrics] if isinstance(metrics, str) else metrics,
        options=options,
        checkpoints=dict(checkpoints or {}),
        columns=dict(columns or {}),
        scale=scale,
        empty=empty,
        explain=explain,
    )
    if not recipe.names:
        raise ValueError("no metrics are named; pass at least one")
    workers = Workers.choose(actors, cpus_per_actor, gpus_per_actor)
    return Scored(
        rows=score_rows(dataset, recipe, workers, packet_rows) if recipe.of_rows else None,
        systems=reduce_rows(dataset, recipe, workers, packet_rows) if recipe.of_systems else {},
    )
