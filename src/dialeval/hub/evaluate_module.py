"""What the `evaluate` modules under `metrics/` have in common, so that each of them is a few lines.

A module is `class Density(DialogueModule, evaluate.Metric)`: the mixin checks the input before `evaluate`
sees it (whose own errors mislead), and computes. This file never imports `evaluate`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from dialeval.core.exchange import BadRow, EmptyPolicy, Exchange, check_empty, exchanges_from_columns
from dialeval.readers.pairing import check_level
from dialeval.registry import check_given, load, metric_class
from dialeval.registry.interface import Level, Metric, Scale

_INPUTS = """
Args:
    predictions (list of str): the responses to judge.
    contexts (list of list of str): the turns before each response; a string is one turn.
    references (list of str, or list of list of str, optional): one or several human responses to each context.
        Ignored by metrics that need none.
    facts (list of list of str, optional): what is known beside each context, with `compute` for all rows at once.
    following (list of str, optional): the turn after each response, or None; with `compute`, as the next.
    speakers (list of list of str, optional): who said each turn of a context (of a dialogue, where those are judged).
    checkpoint (str, optional): a folder or a Hub id; default: the embedded weights.
    device (str, optional): `cpu`, `cuda`, ...; default: automatic.
    dtype (str, optional): `float32` (default), `bfloat16`, `int8` or `auto`.
    batch_tokens (int, optional): maximum tokens per batch.
    scale (str): `native`, or `human_percentile`, the share of human responses that score lower.
    level (str): `turn`, or `dialogue`, where a context and its response are one dialogue and every turn is judged.
    empty (str): `error` refuses blank responses and contexts, `score` scores and counts them.
Returns:
    {name}: the mean over all rows; scores: one number per row; signature: what is needed to repeat the
    numbers; n_truncated and n_empty: numbers of truncated and of blank rows. Metrics that judge several aspects give
    them as aspects, a list of numbers (or None) each; those that explain their values give intervals, two ends per
    row, and reasons; metrics of systems, which judge all rows as one set, also give details, with an interval.
"""


def module_info(name: str, examples: str) -> dict[str, Any]:
    """The arguments of `evaluate.MetricInfo`; every module takes the same three inputs.

    `examples` are lines for doctest, with the output that they have.
    """
    import datasets

    info = metric_class(name)[0].info
    better = "higher" if info.higher_is_better else "lower"
    low, high = info.range
    text = datasets.Value("string")
    several = datasets.Sequence(text)
    return {
        "description": f"{info.title}: {info.summary} Range {low:g} to {high:g}, {better} is better.",
        "citation": info.citation,
        "inputs_description": _INPUTS.replace("{name}", name) + examples,
        "features": datasets.Features({"predictions": text, "contexts": several, "references": several}),
        "homepage": "https://github.com/dialeval/dialeval",
        "license": "Apache-2.0 (code; weights as their model card says)",
    }


class DialogueModule:
    """Input checks and computation of a module; stands before `evaluate.Metric` among its bases."""

    metric_name: ClassVar[str]

    if TYPE_CHECKING:  # given by evaluate.Metric
        writer: Any
        data: Any
        buf_writer: Any
        selected_feature_format: Any
        cache_file_name: str | None
        filelock: Any
        file_paths: list[str] | None
        filelocks: list[Any] | None

        def __len__(self) -> int: ...

    @property
    def name(self) -> str:
        """The metric's name; evaluate would make `quanti_dce` of the class's, and put that before its results."""
        return self.metric_name

    def __bool__(self) -> bool:
        """A module is there, even while no rows have been added to it."""
        return True

    def add(self, *, prediction: Any = None, reference: Any = None, context: Any = None, **combined: Any) -> None:
        """Add one row. A combination of modules gives its parts the plural names."""
        row = {"predictions": prediction, "references": reference, "contexts": context} | combined
        self.add_batch(**{name: [cell] for name, cell in row.items()})

    def add_batch(
        self,
        *,
        predictions: Iterable[Any] | None = None,
        references: Iterable[Any] | None = None,
        contexts: Iterable[Any] | None = None,
    ) -> None:
        """Add rows; `references` may be left out."""
        stored = len(self)
        try:
            # Blank rows pass here: whether they are wanted is known only when `compute` is called.
            exchanges = _exchanges(predictions, contexts, references, empty="score")
        except BadRow as error:
            raise BadRow(stored + int(error.row), error.problem) from None
        if exchanges:
            super().add_batch(  # type: ignore[misc]
                predictions=[exchange.response for exchange in exchanges],
                references=[list(exchange.references) for exchange in exchanges],
                contexts=[list(exchange.context) for exchange in exchanges],
            )

    def compute(
        self,
        *,
        predictions: Iterable[Any] | None = None,
        references: Iterable[Any] | None = None,
        contexts: Iterable[Any] | None = None,
        **options: Any,
    ) -> dict[str, Any] | None:
        """Score the rows given here and those added before."""
        if not (predictions is None and contexts is None and references is None):
            self.add_batch(predictions=predictions, references=references, contexts=contexts)
        if not len(self):
            raise ValueError("there are no rows to score; pass predictions and contexts, or add rows before")
        try:
            result: dict[str, Any] | None = super().compute(**options)  # type: ignore[misc]
        except BaseException:
            self._forget()
            raise
        return result

    def _compute(
        self,
        *,
        predictions: list[str],
        contexts: list[list[str]],
        references: list[list[str]],
        facts: Iterable[Any] | None = None,
        following: Iterable[Any] | None = None,
        speakers: Sequence[Any] | None = None,
        checkpoint: str | Path | None = None,
        device: str | None = None,
        dtype: str | None = None,
        batch_tokens: int | None = None,
        scale: Scale = "native",
        level: Literal["turn", "dialogue"] = "turn",
        empty: EmptyPolicy = "error",
    ) -> dict[str, Any]:
        check_empty(empty)
        given = {"checkpoint": checkpoint, "device": device, "dtype": dtype, "batch_tokens": batch_tokens}
        check_given(metric_class(self.metric_name)[0], given)
        check_level(level)
        metric = loaded(self.metric_name, **given)
        if level == "dialogue" and following is not None:
            raise ValueError("following is for single responses; a whole dialogue holds every turn, so leave it out")
        if level == "dialogue":
            rows = _exchanges(predictions, contexts, references, facts=facts, empty=empty)
            dialogues = [(*row.context, row.response) for row in rows]
            known = [row.facts for row in rows]
            scores = metric.score_dialogues(dialogues, facts=known, speakers=speakers, scale=scale)
        else:
            beside = {"facts": facts, "following": following, "speakers": speakers}
            rows = _exchanges(predictions, contexts, references, empty=empty, **beside)
            scores = metric.score_exchanges(rows, scale=scale)
        result = scores.to_dict()
        shown = ["aspects", "intervals", "reasons", "signature", "n_truncated", "n_empty"]
        if metric.info.level is Level.SYSTEM:  # what stands beside the one value: its interval, PRD's curves
            shown.append("details")
        return {
            self.metric_name: result["aggregate"],
            "scores": result["values"],
            **{key: result[key] for key in shown if key in result},
        }

    def _forget(self) -> None:
        """Drop what a failed call left behind; its locks would slow the next one down."""
        self.writer = self.data = self.buf_writer = self.selected_feature_format = None
        left = [*zip(self.file_paths or [], self.filelocks or [], strict=True), (self.cache_file_name, self.filelock)]
        for path, lock in left:
            if path is not None:
                Path(path).unlink(missing_ok=True)
            if lock is not None:
                lock.release()
        self.file_paths = self.filelocks = self.cache_file_name = self.filelock = None


@lru_cache(maxsize=8)
def loaded(name: str, **options: Any) -> Metric:
    """A metric with those of the options that are given, read once per process, whichever module asks for it."""
    return load([name], **{key: value for key, value in options.items() if value is not None})[name]


def _exchanges(predictions: Any, contexts: Any, references: Any, **beside: Any) -> list[Exchange]:
    """The columns as checked exchanges, whose errors then say `predictions`, as `evaluate` does."""
    try:
        return exchanges_from_columns(predictions, contexts, references, **beside)
    except BadRow:
        raise
    except ValueError as error:
        raise ValueError(str(error).replace("responses", "predictions")) from None
