"""A judge for your own domain: refit `load("judge")` to replies that your people rated, or to pairs they compared.

    >>> import dialeval
    >>> tuned = dialeval.tune("rated.jsonl", out="mine")     # doctest: +SKIP
    >>> print(tuned)                                         # doctest: +SKIP
    >>> dialeval.load("judge", checkpoint="mine")            # doctest: +SKIP

The checkpoint's own values are corrected by all that it computes of a reply; they stay as they are if cross-validation
by context finds no gain. Nothing of the rows but counts and figures goes into the folder.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dialeval.core.cautions import cautions
from dialeval.core.exchange import EmptyPolicy, check_kind, several_names
from dialeval.io.places import real
from dialeval.judge import fitting
from dialeval.judge.metric import Judge, ReadReplies
from dialeval.judge.network import JudgeNetwork
from dialeval.judge.rule import TURN, Vector
from dialeval.papers.learned import QUANTILE_GRID
from dialeval.readers import Input, Source
from dialeval.readers.frames import exchanges_of, source_of
from dialeval.statistics.bootstrap import check_asked
from dialeval.statistics.raters import human_ceiling
from dialeval.tuning import crossing
from dialeval.tuning.opinions import ADVISED, Opinions, Ratings, as_rows, enough, read_opinions
from dialeval.tuning.tuned import OVERALL, Tuned, check_place, write_folder

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
            judge whose values have changed has none.
        columns: Field to column, where names differ.
        empty: Whether blank replies and contexts are refused or taken as they are.
        contaminated_by: Benchmarks that the rows come from; results on these will be marked.
        seed: Of folds and resamples.
        resamples: Of the bootstrap behind all intervals.
        device: Where to compute; default: a GPU if there is one.
        overwrite: Whether a checkpoint at `out` may be replaced.
        progress: Show bars on standard error.
    """
    check_kind("out", out, (str, Path), "the name of a new folder")
    check_asked(0.95, resamples, seed, overwrite=overwrite, progress=progress)
    contaminated_by = several_names("contaminated_by", contaminated_by)
    target = real(Path(out).expanduser())
    reads = [source.input if isinstance(source, Source) else source for source in (rows, human)]
    check_place(target, reads, overwrite=overwrite)
    opinions = read_opinions(source_of(as_rows(rows), columns), empty=empty)
    enough(opinions)
    if len(opinions) < ADVISED:
        warnings.warn(
            f"only {len(opinions)} {opinions.unit}; with fewer than {ADVISED} the outcome depends on which "
            "of them happened to be rated",
            stacklevel=2,
        )
    for caution in cautions(opinions.exchanges):
        warnings.warn(caution, stacklevel=2)
    people = [] if human is None else exchanges_of(human)
    judge = Judge(checkpoint, device=device)
    network = JudgeNetwork.from_pretrained(checkpoint, device=device, trainable=True)
    read = judge.read(opinions.exchanges, progress=progress)
    fitted = _fit(opinions, read, resamples, seed)
    # How well one person predicts the others, if there are others.
    ceiling = human_ceiling(opinions.raters) if isinstance(opinions, Ratings) and opinions.raters else np.nan
    outcome = Tuned(
        folder=Path(out),
        opinions=opinions,
        fitted=fitted,
        ceiling=ceiling if np.isfinite(ceiling) else None,
        coverage=_fit_interval(network, opinions, fitted.values, seed),
        has_percentile=bool(people) or not fitted.changed,
        aspects={
            name: crossing.agreement_where_known(opinions, column) for name, column in judge.aspects_of(read).items()
        },
        n_truncated=read.n_truncated, seed=seed,
    )  # fmt: skip
    if fitted.correction is not None:
        former = network.array("correction") if "corrected" in network.config.architecture else None
        network.correct(crossing.joined_corrections(former, fitted.correction), fitted.lifted)
        curves = {name: curve for name, curve in network.config.quantiles.items() if name != OVERALL}
        if people:
            values = judge.read(people).without(fitted.lifted).corrected(fitted.correction).values
            curves[OVERALL] = {"human": [float(quantile) for quantile in np.quantile(values, QUANTILE_GRID)]}
        network.config = replace(network.config, quantiles=curves)
    write_folder(network, target, record={**outcome.record(), "contaminated_by": list(contaminated_by)})
    return outcome


def _fit(opinions: Opinions, read: ReadReplies, resamples: int, seed: int) -> crossing.Fitted:
    """A correction, where the judge agrees better with it on contexts that it was not fitted on.

    Few ratings are of replies that are rude or garbled, so a veto goes only where it agrees better without.
    """
    vetoes = [(name,) for name, vote in TURN.items() if vote.veto]
    kept, *each = crossing.out_of_fold(opinions, read, seed, (), *vetoes)
    lifted = tuple(
        name
        for (name,), without in zip(vetoes, each, strict=True)
        if crossing.compare(opinions, kept, without, resamples=resamples, seed=seed).gains
    )
    (after,), before = crossing.out_of_fold(opinions, read, seed, lifted), opinions.of_opinions(read.values)
    comparison = crossing.compare(opinions, before, after, resamples=resamples, seed=seed)
    if not comparison.gains:
        return crossing.Fitted(comparison, before)
    return crossing.Fitted(comparison, after, crossing.fit_correction(opinions, read, np.arange(len(opinions))), lifted)


def _fit_interval(network: JudgeNetwork, opinions: Opinions, values: Vector, seed: int) -> float | None:
    """A new interval from values of held-out contexts; tells how many ratings such intervals cover.

    Preferences say nothing about where single replies lie, so the checkpoint's interval stays.
    """
    if not isinstance(opinions, Ratings):
        return None
    fitted = fitting.fit_interval(values, opinions.targets, ties=fitting.edges_of_ties(opinions.targets))
    ends = [np.append(end, end[-1]) for end in (fitted.low, fitted.high)]
    network.set_array("turn_interval", np.stack([fitted.edges, *ends]))
    return crossing.crossed_coverage(values, opinions.targets, opinions.groups, seed)
