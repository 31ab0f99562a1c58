"""Scoring on a Ray cluster, or on all GPUs of one machine: Ray Data reads and writes, its actors hold the models.

A run that is killed starts again: Ray repeats what a lost actor had in hand, and nothing else is kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from dialeval.approaches.distribution import DistributionMetric, EncodedRows
from dialeval.exchange import BadRow, Exchange
from dialeval.readers import Source
from dialeval.registry import load_metrics
from dialeval.scores import Scores

if TYPE_CHECKING:
    from ray.data import ActorPoolStrategy, Dataset

#: Rows that an actor is given at once.
BATCH_ROWS = 2048


class _Actor:
    """Metrics in one process of Ray."""

    def __init__(
        self, names: Sequence[str], options: Mapping[str, Any], checkpoints: Mapping[str, str], columns: dict[str, str]
    ) -> None:
        self.metrics = load_metrics(names, options, checkpoints)
        self.columns = columns

    def exchanges(self, batch: Any) -> list[Exchange]:
        """The rows of a batch, checked; an error shows the row, since its number is not known here."""
        needs = frozenset().union(*(metric.info.needs for metric in self.metrics.values()))
        rows = [
            {name: cell.tolist() if isinstance(cell, np.ndarray) else cell for name, cell in row.items()}
            for row in batch.to_dict("records")
        ]
        found: list[Exchange] = []
        try:
            for _, exchange in Source(rows, columns=self.columns).exchanges(needs=needs):
                found.append(exchange)  # those before a bad row tell which one it is
        except BadRow as error:
            raise ValueError(f"{error.problem}; the row: {rows[len(found)]!r:.300}") from None
        return found


class RowScorer(_Actor):
    """Adds a column per metric and aspect."""

    def __call__(self, batch: Any) -> Any:
        """A batch of rows and their scores."""
        exchanges = self.exchanges(batch)
        columns: dict[str, Any] = {}
        for name, metric in self.metrics.items():
            columns |= metric.score_exchanges(exchanges).columns(name)
        return batch.assign(**columns)


class RowEncoder(_Actor):
    """Encodes rows for a metric of systems; features travel, texts do not."""

    def __call__(self, batch: Any) -> dict[str, Any]:
        """One row with what was encoded."""
        (metric,) = self.metrics.values()
        assert isinstance(metric, DistributionMetric)
        encoded = np.empty(1, dtype=object)
        encoded[0] = metric.encode(self.exchanges(batch))
        return {"encoded": encoded}


def score_dataset(
    dataset: Dataset,
    metrics: Sequence[str],
    *,
    columns: Mapping[str, str] | None = None,
    checkpoints: Mapping[str, str] | None = None,
    actors: int | None = None,
    batch_rows: int = BATCH_ROWS,
    **options: Any,
) -> Dataset:
    """The data set with a column per metric and aspect, as lazy as any of Ray's.

    Args:
        dataset: rows with `context` and `response`, and what else the metrics need.
        metrics: names of metrics of replies, as `dialeval.load` takes them.
        columns: field to column, for instance `{"response": "reply"}`.
        checkpoints: weights by metric, where not the embedded ones.
        actors: processes that hold models; default: one per GPU, or per two cores without any.
        batch_rows: rows that an actor is given at once.
        options: `device`, `dtype`, ... for those metrics that take them.
    """
    given = (list(metrics), options, dict(checkpoints or {}), dict(columns or {}))
    return dataset.map_batches(RowScorer, fn_constructor_args=given, batch_format="pandas", **_pool(actors, batch_rows))


def score_systems(
    dataset: Dataset,
    metric: str,
    *,
    columns: Mapping[str, str] | None = None,
    checkpoint: str | None = None,
    actors: int | None = None,
    batch_rows: int = BATCH_ROWS,
    **options: Any,
) -> Scores:
    """FBD or PRD of the systems in a data set: actors encode, and the driver compares what they merge to.

    The driver holds the features, 1.6 kB for each reply and reference; beyond its memory, merge `FbdState`s.
    """
    weights = {} if checkpoint is None else {metric: checkpoint}
    given: tuple[Any, ...] = ([metric], options, weights, dict(columns or {}))
    encoded = dataset.map_batches(
        RowEncoder, fn_constructor_args=given, batch_format="pandas", **_pool(actors, batch_rows)
    )
    parts: list[EncodedRows] = [row["encoded"] for row in encoded.iter_rows()]
    if not parts:
        raise ValueError("the data set has no rows; there is nothing to score")
    (loaded,) = load_metrics([metric], options, weights).values()
    assert isinstance(loaded, DistributionMetric)
    return loaded.scores_of(reduce(EncodedRows.merge, parts))


def read_dataset(path: str) -> Dataset:
    """Rows of .jsonl or .csv files, else of Parquet files."""
    import ray

    if path.endswith((".jsonl", ".json")):
        return ray.data.read_json(path, lines=True)
    return ray.data.read_csv(path) if path.endswith(".csv") else ray.data.read_parquet(path)


def _pool(actors: int | None, batch_rows: int) -> dict[str, Any]:
    import ray
    from ray.data import ActorPoolStrategy

    if not ray.is_initialized():
        ray.init(log_to_driver=False, include_dashboard=False)
    there: dict[str, float] = ray.cluster_resources()  # type: ignore[no-untyped-call]
    gpus, cores = int(there.get("GPU", 0)), int(there.get("CPU", 1))
    size = actors or gpus or max(1, cores // 2)
    pool: ActorPoolStrategy = ActorPoolStrategy(size=size)
    return {"compute": pool, "batch_size": batch_rows, **({"num_gpus": min(1.0, gpus / size)} if gpus else {})}
