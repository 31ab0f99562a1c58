"""What the metrics that stand on a trained checkpoint have in common."""

from __future__ import annotations

import hashlib
import json
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from dialeval.checkpoints.config import current_versions
from dialeval.checkpoints.find import WEIGHTS
from dialeval.checkpoints.network import Network
from dialeval.core.exchange import Exchange
from dialeval.core.scores import Signature
from dialeval.encoders.base import longest_input
from dialeval.encoders.batching import FirstToken, PairEncoder, choose_device, choose_precision, speed_up, weights_dtype
from dialeval.encoders.layout import PairTokenizer
from dialeval.io.files import parse_json
from dialeval.registry.interface import Judged, Metric, Scale

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
#: Points of the stored quantile curves: 0, 0.005, …, 1.
QUANTILE_GRID = np.linspace(0.0, 1.0, 201)


class LearnedMetric(Metric):
    """A turn-level metric whose numbers come from a checkpoint's network."""

    network_class: ClassVar[type[Network]]
    scales: ClassVar[tuple[Scale, ...]] = ("native", "human_percentile")
    #: Whether values are calibrated probabilities.
    is_probability: ClassVar[bool] = False
    #: Attributes that hold a `PairEncoder`; a suite lets them share their tokenizer.
    pair_encoders: ClassVar[tuple[str, ...]] = ("encoder",)

    def __init__(
        self,
        checkpoint: str | Path | None = None,
        *,
        revision: str | None = None,
        device: str | torch.device | None = None,
        dtype: str | torch.dtype = "float32",
        batch_tokens: int | None = None,
        max_length: int | None = None,
        truncation: Literal["left", "right_longest_first"] | None = None,
    ) -> None:
        place = choose_device(device)
        self.versions = current_versions()
        self.precision = choose_precision(dtype, place)
        self.network = self.network_class.from_pretrained(
            checkpoint, revision=revision, device=place, dtype=weights_dtype(self.precision)
        )
        changes: dict[str, Any] = {"max_length": max_length, "truncation": truncation}
        known = {key: value for key, value in changes.items() if value is not None}
        self.layout = replace(self.network.config.layout, **known)
        encoder: Any = getattr(self.network, self.network.encoders[0])
        longest = longest_input(encoder.config)
        if self.layout.max_length > longest:
            raise ValueError(f"max_length is {self.layout.max_length}; this encoder reads at most {longest} tokens")
        tokenizer = PairTokenizer(self.network.tokenizer, self.layout)
        encoders = [getattr(self.network, name) for name in self.network.encoders]
        self.precision = speed_up(encoders, self.precision, tokenizer, asked=dtype)
        # Heads are no part of what is encoded, so that metrics on one encoder can share it.
        shared = self.network_class.rows is not Network.rows
        self.encoder = PairEncoder(
            FirstToken(self.network.encoder) if shared else self.network,
            tokenizer,
            heads=self.network.rows if shared else None,
            batch_tokens=batch_tokens,
            same_widths=self.precision == "int8",
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}(checkpoint={self.signature()['checkpoint']!r})"

    @classmethod
    def checkpoints_by_default(cls) -> frozenset[str]:
        """The one that is named after the approach."""
        return frozenset({cls.network_class.default_checkpoint()})

    def variant(self) -> Mapping[str, str]:
        """Options of the scoring rule, for the signature."""
        return {}

    def windows(self, exchanges: Sequence[Exchange]) -> tuple[list[Exchange], NDArray[np.int64]]:
        """The parts in which replies are read, each with the whole context, and where each reply begins."""
        parts = self.encoder.tokenizer.windows([row.response for row in exchanges])
        read = [
            row if len(texts) == 1 else replace(row, response=text)
            for row, texts in zip(exchanges, parts, strict=True)
            for text in texts
        ]
        return read, np.cumsum([0, *map(len, parts[:-1])])

    def signature(self) -> Signature:
        """Checkpoint, options, precision, length and versions."""
        return Signature(
            {
                "metric": self.info.name,
                "checkpoint": self.network.identity,
                **self.variant(),
                "dtype": self.precision,
                "max_length": str(self.layout.max_length),
                "truncation": self.layout.truncation,
                **({} if self.layout.turns is None else {"turns": str(self.layout.turns)}),
                **self.versions,
            }
        )

    @property
    def contaminated_by(self) -> frozenset[str]:
        """Benchmarks that this checkpoint was trained on."""
        return frozenset(self.network.config.contaminated_by)

    def leaked_rows(self, benchmark: str) -> frozenset[str]:
        """The rows of a benchmark whose text this checkpoint was trained on, where not all of them are.

        `training/recount.py` finds them; they are kept, ids only, for the embedded checkpoints.
        """
        path = WEIGHTS / "leaks.json"
        known = parse_json(path.read_text("utf-8")) if path.is_file() else {}
        rows = known.get(self.network.config.name, {}).get(benchmark, ())
        return frozenset() if rows == "all" else frozenset(rows)

    @property
    def quantile_key(self) -> str:
        """Under which name the checkpoint keeps the quantiles of this variant's scores."""
        return "native"

    def check_scale(self, scale: Scale) -> None:
        """Human percentiles need the checkpoint's quantiles of this variant."""
        super().check_scale(scale)
        if scale == "human_percentile" and not self.network.config.quantiles.get(self.quantile_key):
            raise ValueError(f"the checkpoint of {self.info.name} holds no human quantiles for this variant")

    def rescale(self, values: NDArray[np.float64], scale: Scale) -> NDArray[np.float64]:
        """`human_percentile`: the share of held-out human replies that score lower."""
        if scale != "human_percentile":
            return super().rescale(values, scale)
        self.check_scale(scale)
        return percentile(
            values, np.asarray(self.network.config.quantiles[self.quantile_key]["human"], dtype=np.float64)
        )

    def scale_signature(self, scale: Scale) -> str:
        """A percentile depends on the table of human quantiles, which no file of weights holds."""
        if scale != "human_percentile":
            return super().scale_signature(scale)
        table = json.dumps(self.network.config.quantiles, sort_keys=True).encode()
        return f"{scale}@{hashlib.sha256(table).hexdigest()[:12]}"


class PairMetric(LearnedMetric):
    """One whose value is a rule over the network's row of a context and a reply."""

    @abstractmethod
    def values_of(self, rows: NDArray[np.float32]) -> NDArray[np.float64]:
        """The scoring rule: from the network's rows to one value each."""

    def judge(self, exchanges: Sequence[Exchange], *, progress: bool = False) -> Judged:
        """Encode and score."""
        windows, starts = self.windows(exchanges)
        encoded = self.encoder.encode(windows, progress=progress)
        values = whole_reply(self.values_of(encoded.rows), starts, WEAKEST)
        return Judged(values, n_truncated=int(np.logical_or.reduceat(encoded.cut, starts).sum()))


#: How much the weakest part of a long reply counts, beside the mean of its parts.
WEAKEST = 0.5


def whole_reply(parts: Vector, starts: NDArray[np.int64], weakest: float) -> Vector:
    """Values of replies from those of their parts: the mean, moved by this share towards the lowest."""
    sizes = np.diff(np.append(starts, len(parts)))
    mean = np.add.reduceat(parts, starts) / sizes
    lowered: Vector = mean + weakest * (np.minimum.reduceat(parts, starts) - mean)
    return lowered


def percentile(values: Vector, quantiles: Vector) -> Vector:
    """Share of the population behind `quantiles` that lies below each value, in [0, 1]."""
    grid = np.linspace(0.0, 1.0, len(quantiles))
    # Where quantiles repeat, the curve jumps: a value there has below it what lies before the jump, not after it.
    first = np.minimum(np.searchsorted(quantiles, values, side="left"), len(quantiles) - 1)
    share = np.where(values == quantiles[first], grid[first], np.interp(values, quantiles, grid))
    return np.where(values < quantiles[0], 0.0, share)


def mid_ranks(values: Vector, table: Vector) -> Vector:
    """Share of the reference values below each value, half of the equal ones counted; NaN stays NaN."""
    below = np.searchsorted(table, values, side="left")
    upto = np.searchsorted(table, values, side="right")
    # A value between two quantiles lies where the line between them puts it; ties keep their middle.
    left = np.clip(below, 1, len(table) - 1)
    low, high = table[left - 1], table[left]
    between = np.where(high > low, (values - low) / np.where(high > low, high - low, 1), 0.5)
    smooth = np.clip((left - 1 + np.clip(between, 0, 1)) / (len(table) - 1), 0, 1)
    ranks = np.where(upto > below, (below + upto) / 2 / len(table), smooth)
    known: Vector = np.where(np.isfinite(values), ranks, np.nan)
    return known


def rank_all(features: Matrix, tables: Matrix) -> Matrix:
    """Every column by its own table."""
    return np.stack([mid_ranks(features[:, column], tables[column]) for column in range(features.shape[1])], axis=1)


def squared_mahalanobis(features: NDArray[Any], mean: NDArray[Any], precision: NDArray[Any]) -> Vector:
    """Squared distances in float64, clipped at zero: rounding may leave a point of the centre below it.

    They are rounded far below what float32 features tell, so that equal features have equal distances.
    """
    centre, weights = np.asarray(mean, dtype=np.float64), np.asarray(precision, dtype=np.float64)
    squared = np.empty(len(features))
    for start in range(0, len(features), 4096):  # in float64 a block at a time: twice the size of the features
        offset = np.asarray(features[start : start + 4096], dtype=np.float64) - centre
        squared[start : start + 4096] = np.einsum("nd,nd->n", offset @ weights, offset)
    return np.clip(squared, 0.0, None).round(8)


def quantile_curves(human: Vector, random: Vector) -> dict[str, list[float]]:
    """Quantiles of the scores of held-out human replies and of random ones, to store in a checkpoint."""
    return {
        "human": [float(value) for value in np.quantile(human, QUANTILE_GRID)],
        "random": [float(value) for value in np.quantile(random, QUANTILE_GRID)],
    }
