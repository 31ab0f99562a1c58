"""From a measured statistic to a row of the table: ceiling, contamination, and the signature of every choice."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

from dialeval.agreement.judgements import Cut, Judgements
from dialeval.agreement.measure import Measured
from dialeval.agreement.results import Result
from dialeval.agreement.settings import Settings
from dialeval.agreement.sources import ValueSource
from dialeval.agreement.values import Values
from dialeval.core.scores import Signature
from dialeval.version import __version__

if TYPE_CHECKING:
    from datasets import Dataset


def result_of(
    measured: Measured, source: ValueSource, values: Values, cut: Cut, judged: Judgements, settings: Settings
) -> Result:
    """Complete a measured statistic."""
    info = judged.info
    is_rated = not cut.is_labelled
    over_systems = cut.level == "system"
    asked = len(values.by_id) + len(values.problems)
    return Result(
        metric=source.name,
        benchmark=info.name,
        protocol=info.protocol,
        level=cut.level,
        aspect=cut.aspect,
        n_left_out=judged.n_left_out,
        contaminated=source.is_contaminated_by(info.name, info.contaminates),
        in_best_group=None,
        ceiling=judged.ceiling(cut.aspect, measured.statistic, over_systems=over_systems) if is_rated else math.nan,
        attainable=judged.attainable(cut.aspect) if is_rated and not over_systems else math.nan,
        alpha=judged.alpha(cut.aspect) if is_rated else math.nan,
        n_truncated=values.n_truncated,
        n_empty=values.n_empty,
        higher_is_better=source.higher_is_better,
        selection=selection(judged, settings),
        signature=str(signature(measured, values.signature or source.signature, cut, judged, settings)),
        cost_per_row=values.took["cost"] / asked if values.took else math.nan,
        seconds_per_row=values.took["seconds"] / asked if values.took else math.nan,
        revision=info.revision,
        **dataclasses.asdict(measured),
    )


def selection(judged: Judgements, settings: Settings) -> str:
    """Which rows count, in words."""
    if settings.subset is not None:
        return f"subset {settings.subset}"
    name = settings.exclusion or judged.info.default_exclusion
    return {"none": "all rows", "generated": "generated rows"}.get(name, f"without {name}")


def signature(measured: Measured, metric: str, cut: Cut, judged: Judgements, settings: Settings) -> Signature:
    """Everything that, if changed, may change the number, its p-value or its interval."""
    parts = {
        "benchmark": f"{judged.info.name}@{judged.info.revision}",
        "protocol": judged.info.protocol,
        "rows": selection(judged, settings),
        "level": cut.level,
        "aspect": cut.aspect,
        "stat": measured.statistic,
        "missing": "drop",
    }
    if inputs := _inputs(judged, settings):
        parts["inputs"] = inputs
    if not cut.is_labelled:
        parts |= {"ratings": settings.ratings}
        parts |= {"sign": "absolute" if settings.absolute else "signed"} if cut.level == "system" else {}
        parts |= {"pooling": "pooled"} if cut.level != "system" else {}
        ties = {"spearman": "average ranks", "kendall": "tau-b"}.get(measured.statistic)
        parts |= {"ties": ties} if ties else {}
    if measured.threshold_method:
        parts["threshold"] = f"score > {measured.threshold:g}, {measured.threshold_method}"
    if measured.p_method:
        parts["p"] = measured.p_method
    if measured.resamples:
        drawn = settings.resamples_for(measured.statistic)
        parts["interval"] = f"{settings.confidence:g} percentile, {drawn} resamples of contexts, seed {settings.seed}"
    parts["metric"] = f"[{metric}]"
    parts["dialeval"] = __version__
    return Signature(parts)


def _inputs(judged: Judgements, settings: Settings) -> str:
    following = settings.following and judged.info.following
    return ", ".join([*([] if settings.facts else ["without facts"]), *(["following"] if following else [])])


def with_inputs(dataset: Dataset, settings: Settings) -> Dataset:
    """The rows with what the settings give: usually facts, but not the turn that follows, which is still to come."""
    withheld = [*([] if settings.facts else ["facts"]), *([] if settings.following else ["following"])]
    return dataset.remove_columns([column for column in withheld if column in dataset.column_names])


def inputs_of(dataset: Dataset) -> str:
    """In what these rows differ from what metrics usually get, in words; empty where in nothing."""
    columns = dataset.column_names
    parts = [*(["without facts"] if "facts" not in columns else []), *(["following"] if "following" in columns else [])]
    return ", ".join(parts)
