"""`python -m reproduce distances`: what features of replies look like, and how FBD and PRD see replies get worse.

Replies of people are held against themselves with a growing share of them spoilt in one of four ways, those that the
authors' code has: FBD should grow from 0 and PRD fall from 1 at every step.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from random import Random
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from dialeval.agreement.prepare import open_benchmark
from dialeval.cli.options import listed, pairs
from dialeval.core.exchange import Exchange
from dialeval.io.tables import markdown_table
from dialeval.papers.fbd import Fbd
from dialeval.papers.feature_set import FrozenFeatures
from dialeval.papers.prd import Prd
from dialeval.registry import load
from dialeval.reports.plots.figures import COLOURS, new_grid, save
from dialeval.robustness.attacks import ATTACKS, Pool
from reproduce.feature_statistics import conicity, normality
from reproduce.writing import Mirror, Out, write_page

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: What the authors' code does to replies, and the attack that does it here.
SPOILT = {"noise": "noise", "mismatch": "random_reply", "permutation": "jumble", "repetition": "generic_reply"}
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)

#: Table 4 of Xiang et al. 2021: mean and standard deviation, by benchmark.
PRINTED = {
    "BERT": {
        "fbd_personam": (0.57, 0.44),
        "fbd_dailyh": (0.65, 0.39),
        "fbd_convai2": (0.60, 0.42),
        "fbd_empathetic": (0.65, 0.39),
        "fbd_dailyz": (0.67, 0.38),
        "fbd_personaz": (0.65, 0.38),
    },
    "RoBERTa": {
        "fbd_personam": (0.71, 0.38),
        "fbd_dailyh": (0.68, 0.37),
        "fbd_convai2": (0.73, 0.34),
        "fbd_empathetic": (0.68, 0.37),
        "fbd_dailyz": (0.68, 0.37),
        "fbd_personaz": (0.71, 0.33),
    },
}
#: Fig. 4 of Sai et al. 2020, before and after the training, by the replies to one context that are taken together.
PRINTED_CONICITY = {
    "before": {"positive": 0.89, "random": 0.59, "adversarial": 0.74},
    "after": {"positive": 0.86, "random": 0.37, "adversarial": 0.35},
}


@dataclass(frozen=True)
class Normal:
    """Shapiro-Wilk's test of the features of people's replies: one encoder, one corpus."""

    encoder: str
    corpus: str
    n: int
    w_mean: float
    w_std: float
    share_p_below_05: float
    pooled_mean: float
    pooled_std: float


@dataclass(frozen=True)
class Curve:
    """A metric's values along `SHARES`, and how many of the replies could be spoilt."""

    metric: str
    encoder: str
    corpus: str
    change: str
    n: int
    spoilt: int
    values: tuple[float, ...]

    @property
    def worse_steps(self) -> int:
        """Steps at which the value says that the replies got worse."""
        sign = -1 if self.metric == "prd" else 1
        return sum(sign * (after - before) > 0 for before, after in pairwise(self.values))


def replies_of_people(metric: Fbd, corpus: str, mirror: str | None = None) -> list[Exchange]:
    """What FBD takes for the human side of a benchmark: the references, once for each query."""
    rows = open_benchmark(corpus, mirror).dataset
    exchanges = [
        Exchange(tuple(row["context"]), row["response"], tuple(row["references"] or ()), system=row["system"])
        for row in rows
    ]
    asked = set(metric.encode(exchanges).rows_of_queries().tolist())
    return [pair for row, pair in metric.human_pairs(exchanges) if row in asked]


def replies_by_context(corpus: str, mirror: str | None = None, *, contexts: int) -> list[tuple[Exchange, str]]:
    """The replies to some contexts of a labelled benchmark, each once with its kind; the same contexts every time."""
    rows = open_benchmark(corpus, mirror).dataset
    columns = (rows[name][:] for name in ("context", "response", "kind_of_reply"))
    labelled = dict.fromkeys((Exchange(tuple(turns), reply), kind) for turns, reply, kind in zip(*columns, strict=True))
    replies = [(exchange, kind) for exchange, kind in labelled if not exchange.is_empty]
    known = list(dict.fromkeys(exchange.context for exchange, _ in replies))
    chosen = set(Random(0).sample(known, min(contexts, len(known))))
    return [(exchange, kind) for exchange, kind in replies if exchange.context in chosen]


def cones(replies: Sequence[tuple[Exchange, str]], features: NDArray[np.float32]) -> dict[str, float]:
    """Conicity of the positive replies to a context, alone and with each kind of wrong ones, averaged over contexts."""
    by_context: dict[tuple[str, ...], list[int]] = {}
    for row, (exchange, _) in enumerate(replies):
        by_context.setdefault(exchange.context, []).append(row)
    means = {}
    for kind in ("positive", "random", "adversarial"):
        sets = [[row for row in rows if replies[row][1] in ("positive", kind)] for rows in by_context.values()]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what is not defined is not counted
            means[kind] = float(np.nanmean([conicity(features[rows]) for rows in sets if len(rows) > 1]))
    return means


def cones_before_and_after(corpus: str, mirror: str | None = None, *, contexts: int = 200) -> dict[str, Any]:
    """By the features of the encoder before any training, and by those that DEB's head reads."""
    replies = replies_by_context(corpus, mirror, contexts=contexts)
    exchanges = [exchange for exchange, _ in replies]
    deb: Any = load("deb")
    after = deb.encoder.encode(exchanges, progress=True).rows[:, : -len(("valid", "other"))]
    before = FrozenFeatures.shared(None).of(exchanges, progress=True).rows
    return {"before": cones(replies, before), "after": cones(replies, after), "checkpoint": str(deb.signature())}


def spoil(replies: Sequence[Exchange], change: str, *, seed: int = 0) -> list[Exchange | None]:
    """Every reply made worse, None where the change has nothing to work on."""
    pool, attack = Pool(replies), ATTACKS[SPOILT[change]]
    return [attack.apply(reply, pool, seed=seed) for reply in replies]


def normal_features(metric: Fbd, encoder: str, corpus: str, replies: Sequence[Exchange]) -> Normal:
    """One cell of the table."""
    tests = normality(metric.features.of(replies).rows)
    spread = (float(tests.w.mean()), float(tests.w.std()), float((tests.p < 0.05).mean()))
    return Normal(encoder, corpus, len(replies), *spread, *tests.pooled)


def curves(
    encoder: str | None, name: str, corpus: str, replies: Sequence[Exchange], *, seed: int = 0
) -> Iterator[Curve]:
    """Both metrics under every change. Which replies are spoilt first is drawn by the seed; more contain fewer."""
    order = list(range(len(replies)))
    Random(seed).shuffle(order)
    for change in SPOILT:
        worse = spoil(replies, change, seed=seed)
        sets = []
        for share in SHARES:
            chosen = set(order[: round(share * len(order))])
            sets.append([other if row in chosen and (other := worse[row]) else replies[row] for row in order])
        for metric in (Fbd(encoder, resamples=0), Prd(encoder, resamples=0)):
            people = metric.features.of(sets[0])
            with warnings.catch_warnings():
                # Small sets inflate the value; all sets here are equally small.
                warnings.filterwarnings("ignore", message="fewer rows")
                values = tuple(float(metric.compare(people, metric.features.of(part)).value) for part in sets)
            spoilt = sum(reply is not None for reply in worse)
            yield Curve(metric.info.name, name, corpus, change, len(replies), spoilt, values)


_PAGE = "# What features of replies look like"
_NORMALITY = """## Normality of the features of people's replies

FBD takes the features for normal. Shapiro-Wilk's test of each dimension, averaged over the dimensions. The paper's
Table 4 averages statistics W and p-values thrown together; exactly normal features would have about 0.74 ± 0.32 there.
The last two blocks are what the test itself says: W, and the share of dimensions that are not normal at 0.05.
"""
_CONICITY = """
## Conicity of the replies to one context

The mean cosine between the features of the replies and their mean: near 1 they lie in one narrow cone, and a metric can
hardly tell them apart. Of the positive replies to a context alone, then with its random or adversarial ones among them;
by the encoder before any training, and by what DEB's head reads. Published: Fig. 4 of Sai et al. 2020.
"""
_CURVES = """
## Replies that get worse

Replies of people against themselves, a growing share of them spoilt as the authors' code does it: words put in (noise),
replies to other contexts (mismatch), words in another order (permutation), replies that fit anywhere (repetition).
From none spoilt to all in four steps; *as it should* counts the steps at which FBD grows and PRD falls.
"""


def page(tested: Sequence[Normal], narrow: dict[str, Any], all_curves: Sequence[Curve]) -> Iterable[str]:
    """The lines of the page."""
    yield from _NORMALITY.splitlines()
    corpora = list(dict.fromkeys(test.corpus for test in tested))
    cells = {(test.encoder, test.corpus): test for test in tested}
    encoders = list(dict.fromkeys(test.encoder for test in tested))
    shown: dict[str, Callable[[Normal], str]] = {
        "": lambda test: _spread((test.pooled_mean, test.pooled_std)),
        ": W": lambda test: f"{test.w_mean:.3f} ± {test.w_std:.3f}",
        ": not normal": lambda test: f"{test.share_p_below_05:.0%}",
    }
    rows = [
        [f"{name}, paper", *(_spread(known.get(corpus.partition("@")[0])) for corpus in corpora)]
        for name, known in PRINTED.items()
    ]
    for suffix, cell in shown.items():
        rows += [[f"{name}{suffix}", *(cell(cells[name, corpus]) for corpus in corpora)] for name in encoders]
    rows.append(["n of ours", *(str(cells[encoders[0], corpus].n) for corpus in corpora)])
    yield ""
    yield from markdown_table(["features", *corpora], rows)
    if narrow:
        yield from _CONICITY.splitlines()
        yield ""
        rows = [
            [name, *(f"{values[kind]:.2f}" for values in (PRINTED_CONICITY[name], narrow[name]) for kind in values)]
            for name in PRINTED_CONICITY
        ]
        kinds = ("positive", "and random", "and adversarial")
        header = ["features", *(f"{kind}, paper" for kind in kinds), *(f"{kind}, ours" for kind in kinds)]
        yield from markdown_table(header, rows)
        yield f"\nDEB is `{narrow['checkpoint']}`."
    if all_curves:
        yield from _CURVES.splitlines()
        yield ""
        header = ["metric", "encoder", "replies", "change", "spoilt", *(f"{share:.0%}" for share in SHARES)]
        yield from markdown_table([*header, "as it should"], map(_curve_row, all_curves))
        yield "\n![FBD and PRD of replies that get worse](distances.png)"


def _spread(pair: tuple[float, float] | None) -> str:
    return "" if pair is None else f"{pair[0]:.2f} ± {pair[1]:.2f}"


def _curve_row(curve: Curve) -> list[str]:
    values = [f"{value:.3f}" for value in curve.values]
    spoilt = f"{curve.spoilt} of {curve.n}"
    worse = f"{curve.worse_steps} of {len(SHARES) - 1}"
    return [curve.metric, curve.encoder, curve.corpus, curve.change, spoilt, *values, worse]


def picture(all_curves: Sequence[Curve]) -> Figure:
    """A panel per metric, encoder and corpus with a line per change."""
    panels = list(dict.fromkeys((curve.metric, curve.encoder, curve.corpus) for curve in all_curves))
    figure, axes = new_grid(len(panels), 2.9, 2.6)
    for place, key in zip(axes, panels, strict=True):
        for curve in (curve for curve in all_curves if (curve.metric, curve.encoder, curve.corpus) == key):
            colour = COLOURS[list(SPOILT).index(curve.change) % len(COLOURS)]
            place.plot(
                [100 * share for share in SHARES], curve.values, "o-", color=colour, markersize=3, label=curve.change
            )
        place.set_title(f"{key[0]}, {key[1]}\n{key[2]}", fontsize="small")
        place.set_xlabel("% of replies spoilt", fontsize="small")
    axes[0].legend(frameon=False, fontsize="x-small")
    return figure


def distances(
    benchmarks: Annotated[list[str], typer.Option("--benchmarks", "-b", help="Benchmarks with human replies.")],
    out: Out,
    damaged: Annotated[
        list[str] | None, typer.Option("--curves", help="Benchmarks whose replies are damaged; none by default.")
    ] = None,
    encoder: Annotated[
        list[str] | None,
        typer.Option(help="NAME=ENCODER beside the plain one: a pretrained encoder or a trained checkpoint."),
    ] = None,
    conicity_of: Annotated[str | None, typer.Option("--conicity", help="A benchmark that labels replies.")] = None,
    mirror: Mirror = None,
) -> None:
    """Study the features of replies, and how FBD and PRD see replies get worse.

    [bold]Normality[/bold] is Shapiro-Wilk's test of each dimension of the features of people's replies, for every
    benchmark and encoder, beside the paper's table.

    [bold]Conicity[/bold] is the mean cosine between the replies to one context and their mean, before DEB's training
    and after it.

    [bold]Curves[/bold] hold people's replies against themselves with a growing share of them spoilt, by noise, replies
    to other contexts, words in another order and replies that fit anywhere.

    [bold]Example[/bold]

    $ python -m reproduce distances -b fbd_dailyz,fbd_dailyh --curves fbd_dailyz --conicity dailydialogpp_test
    --out distances/
    """
    encoders: dict[str, str | None] = {"plain": None, **pairs(encoder, flag="--encoder", form="NAME=ENCODER")}
    tested: list[Normal] = []
    all_curves: list[Curve] = []
    for name, checkpoint in encoders.items():
        metric = Fbd(checkpoint, resamples=0)
        tested += (
            normal_features(metric, name, corpus, replies_of_people(metric, corpus, mirror))
            for corpus in listed(benchmarks)
        )
        for corpus in listed(damaged):
            all_curves += curves(checkpoint, name, corpus, replies_of_people(metric, corpus, mirror))
    narrow = {} if conicity_of is None else cones_before_and_after(conicity_of, mirror)
    records = [*map(asdict, tested), *([narrow] if narrow else []), *map(asdict, all_curves)]
    write_page(out / "distances.md", _PAGE, page(tested, narrow, all_curves), records)
    if all_curves:
        save(picture(all_curves), out / "distances")
