"""Several metrics over the same rows, sharing what they can: tokenisation, encoders, features."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dialeval.core.exchange import Exchange, exchanges_from_columns
from dialeval.core.scores import Scores
from dialeval.readers.frames import exchanges_of, is_table
from dialeval.registry.interface import Metric, Scale, indexed

if TYPE_CHECKING:
    import pandas as pd


class Suite(Mapping[str, Metric]):
    """A set of loaded metrics that are scored together.

    Encoders share the embedding table of their common base, metrics on the same encoder one pass, and metrics over the
    same frozen encoder (FBD and PRD) its features.
    """

    def __init__(self, metrics: Mapping[str, Metric]) -> None:
        self._metrics = dict(metrics)

    def __getitem__(self, name: str) -> Metric:
        return self._metrics[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._metrics)

    def __len__(self) -> int:
        return len(self._metrics)

    def score(
        self,
        responses: Iterable[Any],
        contexts: Iterable[Any] | None = None,
        references: Iterable[Any] | None = None,
        *,
        scale: Scale = "native",
        progress: bool = False,
        **columns: Any,
    ) -> SuiteScores:
        """Score the same columns with every metric; see `Metric.score` for them."""
        if contexts is None and is_table(responses):
            scores = self.score_exchanges(exchanges_of(responses, **columns), scale=scale, progress=progress)
            return SuiteScores({name: indexed(column, responses) for name, column in scores.items()})
        exchanges = exchanges_from_columns(responses, contexts, references, **columns)  # type: ignore[arg-type]
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
        """One row per exchange, one column per turn-level metric and aspect; system-level values are in `attrs`.

        The index is that of the data frame that was scored.
        """
        import pandas as pd

        lengths = [len(scores) for scores in self.values()]
        rows = max(lengths)
        turn_level = {name: scores for name, scores in self.items() if len(scores) == rows}
        columns = [scores.columns(name) for name, scores in turn_level.items()]
        index = next(iter(turn_level.values())).index
        frame = pd.DataFrame({column: values for part in columns for column, values in part.items()}, index=index)
        frame.attrs["signatures"] = {name: str(scores.signature) for name, scores in self.items()}
        frame.attrs["aggregates"] = {name: scores.aggregate for name, scores in self.items()}
        return frame


def share_encoders(metrics: Iterable[Metric]) -> None:
    """Let metrics on the same encoder use one, which remembers the pairs it saw last: together they cost one pass."""
    encoders: dict[Any, Any] = {}
    for metric in metrics:
        network = getattr(metric, "network", None)
        if network is None or "encoder" not in getattr(metric, "pair_encoders", ()):
            continue
        learned: Any = metric
        heads, tokenizer, device = learned.encoder.heads, learned.encoder.tokenizer.identity, learned.encoder.device
        identity = (type(network) if heads is None else "", network.encoder_id, tokenizer, device, learned.precision)
        first = encoders.setdefault(identity, learned)
        if first is not learned:
            learned.encoder, network.encoder = first.encoder.with_heads(heads), first.network.encoder
