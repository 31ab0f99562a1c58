"""Features of a set of replies: how narrow a cone those to one context fill, how normal those of people are."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dialeval.core.exchange import Exchange
from dialeval.io.files import replacing
from dialeval.reports.plots.figures import new_figure
from dialeval.robustness.inputs import read_input, true_replies
from reproduce.feature_statistics import conicity, normality

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dialeval.benchmarks import Benchmark

PEOPLE = "people"
#: Metrics whose network tells features before its last numbers, and how many those are.
NETWORKS = {"density": 1, "deb": 2}
#: Sets of replies to one context in labelled benchmarks, as they are compared in the literature.
_KINDS = {
    "positive": ("positive",),
    "positive and random": ("positive", "random"),
    "positive and adversarial": ("positive", "adversarial"),
}


@dataclass(frozen=True)
class Replies:
    """Replies, each with a label: its kind, its system, or `people`."""

    name: str
    exchanges: Sequence[Exchange]
    labels: Sequence[str]
    human: frozenset[str]
    is_labelled: bool

    def of_contexts(self, count: int | None, seed: int) -> Replies:
        """Those to so many contexts, drawn by the seed."""
        contexts = list(dict.fromkeys(exchange.context for exchange in self.exchanges))
        if count is None or count >= len(contexts):
            return self
        chosen = set(Random(seed).sample(contexts, count))
        kept = [number for number, exchange in enumerate(self.exchanges) if exchange.context in chosen]
        exchanges, labels = [self.exchanges[number] for number in kept], [self.labels[number] for number in kept]
        return Replies(self.name, exchanges, labels, self.human, self.is_labelled)


def replies_of(source: str, mirror: str | None = None) -> Replies:
    """The replies of a benchmark, or of a file of rows, which are taken for those of people."""
    found = read_input(source, mirror)
    if isinstance(found, list):
        return Replies(Path(source).name, found, [PEOPLE] * len(found), frozenset({PEOPLE}), is_labelled=False)
    if found.info.level != "turn":
        raise ValueError(f"{found.info.name} holds whole dialogues; features are of single replies")
    labels, human = _labels(found)
    rows = zip(found.dataset["context"][:], found.dataset["response"][:], labels, strict=True)
    pairs = [(Exchange(tuple(context), response), label) for context, response, label in rows]
    if not human:
        pairs += [(Exchange(one.context, one.response), PEOPLE) for one in true_replies(found)]
        human = frozenset({PEOPLE})
    kept = [(exchange, label) for exchange, label in dict.fromkeys(pairs) if not exchange.is_empty]
    is_labelled = found.info.kind == "labels"
    return Replies(found.info.name, [one for one, _ in kept], [label for _, label in kept], human, is_labelled)


def _labels(benchmark: Benchmark) -> tuple[list[str], frozenset[str]]:
    """The label of each row, and which labels are people's."""
    if benchmark.info.kind == "labels":
        return list(benchmark.dataset["kind_of_reply"][:]), frozenset({"positive"})
    return [system or "replies" for system in benchmark.dataset["system"][:]], frozenset(benchmark.info.human_systems)


def features_of(
    exchanges: Sequence[Exchange], metric: str | None, checkpoint: str | None, *, progress: bool = False
) -> tuple[NDArray[np.float32], dict[str, str]]:
    """Features of replies with their contexts, by a pretrained encoder or a metric's network, and what made them."""
    if metric is None:
        from dialeval.papers.feature_set import FrozenFeatures

        frozen = FrozenFeatures.shared(checkpoint)
        return frozen.of(exchanges, progress=progress).rows, {"encoder": frozen.name, **frozen.made_with}
    if metric not in NETWORKS:
        raise ValueError(f"{metric} is not one of {', '.join(NETWORKS)}; leave it out for the plain encoder")
    from dialeval.registry import load

    loaded: Any = load(metric, checkpoint=checkpoint)
    rows = loaded.encoder.encode(exchanges, progress=progress).rows
    return rows[:, : -NETWORKS[metric]], dict(loaded.signature())


def study(replies: Replies, features: NDArray[np.float32]) -> dict[str, Any]:
    """Conicity of the replies to one context, averaged over contexts, and normality of people's features."""
    labels = np.array(replies.labels, dtype=object)
    human = np.isin(labels, sorted(replies.human))
    by_context: dict[tuple[str, ...], list[int]] = {}
    for number, exchange in enumerate(replies.exchanges):
        by_context.setdefault(exchange.context, []).append(number)
    kinds = _KINDS if replies.is_labelled else {"all replies": tuple(dict.fromkeys(replies.labels))}
    record: dict[str, Any] = {"replies": len(labels), "contexts": len(by_context), "human_replies": int(human.sum())}
    record["conicity"] = {name: _conicity(features, labels, by_context, kept) for name, kept in kinds.items()}
    if human.sum() < 3:
        raise ValueError(f"{replies.name} has {human.sum()} replies of people; normality needs at least 3")
    record["normality"] = normality(features[human]).to_dict()
    return record


def _conicity(
    features: NDArray[np.float32],
    labels: NDArray[np.object_],
    by_context: Mapping[tuple[str, ...], list[int]],
    kept: Sequence[str],
) -> dict[str, float | int | None]:
    """Averaged over the contexts with two such replies or more; a single vector is its own mean."""
    values = []
    for rows in by_context.values():
        chosen = [row for row in rows if labels[row] in kept]
        if len(chosen) > 1:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # what is not defined is not counted
                values.append(conicity(features[chosen]))
    defined = [value for value in values if math.isfinite(value)]
    return {"mean": float(np.mean(defined)) if defined else None, "contexts": len(defined)}


def write_features(path: Path, features: NDArray[np.float32], labels: Sequence[str]) -> None:
    """The arrays `features` and `labels`, as numpy keeps them."""
    with replacing(path) as temporary, temporary.open("wb") as stream:
        np.savez(stream, features=features, labels=np.array(labels, dtype=np.str_))


def feature_map(features: NDArray[np.float32], labels: Sequence[str], *, method: str = "pca", seed: int = 0) -> Figure:
    """A matrix of features in two dimensions. t-SNE starts from PCA, so that the seed alone decides."""
    matrix = np.asarray(features, dtype=np.float64)
    owners = np.array(labels, dtype=object)
    points = _flattened(matrix, method, seed)
    figure = new_figure(5.5, 5.0)
    axes = figure.subplots()
    for name in dict.fromkeys(owners.tolist()):
        own = owners == name
        axes.plot(points[own, 0], points[own, 1], ".", markersize=4, alpha=0.6, label=name)
    axes.legend(frameon=False, fontsize="small")
    axes.set_xticks([])
    axes.set_yticks([])
    axes.set_title({"pca": "PCA", "tsne": "t-SNE"}[method], fontsize="medium", loc="left")
    return figure


def _flattened(matrix: NDArray[np.float64], method: str, seed: int) -> NDArray[np.float64]:
    from sklearn.decomposition import PCA
    from sklearn.manifold import TSNE

    if method == "pca":
        return np.asarray(PCA(n_components=2, random_state=seed).fit_transform(matrix))
    # Perplexity must stay below the number of rows; 30 is the usual choice.
    perplexity = min(30.0, (len(matrix) - 1) / 3)
    return np.asarray(TSNE(n_components=2, init="pca", perplexity=perplexity, random_state=seed).fit_transform(matrix))
