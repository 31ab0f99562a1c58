"""`python -m reproduce calibration`: do percentiles and probabilities hold on dialogues that nobody trained on?

A human percentile promises that a share p of people's replies scores below p. A probability promises
that of the replies called 0.7 seven in ten are right. Both are checked corpus by corpus: true next
turns of held-out dialogues, and beside each a random turn of the same corpus as the wrong reply.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer
from numpy.typing import NDArray

from corpora.batches import CandidateSet
from corpora.dialogues import read_corpus
from corpora.negatives import NegativeCounts
from dialeval.agreement.sources import find_sources
from dialeval.cli.options import listed
from dialeval.core.exchange import Exchange
from dialeval.io.files import plain
from dialeval.io.tables import markdown_table
from dialeval.papers.deb import ReliabilityBin, expected_calibration_error, reliability
from dialeval.papers.learned import LearnedMetric
from dialeval.registry.interface import Metric
from dialeval.reports.plots.figures import SOFT, new_grid, save
from dialeval.statistics.bootstrap import Interval, bootstrap, interval, mean_of, number_groups
from dialeval.statistics.correlation import Floats
from reproduce.writing import Out, write_page

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Of this share of samples that are calibrated the largest gap stays below `Percentiles.by_chance` (Kolmogorov).
_KOLMOGOROV_95 = 1.358
GRID: Floats = np.linspace(0.0, 1.0, 101)


@dataclass(frozen=True)
class LabelledReplies:
    """Replies, which of them are right, and which dialogue or context each belongs to."""

    name: str
    exchanges: Sequence[Exchange]
    valid: NDArray[np.bool_]
    groups: NDArray[np.intp]


@dataclass(frozen=True)
class Percentiles:
    """How the percentiles of people's replies spread; if the promise holds, evenly from 0 to 1."""

    n: int
    mean: float
    interval: Interval
    #: The greatest distance between a percentile and the share of replies below it.
    gap: float
    by_chance: float
    mean_of_wrong: float
    #: Share of people's replies at or below each point of `GRID`.
    curve: tuple[float, ...]


@dataclass(frozen=True)
class Probabilities:
    """What became of replies, by the probability that they were given."""

    n: int
    mean_promise: float
    share_valid: float
    error: float
    bins: tuple[ReliabilityBin, ...]


@dataclass(frozen=True)
class Calibration:
    """One metric on one sample."""

    metric: str
    sample: str
    signature: str
    percentiles: Percentiles
    probabilities: Probabilities | None


def dialogue_sample(root: Path, name: str, split: str, *, pairs: int) -> LabelledReplies:
    """So many turns of a corpus' dialogues, each with one random turn of the corpus in its place."""
    corpus = CandidateSet(read_corpus(root, name, split), NegativeCounts(random=1), seed=0)
    chosen = np.random.default_rng(0).permutation(len(corpus))[:pairs]
    candidates = [corpus.get(int(index)) for index in sorted(chosen.tolist())]
    exchanges = [exchange for candidate in candidates for exchange in candidate.exchanges()]
    dialogues = [corpus.turns[int(index)][0] for index in sorted(chosen.tolist()) for _ in range(2)]
    kept = [number for number, exchange in enumerate(exchanges) if not exchange.is_empty]
    return LabelledReplies(
        f"{name}:{split}",
        [exchanges[number] for number in kept],
        np.array([number % 2 == 0 for number in kept]),
        number_groups([dialogues[number] for number in kept]),
    )


def calibrations(metrics: Mapping[str, Metric], samples: Sequence[LabelledReplies]) -> list[Calibration]:
    """Every metric on every sample."""
    for name, metric in metrics.items():
        if "human_percentile" not in metric.scales:
            raise ValueError(f"{name} has no human percentiles; of the metrics those trained here have")
    return [_calibration(name, metric, sample) for sample in samples for name, metric in metrics.items()]


def _calibration(name: str, metric: Metric, sample: LabelledReplies) -> Calibration:
    scores = metric.score_exchanges(sample.exchanges, progress=True)
    shares = metric.rescale(np.asarray(scores.values, dtype=np.float64), "human_percentile")
    promised = None
    if isinstance(metric, LearnedMetric) and metric.is_probability:
        promised = probabilities(np.asarray(scores.values, dtype=np.float64), sample.valid)
    spread = percentiles(shares, sample.valid, sample.groups)
    return Calibration(name, sample.name, str(scores.signature), spread, promised)


def percentiles(
    shares: Floats, valid: NDArray[np.bool_], groups: NDArray[np.intp], *, resamples: int = 10_000
) -> Percentiles:
    """How evenly the percentiles of the right replies spread, and where those of the wrong ones lie."""
    if not valid.any():
        raise ValueError("there is no right reply, so the percentiles of people's replies cannot be checked")
    people, owners = np.sort(shares[valid]), number_groups(groups[valid].tolist())
    count = int(owners.max()) + 1
    drawn = bootstrap({"mean": mean_of(shares[valid], owners, count)}, count, resamples=resamples, seed=0)
    steps = np.arange(len(people) + 1) / len(people)
    # The distance is largest just before or just after a step of the observed share.
    gap = max(np.abs(people - steps[1:]).max(), np.abs(people - steps[:-1]).max())
    return Percentiles(
        n=len(people),
        mean=float(people.mean()),
        interval=interval(drawn["mean"]),
        gap=float(gap),
        by_chance=float(_KOLMOGOROV_95 / np.sqrt(len(people))),
        mean_of_wrong=float(shares[~valid].mean()) if (~valid).any() else float("nan"),
        curve=tuple(float(share) for share in np.searchsorted(people, GRID, side="right") / len(people)),
    )


def probabilities(values: Floats, valid: NDArray[np.bool_]) -> Probabilities:
    """Promise against outcome in ten bins."""
    bins = reliability(values, valid)
    return Probabilities(
        len(values), float(values.mean()), float(valid.mean()), expected_calibration_error(bins), tuple(bins)
    )


_PAGE = """# Do scores mean what they say?

**Human percentiles.** A value of .30 promises that 30 % of people's replies score lower. If that holds, the percentiles
of people's replies spread evenly: their mean is .5, and the *gap*, the greatest distance between a percentile and the
share of replies below it, stays under what chance alone gives 19 times in 20 (in brackets; dialogues count as
independent rows there, so the bound is on the strict side). *Wrong replies* are random turns of the same corpus, or
those that the benchmark labels wrong; the lower their mean percentile, the better.

**Probabilities.** Of the replies that a metric calls valid with 70 %, seven in ten should be. The *calibration error*
is the mean distance between promise and outcome in ten bins. It depends on how many of the replies are wrong and how:
a promise learned among as many wrong as right replies holds for such a mixture only.
"""


def page(measured: Sequence[Calibration]) -> Iterable[str]:
    """The lines of the page."""
    yield "## Human percentiles\n"
    header = ["metric", "dialogues", "replies", "mean percentile", "gap (by chance)", "mean of wrong replies"]
    yield from markdown_table(header, map(_percentile_row, sorted(measured, key=lambda result: result.metric)))
    promised = [result for result in measured if result.probabilities is not None]
    if promised:
        yield "\n## Probabilities\n"
        header = ["metric", "dialogues", "replies", "mean promise", "share valid", "calibration error"]
        yield from markdown_table(header, (row for result in promised for row in _probability_rows(result)))


def _percentile_row(result: Calibration) -> list[str]:
    spread = result.percentiles
    mean = f"{spread.mean:.3f} [{spread.interval.low:.3f}, {spread.interval.high:.3f}]"
    wrong = "" if math.isnan(spread.mean_of_wrong) else f"{spread.mean_of_wrong:.3f}"
    gap = f"{spread.gap:.3f} ({spread.by_chance:.3f})"
    return [f"`{result.metric}`", result.sample, str(spread.n), mean, gap, wrong]


def _probability_rows(result: Calibration) -> Iterable[list[str]]:
    if (promise := result.probabilities) is not None:
        shares = [f"{value:.3f}" for value in (promise.mean_promise, promise.share_valid, promise.error)]
        yield [f"`{result.metric}`", result.sample, str(promise.n), *shares]


def curves(measured: Sequence[Calibration]) -> Figure:
    """A panel per metric with a line per corpus; beside them the reliability of probabilities."""
    metrics = list(dict.fromkeys(result.metric for result in measured))
    promised = list(dict.fromkeys(result.metric for result in measured if result.probabilities is not None))
    figure, panels = new_grid(len(metrics) + len(promised), 3.6, 3.8)
    for axes in panels:
        axes.plot([0, 1], [0, 1], color=SOFT, linewidth=0.8, linestyle="--")
        axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    for axes, metric in zip(panels, metrics, strict=False):
        for result in (result for result in measured if result.metric == metric):
            axes.plot(GRID, result.percentiles.curve, linewidth=1.3, label=result.sample)
        axes.set_xlabel("human percentile")
        axes.set_ylabel("share of people's replies below")
        axes.set_title(metric, fontsize="medium", loc="left")
    for axes, metric in zip(panels[len(metrics) :], promised, strict=False):
        for result in (result for result in measured if result.metric == metric and result.probabilities is not None):
            bins = result.probabilities.bins if result.probabilities is not None else ()
            axes.plot(
                [each.predicted for each in bins],
                [each.observed for each in bins],
                marker="o",
                markersize=3,
                linewidth=1.3,
                label=result.sample,
            )
        axes.set_xlabel("promised probability")
        axes.set_ylabel("share that is right")
        axes.set_title(f"{metric}: probability", fontsize="medium", loc="left")
    panels[0].legend(frameon=False, fontsize="x-small", loc="upper left")
    return figure


def calibration(
    metrics: Annotated[list[str], typer.Option("--metrics", "-m", help="Learned metrics, as in `dialeval agreement`.")],
    out: Out,
    dialogues: Annotated[list[str], typer.Option(help="CORPUS:SPLIT, several separated by commas.")],
    corpora: Annotated[Path, typer.Option(help="Folder of the corpora.")] = Path(),
    pairs: Annotated[int, typer.Option(min=10, help="True replies drawn from each corpus.")] = 500,
) -> None:
    """Check what scores promise: human percentiles, and probabilities, on dialogues that nobody trained on.

    A human percentile of 0.3 says that 30 % of people's replies score lower; a probability of 0.7 that seven in ten
    such replies are right. Each is compared with what is found, corpus by corpus.

    --dialogues CORPUS:SPLIT reads FOLDER/CORPUS/SPLIT.jsonl(.gz) below --corpora, one dialogue a line with its
    `utterances`, or a Hub data set as hub:OWNER/NAME:SPLIT. True next turns are the right replies, random turns of the
    same corpus the wrong ones.

    [bold]Output[/bold] in the folder: calibration.md, calibration.jsonl (every number and curve), calibration.png.

    [bold]Example[/bold]

    $ python -m reproduce calibration -m density,deb --corpora corpora/ --dialogues
    dailydialog:test,convai2:validation --out results/calibration
    """
    samples = []
    for text in listed(dialogues):
        name, colon, split = text.rpartition(":")
        if not (colon and name and split):
            raise ValueError(f"--dialogues {text!r} is not CORPUS:SPLIT; write for instance dailydialog:test")
        samples.append(dialogue_sample(corpora, name, split, pairs=pairs))
    sources = {source.name: source.metric for source in find_sources(listed(metrics))}
    judged = {name: metric for name, metric in sources.items() if metric is not None}
    if lacking := [name for name in sources if name not in judged]:
        raise ValueError(f"{lacking[0]} is a file of scores, which cannot score other replies; name a metric")
    measured = calibrations(judged, samples)
    write_page(out / "calibration.md", _PAGE, page(measured), [plain(asdict(result)) for result in measured])
    save(curves(measured), out / "calibration")
