"""Ensemble: the human percentiles of the suite's trained metrics, averaged into one judge of single replies.

Each member answers on the same scale, the share of held-out human replies that it puts lower, so that
no member's units drown the others'. A row's value depends on that row alone: ranks within a set would
agree with people slightly better but mean nothing for one reply. Members and weights come from a small
file that `dialeval ensemble --weights` writes if the combination beat every single metric, and only then.
None ships: of the embedded checkpoints no combination did.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dialeval.exchange import Exchange, is_blank
from dialeval.metric import Judged, Level, Metric, MetricInfo
from dialeval.registry import load, metric_class
from dialeval.scores import Signature
from dialeval.suite import share_encoders, share_tokenizers

#: Parts of a member's signature that all members share, or that the ensemble states itself.
_SHARED = frozenset({"metric", "dialeval", "torch", "transformers", "python"})

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Member:
    """A metric of the ensemble: its registered name, its options, and how much it weighs."""

    name: str
    metric: str
    options: Mapping[str, Any]
    weight: float


@dataclass(frozen=True)
class EnsembleRecipe:
    """What a file of weights says: the members, how their weights came about, and what these were fitted on."""

    form: str
    members: tuple[Member, ...]
    fitted_on: tuple[str, ...] = ()

    @classmethod
    def read(cls, path: Path) -> EnsembleRecipe:
        """Read and check a file of weights."""
        try:
            raw = json.loads(path.read_text(encoding="utf-8"))
            members = tuple(
                Member(name, str(one["metric"]), dict(one["options"]), float(one["weight"]))
                for name, one in raw["members"].items()
            )
            recipe = cls(str(raw["form"]), members, tuple(map(str, raw["fitted_on"])))
        except OSError as error:
            raise ValueError(f"{path} cannot be read ({error.strerror}); name a file of `dialeval ensemble`") from None
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise ValueError(f"{path} is no file of weights ({error}); make one with `dialeval ensemble`") from None
        weights = [member.weight for member in members]
        # Not `min(weights) < 0`: that lets a NaN pass.
        if not members or not all(0 <= weight < np.inf for weight in weights) or sum(weights) <= 0:
            raise ValueError(f"{path}: weights are not negative and one is positive; make it again")
        return recipe


def combined(rows: Vector, weights: Sequence[float] | None = None) -> Vector:
    """The weighted mean of columns (one per row of the table); where one has no value the others share its weight."""
    if not len(rows):
        raise ValueError("no metric of the ensemble has values here; measure them first")
    heavy = np.ones(len(rows)) if weights is None else np.asarray(weights, dtype=np.float64)
    known = np.isfinite(rows)
    total = heavy @ known
    summed = heavy @ np.where(known, rows, 0.0)
    return np.where(total > 0, summed / np.where(total > 0, total, 1.0), np.nan)


class Ensemble(Metric):
    """The weighted mean of the members' human percentiles; higher is better."""

    info = MetricInfo(
        name="ensemble",
        title="Ensemble",
        level=Level.TURN,
        higher_is_better=True,
        range=(0.0, 1.0),
        summary="The mean of the shares of held-out human replies that DENSITY, DEB, QuantiDCE and, where the row has "
        "a reference, CMN put lower; an ordinary human reply lies near 0.5.",
        citation="dialeval's own combination of Park et al. 2023, Sai et al. 2020, Ye et al. 2021 and Zhao et al. 2023",
    )

    def __init__(
        self,
        *,
        weights: str | Path | None = None,
        device: str | None = None,
        dtype: str = "float32",
        batch_tokens: int | None = None,
        max_length: int | None = None,
    ) -> None:
        """`weights` is a file of `dialeval ensemble`; the other options go to every member."""
        if weights is None:
            raise ValueError(
                "no combination of the embedded metrics agrees with people better than the best of them, so none "
                "ships; pass weights=FILE, which `dialeval ensemble --weights FILE` makes of your own"
            )
        self.recipe = EnsembleRecipe.read(Path(weights))
        options = {"device": device, "dtype": dtype, "batch_tokens": batch_tokens, "max_length": max_length}
        for one in self.recipe.members:
            if "human_percentile" not in metric_class(one.metric)[0].scales:
                raise ValueError(f"{one.name} has no human percentiles and cannot be a member; make the weights again")
        # A member without weight would cost time and change nothing.
        self.weights = {one.name: one.weight for one in self.recipe.members if one.weight > 0}
        self.members = {
            one.name: load(one.metric, **{**one.options, **options})
            for one in self.recipe.members
            if one.name in self.weights
        }
        share_tokenizers(self.members.values())
        share_encoders(self.members.values())

    def judge(self, exchanges: Sequence[Exchange], *, progress: bool = False) -> Judged:
        """Ask every member about the rows that it can judge; the details hold the members' percentiles."""
        columns: dict[str, Vector] = {}
        cut = 0
        for name, metric in self.members.items():
            rows, asked = _judged_by(metric, exchanges)
            columns[name] = np.full(len(exchanges), np.nan)
            if asked:
                judged = metric.judge(asked, progress=progress)
                columns[name][rows] = metric.rescale(judged.values, "human_percentile")
                cut = max(cut, judged.n_truncated)
        values = combined(np.array(list(columns.values())), list(self.weights.values()))
        return Judged(values, n_truncated=cut, details={"human_percentiles": columns})

    def signature(self) -> Signature:
        """The form, and of every member its weight and its own signature."""
        inner = {name: metric.signature() for name, metric in self.members.items()}
        versions = next(iter(inner.values()))
        return Signature(
            {
                "metric": self.info.name,
                "form": self.recipe.form,
                **{name: f"{self.weights[name]:.6g}*[{_inner(signature)}]" for name, signature in inner.items()},
                **{key: value for key, value in versions.items() if key in _SHARED - {"metric"}},
            }
        )

    @property
    def contaminated_by(self) -> frozenset[str]:
        """Benchmarks that a member was trained on or the weights were fitted on."""
        own: list[frozenset[str]] = [getattr(one, "contaminated_by", frozenset()) for one in self.members.values()]
        return frozenset(self.recipe.fitted_on).union(*own)


def _judged_by(metric: Metric, exchanges: Sequence[Exchange]) -> tuple[list[int], list[Exchange]]:
    """The rows that a member can judge: all, or those with references, blank ones left aside."""
    if "references" not in metric.info.needs:
        return list(range(len(exchanges))), list(exchanges)
    rows, asked = [], []
    for row, exchange in enumerate(exchanges):
        kept = tuple(reference for reference in exchange.references if not is_blank(reference))
        if kept:
            rows.append(row)
            asked.append(replace(exchange, references=kept))
    return rows, asked


def _inner(signature: Signature) -> str:
    return ";".join(f"{key}={value}" for key, value in signature.items() if key not in _SHARED)
