"""A judge for your own domain: refit `load("judge")` to replies that your people rated, or to pairs they compared.

    >>> import dialeval
    >>> tuned = dialeval.tune("rated.jsonl", out="mine")     # doctest: +SKIP
    >>> print(tuned)                                         # doctest: +SKIP
    >>> dialeval.load("judge", checkpoint="mine")            # doctest: +SKIP

The weights of the stack begin as the checkpoint's own and move as far as cross-validation by context justifies; they
stay where they are if it finds no gain. Nothing of the rows but counts and figures goes into the folder.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dialeval.approaches import stack
from dialeval.approaches.judge import (
    ASPECTS,
    DIALOGUE_FEATURES,
    FEATURES,
    Judge,
    JudgeNetwork,
    aspect_values,
    turn_ranks,
)
from dialeval.approaches.learned import QUANTILE_GRID
from dialeval.approaches.stack import Matrix, Vector
from dialeval.exchange import EmptyPolicy, Exchange
from dialeval.readers import Input, Source, read_exchanges
from dialeval.statistics.raters import human_ceiling
from dialeval.tuning import crossing
from dialeval.tuning.folder import check_place, stale_quantiles, write_folder
from dialeval.tuning.opinions import ADVISED, Opinions, Ratings, as_rows, enough, read_opinions
from dialeval.tuning.outcome import Tuned

__all__ = ["Tuned", "tune"]


def tune(
    rows: Input | Mapping[str, Sequence[Any]] | Source,
    *,
    out: str | Path,
    checkpoint: str | Path | None = None,
    human: Input | Source | None = None,
    columns: Mapping[str, str] | None = None,
    empty: EmptyPolicy = "error",
    contaminated_by: Sequence[str] = (),
    seed: int = 0,
    resamples: int = 2000,
    device: str | None = None,
    overwrite: bool = False,
    progress: bool = False,
) -> Tuned:
    """Fit the judge to people's opinions and write the outcome as a checkpoint folder.

    Args:
        rows: A file of rows, mappings, or a mapping of columns: each row with `rating` or `ratings` (of several
            people) beside `context` and `response`, or with `response_a`, `response_b` and `preferred` (a, b or
            tie). Rows of one `dialogue` are held out together, if they name it.
        out: The folder to make.
        checkpoint: The judge to begin with; default: the embedded one.
        human: Rows whose replies people wrote, to compute the human percentile of the new values. Without them a
            judge whose weights have changed has none.
        columns: Field to column, where names differ.
        empty: Whether blank replies and contexts are refused or taken as they are.
        contaminated_by: Benchmarks that the rows come from; results on these will be marked.
        seed: Of folds and resamples.
        resamples: Of the bootstrap behind all intervals.
        device: Where to compute; default: a GPU if there is one.
        overwrite: Whether a checkpoint at `out` may be replaced.
        progress: Show bars on standard error.
    """
    target = Path(out).expanduser().resolve()
    check_place(target, overwrite=overwrite)
    source = rows if isinstance(rows, Source) else Source(as_rows(rows), columns=columns or {})
    opinions = read_opinions(source, empty=empty)
    enough(opinions)
    if len(opinions) < ADVISED:
        warnings.warn(
            f"there are only {len(opinions)} {opinions.unit}; with fewer than {ADVISED} the outcome depends on which "
            "of them happened to be rated",
            stacklevel=2,
        )
    people = _human_rows(human)
    judge = Judge(checkpoint, device=device)
    network = JudgeNetwork.from_pretrained(checkpoint, device=device, trainable=True)
    features, read, n_truncated = judge.features_of(opinions.exchanges, progress=progress)
    fitted = _fit(opinions, turn_ranks(features, read, judge.array("turn_tables")), network, resamples, seed)
    outcome = Tuned(
        folder=Path(out),
        opinions=opinions,
        fitted=fitted,
        ceiling=_ceiling(opinions),
        coverage=_fit_interval(network, opinions, fitted.values, seed),
        has_percentile=bool(people) or not fitted.changed,
        n_truncated=n_truncated,
        seed=seed,
    )
    stale = stale_quantiles() if fitted.changed else frozenset()
    if people and fitted.changed:
        _fit_quantiles(network, judge, people)
        stale = frozenset()
    write_folder(network, target, record={**outcome.record(), "contaminated_by": list(contaminated_by)}, stale=stale)
    return outcome


def _fit(opinions: Opinions, ranks: Matrix, network: JudgeNetwork, resamples: int, seed: int) -> crossing.Fitted:
    """New weights in the network, where they agree better on contexts that they were not fitted on."""
    old = network.array("turn_weights")
    # A checkpoint without any weight says nothing yet; equal weights are then where to begin.
    begin = old if old.sum() > 0 else np.ones_like(old)
    before, after = opinions.values(ranks, old), crossing.out_of_fold(opinions, ranks, begin, seed)
    comparison = crossing.compare(opinions, before, after, resamples=resamples, seed=seed)
    if not comparison.gains:
        return crossing.Fitted(comparison, before, old, old, None)
    everything = np.arange(len(opinions))
    strength = crossing.strength_for(opinions, ranks, everything, begin, seed)
    weights = crossing.fit(opinions, ranks, everything, begin, strength)
    network.set_array("turn_weights", weights)
    _carry_dialogues(network, ranks, old, weights)
    return crossing.Fitted(comparison, after, old, weights, strength)


def _human_rows(human: Input | Source | None) -> list[Exchange]:
    if human is None:
        return []
    if isinstance(human, Source):
        return [exchange for _, exchange in human.exchanges()]
    return list(read_exchanges(human))


def _ceiling(opinions: Opinions) -> float | None:
    """How well one person predicts the others, if there are others."""
    if not isinstance(opinions, Ratings) or not opinions.raters:
        return None
    value = human_ceiling(opinions.raters)
    return value if np.isfinite(value) else None


def _fit_interval(network: JudgeNetwork, opinions: Opinions, values: Vector, seed: int) -> float | None:
    """A new interval from values of held-out contexts; tells how many ratings such intervals cover.

    Preferences say nothing about where single replies lie, so the checkpoint's interval stays.
    """
    if not isinstance(opinions, Ratings):
        return None
    fitted = stack.fit_interval(values, opinions.targets, ties=stack.edges_of_ties(opinions.targets))
    ends = [np.append(end, end[-1]) for end in (fitted.low, fitted.high)]
    network.set_array("turn_interval", np.stack([fitted.edges, *ends]))
    return crossing.crossed_coverage(values, opinions.targets, opinions.groups, seed)


def _carry_dialogues(network: JudgeNetwork, ranks: Matrix, old: Vector, weights: Vector) -> None:
    """Whole conversations read how relevant their replies are: the table of that moves with it.

    Where a quantile of these rows lay before, there lies the same quantile now; beyond them the scale goes on.
    """
    first, last = (aspect_values(ranks, one, FEATURES, ASPECTS)["relevant"] for one in (old, weights))
    tables, at = network.array("dialogue_tables"), DIALOGUE_FEATURES.index("coherent")
    table, grid = tables[at], np.linspace(0, 1, 101)
    before, after = np.quantile(first, grid), np.quantile(last, grid)
    if before[0] == before[-1]:
        return  # these rows do not show how the values have moved
    scale = (after[-1] - after[0]) / max(before[-1] - before[0], 1e-9)
    beyond = np.minimum(table - before[0], 0) + np.maximum(table - before[-1], 0)
    tables[at] = np.interp(table, before, after) + scale * beyond
    network.set_array("dialogue_tables", tables)


def _fit_quantiles(network: JudgeNetwork, judge: Judge, people: Sequence[Exchange]) -> None:
    """Quantiles of human replies, overall and by aspect."""
    features, _, _ = judge.features_of(tuple(people))
    ranks, weights = stack.rank_all(features, network.array("turn_tables")), network.array("turn_weights")
    found = {"overall": stack.combine(ranks, weights), **aspect_values(ranks, weights, FEATURES, ASPECTS)}
    curves = {
        f"turn.{name}": {"human": [float(one) for one in np.nanquantile(values, QUANTILE_GRID)]}
        for name, values in found.items()
        if np.isfinite(values).any()
    }
    network.config = replace(network.config, quantiles={**network.config.quantiles, **curves})
