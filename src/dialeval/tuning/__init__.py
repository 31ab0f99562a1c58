"""A judge for your own domain: refit `load("judge")` to replies that your people rated, or to pairs they compared.

    >>> import dialeval
    >>> tuned = dialeval.tune("rated.jsonl", out="mine")     # doctest: +SKIP
    >>> print(tuned)                                         # doctest: +SKIP
    >>> dialeval.load("judge", checkpoint="mine")            # doctest: +SKIP

The weights of the stack begin as the checkpoint's own and move as far as cross-validation by context justifies; they
stay where they are if it finds no gain. Nothing of the rows but counts and figures goes into the folder. A teacher's
scores can stand in for ratings; whatever people said of a part of the rows is then what the outcome is held against.
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
from dialeval.io import progress_bar
from dialeval.readers import Input, Source, read_exchanges
from dialeval.statistics.raters import human_ceiling
from dialeval.tuning import adapter, crossing
from dialeval.tuning.folder import check_place, stale_quantiles, write_folder
from dialeval.tuning.opinions import ADVISED, Opinions, Ratings, as_rows, enough, read_opinions
from dialeval.tuning.outcome import Lesson, Tuned
from dialeval.tuning.teacher import Teacher, read_taught, read_teacher

__all__ = ["Tuned", "tune"]


def tune(
    rows: Input | Mapping[str, Sequence[Any]] | Source,
    *,
    out: str | Path,
    teacher: Teacher | None = None,
    teacher_column: str | None = None,
    checkpoint: str | Path | None = None,
    deep: bool = False,
    human: Input | Source | None = None,
    columns: Mapping[str, str] | None = None,
    empty: EmptyPolicy = "error",
    contaminated_by: Sequence[str] = (),
    seed: int = 0,
    resamples: int = 2000,
    device: str | None = None,
    batch_tokens: int | None = None,
    overwrite: bool = False,
    progress: bool = False,
) -> Tuned:
    """Fit the judge to people's opinions and write the outcome as a checkpoint folder.

    Args:
        rows: A file of rows, mappings, or a mapping of columns: each row with `rating` or `ratings` (of several
            people) beside `context` and `response`, or with `response_a`, `response_b` and `preferred` (a, b or
            tie). Rows of one `dialogue` are held out together, if they name it.
        out: The folder to make.
        teacher: A language model's scores of these rows, to learn from in place of people's ratings, which may then
            be missing: a file as `dialeval score` writes it, what `score` returned, or a number (or None) per row.
            Ratings of people are what agreement before and after is also told with.
        teacher_column: Of a file with several columns of scores, the teacher's.
        checkpoint: The judge to begin with; by default the embedded one.
        deep: Whether the adapter learns, too. It takes minutes, and is kept only if it agrees better on contexts
            that it has not seen.
        human: Rows whose replies people wrote, to tell the human percentile of the new values. Without them a judge
            whose weights have changed has none.
        columns: Field to column, where names differ.
        empty: Whether blank replies and contexts are refused or taken as they are.
        contaminated_by: Benchmarks that the rows come from; results on these will be marked.
        seed: Of folds, resamples and training.
        resamples: Of the bootstrap behind all intervals.
        device: Where to compute; chosen by itself if left out.
        batch_tokens: Tokens that pass the model at once.
        overwrite: Whether a checkpoint at `out` may be replaced.
        progress: Show bars on standard error.
    """
    target = Path(out).expanduser().resolve()
    check_place(target, overwrite=overwrite)
    source = rows if isinstance(rows, Source) else Source(as_rows(rows), columns=columns or {})
    if teacher is None and teacher_column is not None:
        raise ValueError("teacher_column chooses among the scores of a teacher, and there is none; leave it out")
    taught = None if teacher is None else read_taught(source, read_teacher(teacher, teacher_column), empty=empty)
    opinions = read_opinions(source, empty=empty) if taught is None else taught.opinions
    enough(opinions)
    humans = _human_rows(human)
    if len(opinions) < ADVISED:
        warnings.warn(
            f"there are only {len(opinions)} {opinions.unit}; with fewer than {ADVISED} the outcome depends on which "
            "of them happened to be rated",
            stacklevel=2,
        )
    judge = Judge(checkpoint, device=device, batch_tokens=batch_tokens)
    features, read, cut = judge.features_of(opinions.exchanges, progress=progress)
    tables, old = judge.array("turn_tables"), judge.array("turn_weights")
    # A checkpoint without any weight says nothing yet; equal weights are then where to begin.
    begin = old if old.sum() > 0 else np.ones_like(old)
    ranks = turn_ranks(features, read, tables)
    before = opinions.values(ranks, old)
    after = crossing.out_of_fold(opinions, ranks, begin, seed)
    shallow = crossing.compare(opinions, before, after, resamples=resamples, seed=seed)
    deeper = None
    if deep:
        with progress_bar("training", adapter.steps_in_all(len(opinions)), shown=progress) as advance:
            how: dict[str, Any] = {"device": device, "advance": advance}
            crossed = adapter.crossed_ranks(checkpoint, opinions, features, read, tables, seed=seed, **how)
            learned = crossing.out_of_fold(opinions, crossed, begin, seed)
            # It has to be better than what the weights reach alone, or than the old ones if they reach nothing.
            rival = after if shallow.gains else before
            deeper = crossing.compare(opinions, rival, learned, resamples=resamples, seed=seed)
            network = (
                adapter.trained(checkpoint, opinions, np.arange(len(opinions)), seed=seed, **how)
                if deeper.gains
                else adapter.open_network(checkpoint, device)
            )
    else:
        network = adapter.open_network(checkpoint, device)
    is_deeper = deeper is not None and deeper.gains
    comparison, values, weights, strength = shallow, before, old, None
    if is_deeper:
        ranks, after = crossed, learned
        comparison = crossing.compare(opinions, before, after, resamples=resamples, seed=seed)
        final = adapter.features_by(network, opinions.exchanges)
        network.set_array("turn_tables", adapter.moved_tables(tables, features, final))
    people_say = None
    if taught is not None:
        people_say = taught.held_against_people(before, after, resamples=resamples, seed=seed)
    # A teacher that leads away from people is not followed.
    if people_say is not None and people_say.object:
        is_deeper = changed = False
        network = adapter.open_network(checkpoint, device)
    else:
        changed = is_deeper or shallow.gains
    if changed:
        everything = np.arange(len(opinions))
        strength = crossing.strength_for(opinions, ranks, everything, begin, seed)
        values, weights = after, crossing.fit(opinions, ranks, everything, begin, strength)
        network.set_array("turn_weights", weights)
        _carry_dialogues(network, turn_ranks(features, read, tables), old, ranks, weights)
    outcome = Tuned(
        folder=Path(out),
        unit=opinions.unit,
        measure=opinions.measure,
        count=len(opinions),
        contexts=opinions.contexts,
        changed=changed,
        comparison=comparison,
        deeper=deeper,
        weights={name: (float(first), float(last)) for name, first, last in zip(FEATURES, old, weights, strict=True)},
        strength=strength,
        raters=_raters(opinions),
        ceiling=_ceiling(opinions),
        coverage=_fit_interval(network, opinions, values, seed),
        has_percentile=bool(humans) or not changed,
        n_truncated=cut,
        seed=seed,
        lesson=None if taught is None else Lesson(taught.given.name, taught.given.digest, taught.unscored, people_say),
    )
    stale = stale_quantiles(deep=is_deeper) if changed else frozenset()
    if humans and changed:
        _fit_quantiles(network, humans)
        stale = frozenset()
    record = {**outcome.record(), "contaminated_by": list(contaminated_by)}
    write_folder(network, target, record=record, stale=stale)
    return outcome


def _human_rows(human: Input | Source | None) -> list[Exchange]:
    if human is None:
        return []
    if isinstance(human, Source):
        return [exchange for _, exchange in human.exchanges()]
    return list(read_exchanges(human))


def _raters(opinions: Opinions) -> float:
    given = opinions.raters if isinstance(opinions, Ratings) else ()
    return float(np.mean([len(one) for one in given])) if given else 1.0


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


def _carry_dialogues(network: JudgeNetwork, ranks: Matrix, old: Vector, new_ranks: Matrix, weights: Vector) -> None:
    """Whole conversations read how relevant their replies are: the table of that moves with it."""
    first = aspect_values(ranks, old, FEATURES, ASPECTS)["relevant"]
    last = aspect_values(new_ranks, weights, FEATURES, ASPECTS)["relevant"]
    tables, at = network.array("dialogue_tables"), DIALOGUE_FEATURES.index("coherent")
    tables[at] = adapter.moved(tables[at], first, last)
    network.set_array("dialogue_tables", tables)


def _fit_quantiles(network: JudgeNetwork, people: Sequence[Exchange]) -> None:
    """Quantiles of human replies, overall and by aspect."""
    ranks = stack.rank_all(adapter.features_by(network, tuple(people)), network.array("turn_tables"))
    weights = network.array("turn_weights")
    found = {"overall": stack.combine(ranks, weights), **aspect_values(ranks, weights, FEATURES, ASPECTS)}
    curves = {
        f"turn.{name}": {"human": [float(one) for one in np.nanquantile(values, QUANTILE_GRID)]}
        for name, values in found.items()
        if np.isfinite(values).any()
    }
    others = {key: curve for key, curve in network.config.quantiles.items() if key not in stale_quantiles(deep=True)}
    network.config = replace(network.config, quantiles={**others, **curves})
