"""Several metrics over the same rows, sharing what they can: tokenisation, encoders, features."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dialeval.exchange import Exchange, exchanges_from_columns
from dialeval.metric import Level, Metric, Scale, load
from dialeval.scores import Scores

if TYPE_CHECKING:
    import pandas as pd


class Suite(Mapping[str, Metric]):
    """A set of loaded metrics that are scored together.

    Metrics with the same layout share one tokenizer, which remembers its last rows; encoders share
    the embedding table of their common base; metrics over the same frozen encoder (FBD and PRD)
    share its features.
    """

    def __init__(self, names: Iterable[str], **options: Any) -> None:
        wanted = list(dict.fromkeys(names))
        if not wanted:
            raise ValueError("no metrics are named; pass at least one")
        self._metrics = {name: load(name, **_accepted(name, options)) for name in wanted}
        share_encoders(list(self._metrics.values()))

    def __getitem__(self, name: str) -> Metric:
        return self._metrics[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._metrics)

    def __len__(self) -> int:
        return len(self._metrics)

    def score(
        self,
        responses: Iterable[Any],
        contexts: Iterable[Any],
        references: Iterable[Any] | None = None,
        *,
        scale: Scale = "native",
        progress: bool = False,
        **columns: Any,
    ) -> SuiteScores:
        """Score the same columns with every metric; see `Metric.score` for them."""
        exchanges = exchanges_from_columns(responses, contexts, references, **columns)
        return self.score_exchanges(exchanges, scale=scale, progress=progress)

    def score_exchanges(
        self, exchanges: Sequence[Exchange], *, scale: Scale = "native", progress: bool = False
    ) -> SuiteScores:
        """Score checked exchanges with every metric; all needs are checked before any encoder runs."""
        for metric in self._metrics.values():
            metric.check_needs(exchanges)
        scores: dict[str, Scores] = {}
        for name, metric in self._metrics.items():
            own_scale: Scale = scale if scale in metric.scales else "native"
            scores[name] = metric.score_exchanges(exchanges, scale=own_scale, progress=progress)
        return SuiteScores(scores)


class SuiteScores(dict[str, Scores]):
    """Scores by metric name."""

    def to_pandas(self) -> pd.DataFrame:
        """One row per exchange, one column per turn-level metric; system-level values are in `attrs`."""
        import pandas as pd

        lengths = [len(scores) for scores in self.values()]
        rows = max(lengths)
        turn_level = {name: scores for name, scores in self.items() if len(scores) == rows}
        frame = pd.DataFrame({name: scores.values for name, scores in turn_level.items()})
        frame.attrs["signatures"] = {name: str(scores.signature) for name, scores in self.items()}
        frame.attrs["aggregates"] = {name: scores.aggregate for name, scores in self.items()}
        return frame


def _accepted(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Options that this metric's constructor takes; a suite passes `device=` to those that have one."""
    import inspect

    from dialeval.metric import metric_class

    found, _ = metric_class(name)
    names: set[str] = set()
    for base in found.__mro__:
        initialiser = base.__dict__.get("__init__")
        if initialiser is not None:
            names |= set(inspect.signature(initialiser).parameters)
    return {key: value for key, value in options.items() if key in names}


def share_encoders(metrics: Sequence[Metric]) -> None:
    """Let metrics whose pairs are laid out alike use one tokenizer, and one encoder where it is the same."""
    tokenizers: dict[Any, Any] = {}
    encoders: dict[Any, Any] = {}
    for metric in metrics:
        for attribute in getattr(metric, "pair_encoders", ()):
            encoder = getattr(metric, attribute)
            encoder.tokenizer = tokenizers.setdefault(encoder.tokenizer.identity, encoder.tokenizer)
            same = getattr(encoder.network, "identity", None)
            if same is not None:
                setattr(metric, attribute, encoders.setdefault((same, encoder.tokenizer.identity), encoder))


def turn_level(metrics: Mapping[str, Metric]) -> dict[str, Metric]:
    """Those that give one value per exchange."""
    return {name: metric for name, metric in metrics.items() if metric.info.level is Level.TURN}
