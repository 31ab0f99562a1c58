"""Metrics of systems over shards: each shard reduces its features to moments or counts, which add up.

No feature leaves the process that made it, except for the bounded sample in which PRD finds its
clusters. Values are those of one process as long as that sample holds all rows, and close to them after.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load, save

from dialeval.approaches.distribution import DistributionMetric, Part
from dialeval.approaches.feature_set import FeatureSet
from dialeval.approaches.frozen_features import FrozenFeatures
from dialeval.engine.moments import Counts, Moments
from dialeval.exchange import Exchange
from dialeval.io import parse_json
from dialeval.metric import Metric
from dialeval.scores import Scores
from dialeval.scoring.survey import Survey

Centroids = dict[str, list[NDArray[Any]]]


def check_mergeable(metrics: Mapping[str, Metric]) -> Mapping[str, DistributionMetric]:
    """The metrics of systems, if all of them can be reduced in shards."""
    for name, metric in metrics.items():
        if not isinstance(metric, DistributionMetric):
            raise ValueError(f"{name} needs all rows at once and cannot be computed in shards; use one process")
    return {name: metric for name, metric in metrics.items() if isinstance(metric, DistributionMetric)}


def human_is_given(metrics: Mapping[str, DistributionMetric]) -> bool:
    """Whether no metric needs the references of the rows."""
    return all(metric.human is not None for metric in metrics.values())


def look(metrics: Mapping[str, DistributionMetric], survey: Survey, exchanges: Sequence[Exchange]) -> None:
    """Add some rows to a survey, with a sample if a metric finds clusters."""
    agreeing = next((metric for metric in metrics.values() if metric.agrees_first), None)
    human = agreeing.human_pairs(exchanges) if agreeing is not None and agreeing.human is None else ()
    survey.add(exchanges, human, sample=agreeing is not None)


@dataclass(frozen=True)
class SetPlan:
    """What every shard must know: the systems in order, whose rows bring the human side, PRD's clusters."""

    systems: tuple[str | None, ...]
    centroids: Centroids = field(default_factory=dict)

    @classmethod
    def make(cls, metrics: Mapping[str, DistributionMetric], survey: Survey) -> Self:
        """Find the clusters of every system in its sample and the human one, as PRD does in all rows."""
        survey.check(metrics, human_is_given=human_is_given(metrics))
        systems = tuple(survey.systems)
        centroids: Centroids = {}
        for name, metric in metrics.items():
            if not metric.agrees_first:
                continue
            human = metric.human
            if human is None:
                human = metric.features.of(survey.systems[systems[0]].human.pairs())
            assert isinstance(human, FeatureSet)  # whoever agrees first refuses moments
            centroids[name] = [metric.agree(human, survey.systems[system].replies.pairs()) for system in systems]
        return cls(systems, centroids)

    def agreed(self, name: str, number: int) -> NDArray[Any] | None:
        """What the shards agreed on for a metric and the system of that number."""
        return self.centroids[name][number] if name in self.centroids else None

    def to_bytes(self) -> bytes:
        """The plan as safetensors."""
        tensors = {f"{name}/{number}": of for name, each in self.centroids.items() for number, of in enumerate(each)}
        header = json.dumps({"systems": self.systems, "metrics": list(self.centroids)})
        return save({**tensors, "none": np.zeros(1)}, {"plan": header})

    @classmethod
    def of_bytes(cls, content: bytes) -> Self:
        """The plan that `to_bytes` wrote."""
        tensors, header = _opened(content, "plan")
        systems = tuple(header["systems"])
        found = {name: [tensors[f"{name}/{number}"] for number in range(len(systems))] for name in header["metrics"]}
        return cls(systems, found)


@dataclass
class SetState:
    """What shards add up: moments and counts by metric, system and side; rows; rows that lost tokens."""

    parts: dict[str, Part] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)
    cut: dict[str, int] = field(default_factory=dict)

    def merge(self, other: SetState) -> Self:
        """Add another shard's state, as if its rows had been seen here."""
        for key, part in other.parts.items():
            self._add(key, part)
        for mine, theirs in ((self.rows, other.rows), (self.cut, other.cut)):
            for name, number in theirs.items():
                mine[name] = mine.get(name, 0) + number
        return self

    def add(self, metrics: Mapping[str, DistributionMetric], plan: SetPlan, exchanges: Sequence[Exchange]) -> None:
        """Encode some rows and keep what their features add up to."""
        known: dict[FrozenFeatures, tuple[FeatureSet, FeatureSet | None, NDArray[np.intp]]] = {}
        numbers = {system: number for number, system in enumerate(plan.systems)}
        of_system = np.array([numbers[exchange.system] for exchange in exchanges], dtype=np.intp)
        for name, metric in metrics.items():
            human = [] if metric.human is not None else list(metric.human_pairs(exchanges))
            owners = np.array([row for row, _ in human], dtype=np.intp)
            if metric.features not in known:
                replies = metric.features.of([Exchange(exchange.context, exchange.response) for exchange in exchanges])
                # All systems answer the same queries, so the references of one of them are those of all.
                first = [pair for row, pair in human if of_system[row] == 0]
                known[metric.features] = (replies, metric.features.of(first) if first else None, owners)
            replies, theirs, owners = known[metric.features]
            cut = replies.cut.copy()
            laid = metric.features.encoder.tokenizer.pairs([pair for _, pair in human])
            np.logical_or.at(cut, owners, np.array([pair.cut for pair in laid], dtype=np.bool_))
            self.cut[name] = self.cut.get(name, 0) + int(cut.sum())
            self.rows[name] = self.rows.get(name, 0) + len(exchanges)
            for number in np.unique(of_system):
                self._add_features(name, metric, plan, int(number), "replies", replies.rows[of_system == number])
            if theirs is not None:
                # What is reduced without an agreement serves every system; counts depend on the system's clusters.
                for number in range(len(plan.systems) if metric.agrees_first else 1):
                    self._add_features(name, metric, plan, number, "human", theirs.rows)

    def scores(self, metrics: Mapping[str, DistributionMetric], plan: SetPlan) -> dict[str, Scores]:
        """One value per system and metric."""
        found = {}
        for name, metric in metrics.items():
            values = np.array([self._value(name, metric, plan, number) for number in range(len(plan.systems))])
            found[name] = Scores(
                metric=metric.info.name,
                values=values,
                aggregate=float(np.mean(values)),
                signature=metric.signature(),
                higher_is_better=metric.info.higher_is_better,
                n_truncated=self.cut.get(name, 0),
                ids=plan.systems,
            )
        return found

    def to_bytes(self, **facts: Any) -> bytes:
        """The state as safetensors, with facts of the caller's."""
        tensors: dict[str, NDArray[Any]] = {}
        for key, part in self.parts.items():
            tensors |= {f"{key}/{name}": tensor for name, tensor in part.tensors().items()}
        header = json.dumps({"rows": self.rows, "cut": self.cut, **facts})
        return save({**tensors, "none": np.zeros(1)}, {"state": header})

    @classmethod
    def of_bytes(cls, content: bytes) -> tuple[Self, dict[str, Any]]:
        """The state that `to_bytes` wrote, and the facts kept with it."""
        tensors, facts = _opened(content, "state")
        state = cls(rows=facts.pop("rows"), cut=facts.pop("cut"))
        kept: dict[str, dict[str, NDArray[Any]]] = {}
        for name, tensor in tensors.items():
            key, _, of_part = name.rpartition("/")
            kept.setdefault(key, {})[of_part] = tensor
        for key, part in kept.items():
            state.parts[key] = Counts.of_tensors(part) if "counts" in part else Moments.of_tensors(part)
        return state, facts

    def _add_features(
        self, name: str, metric: DistributionMetric, plan: SetPlan, number: int, side: str, rows: NDArray[Any]
    ) -> None:
        self._add(f"{name}/{number}/{side}", metric.reduce(rows, plan.agreed(name, number)))

    def _add(self, key: str, part: Part) -> None:
        known: Any = self.parts.get(key)
        self.parts[key] = deepcopy(part) if known is None else known.merge(part)

    def _value(self, name: str, metric: DistributionMetric, plan: SetPlan, number: int) -> float:
        human = self.parts.get(f"{name}/{number if metric.agrees_first else 0}/human")
        return metric.finish(human, self.parts[f"{name}/{number}/replies"], plan.agreed(name, number))


def _opened(content: bytes, key: str) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Tensors and facts; numpy's reader of safetensors leaves out the facts, which stand in the header."""
    tensors = load(content)
    del tensors["none"]  # there so that a file without any other tensor is one
    length = int.from_bytes(content[:8], "little")
    return tensors, parse_json(parse_json(content[8 : 8 + length])["__metadata__"][key])
