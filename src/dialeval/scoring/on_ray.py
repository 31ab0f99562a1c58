"""Scoring on a Ray cluster, or on all GPUs of one machine: Ray Data reads and writes, its actors hold the models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from operator import length_hint
from typing import TYPE_CHECKING, Any

import numpy as np

from dialeval.core.exchange import BadRow, Exchange
from dialeval.core.scores import Scores
from dialeval.papers.distribution import DistributionMetric, EncodedRows
from dialeval.readers import Source
from dialeval.readers.rows import RawRow
from dialeval.readers.unfold import message_columns
from dialeval.registry import check_options, load_metrics

if TYPE_CHECKING:
    from ray.data import Dataset

#: Rows that an actor is given at once.
BATCH_ROWS = 2048


class _Actor:
    """Metrics in one process of Ray."""

    def __init__(self, names: list[str], options: dict[str, Any], weights: dict[str, str], source: Source) -> None:
        self.metrics, self.source = load_metrics(names, options, weights), source

    def exchanges(self, batch: Any) -> tuple[list[RawRow], list[Exchange]]:
        """The rows of a batch, checked; an error shows the row, since its number is not known here."""
        needs = frozenset().union(*(metric.info.needs for metric in self.metrics.values()))
        rows = [
            {name: cell.tolist() if isinstance(cell, np.ndarray) else cell for name, cell in row.items()}
            for row in batch.to_dict("records")
        ]
        if "response" not in batch.columns and message_columns(list(batch.columns)):
            raise ValueError("a row holds one message; make it hold a whole conversation, since rows are spread")
        rest = iter(rows)  # read one after the other, so that what is left tells which row is bad
        try:
            checked = list(replace(self.source, input=rest).exchanges(needs=needs))
        except BadRow as error:
            bad = rows[len(rows) - length_hint(rest) - 1]
            raise ValueError(f"{error.problem}; the row: {bad!r:.300}") from None
        return [raw for raw, _ in checked], [exchange for _, exchange in checked]


class RowScorer(_Actor):
    """Adds a column per metric and aspect."""

    def __call__(self, batch: Any) -> Any:
        """The rows that were read and their scores; of conversations, the replies."""
        rows, exchanges = self.exchanges(batch)
        read = [dict(row.values or {}) for row in rows]
        whole = all(row.keys() == set(batch.columns) for row in read)
        table = batch.iloc[[row.number for row in rows]] if whole else type(batch)(read)
        columns: dict[str, Any] = {}
        for name, metric in self.metrics.items() if exchanges else ():
            columns |= metric.score_exchanges(exchanges).columns(name)
        return table.assign(**columns)


class RowEncoder(_Actor):
    """Encodes rows for a metric of systems; features travel, texts do not."""

    def __call__(self, batch: Any) -> dict[str, Any]:
        """One row with what was encoded."""
        (metric,) = self.metrics.values()
        assert isinstance(metric, DistributionMetric)
        encoded = np.empty(1, dtype=object)
        encoded[0] = metric.encode(self.exchanges(batch)[1])
        return {"encoded": encoded}


def score_dataset(
    dataset: Dataset,
    metrics: Sequence[str],
    *,
    source: Source | None = None,
    checkpoints: Mapping[str, str] | None = None,
    actors: int | None = None,
    batch_rows: int = BATCH_ROWS,
    **options: Any,
) -> Dataset:
    """The data set with a column per metric and aspect, as lazy as any of Ray's.

    Args:
        dataset: rows with `context` and `response`, and what else the metrics need.
        metrics: names of metrics of replies, as `dialeval.load` takes them.
        source: how rows are laid out, for instance `Source((), columns={"response": "reply"})`.
        checkpoints: weights by metric, where not the embedded ones.
        actors: processes that hold models; default: one per GPU, or per two cores without any.
        batch_rows: rows that an actor is given at once.
        options: `device`, `dtype`, ... for those metrics that take them.
    """
    given = (list(metrics), options, dict(checkpoints or {}), source or Source(()))
    check_options(*given[:3])
    return dataset.map_batches(RowScorer, fn_constructor_args=given, **_pool(actors, batch_rows))


def score_systems(
    dataset: Dataset,
    metric: str,
    *,
    source: Source | None = None,
    checkpoint: str | None = None,
    actors: int | None = None,
    batch_rows: int = BATCH_ROWS,
    **options: Any,
) -> Scores:
    """FBD or PRD of the systems in a data set: actors encode, and the driver compares what they merge to.

    The driver holds the features, 1.6 kB for each reply and reference; beyond its memory, merge `FbdState`s.
    """
    weights = {} if checkpoint is None else {metric: checkpoint}
    check_options([metric], options, weights)
    given: tuple[Any, ...] = ([metric], options, weights, source or Source(()))
    encoded = dataset.map_batches(RowEncoder, fn_constructor_args=given, **_pool(actors, batch_rows))
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
    resources: dict[str, float] = ray.cluster_resources()  # type: ignore[no-untyped-call]
    gpus, cores = int(resources.get("GPU", 0)), int(resources.get("CPU", 1))
    size = actors or gpus or max(1, cores // 2)
    share = {"num_gpus": min(1.0, gpus / size)} if gpus else {}
    return {"compute": ActorPoolStrategy(size=size), "batch_size": batch_rows, "batch_format": "pandas", **share}
