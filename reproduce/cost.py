"""`python -m reproduce cost`: how well each metric agrees with people, and how many rows it judges in a second."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dialeval.agreement.results import Result, read_results
from dialeval.io import parse_json
from dialeval.plots.figures import INK, MARK, SOFT, new_figure, save

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: What the panel of language models took a row, from the fastest to the slowest of them, and for 900 rows in dollars.
JUDGE_SECONDS = (2.5, 10.0)
JUDGE_DOLLARS = (3.55, 8.15)


def add_to(app: typer.Typer) -> None:
    """Add the command to the app."""

    @app.command("cost", no_args_is_help=True)
    def draw(
        results: Annotated[Path, typer.Option("--results", "-r", help="The folder of a `dialeval agreement` run.")],
        out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the picture.")],
        speed: Annotated[Path, typer.Option(help="Output of performance/suite.py.")] = Path("performance/suite.json"),
        judge: Annotated[float | None, typer.Option(help="Mean Spearman of language models, if known.")] = None,
    ) -> None:
        """Plot mean agreement of each metric against rows per second, beside what language models cost."""
        found = read_results(results)
        figure = cost(mean_agreement(found), rows_per_second(speed) | measured_rates(found), judge=judge)
        save(figure, out / "cost")


def mean_agreement(results: Sequence[Result]) -> dict[str, tuple[float, int]]:
    """Each metric's mean Spearman over benchmarks of replies (not those it was trained on), and how many there are."""
    values: dict[str, dict[str, float]] = {}
    for one in results:
        if one.statistic == "spearman" and one.level == "turn" and not one.contaminated and math.isfinite(one.value):
            values.setdefault(one.metric, {}).setdefault(one.benchmark, one.value)
    return {name: (math.fsum(found.values()) / len(found), len(found)) for name, found in values.items()}


def rows_per_second(file: Path) -> dict[str, float]:
    """The rate of each of our metrics at the largest size that performance/suite.py measured."""
    try:
        measured: Mapping[str, Mapping[str, object]] = parse_json(file.read_text(encoding="utf-8"))["measured"]
        rates = {}
        for name, one in measured.items():
            points = one["points"]
            if one["ours"] and isinstance(points, list) and points:
                largest = max(points, key=lambda point: point["rows"])
                rates[name] = float(largest["rows"]) / float(largest["seconds"])
        return rates
    except OSError as error:
        raise ValueError(f"{file} cannot be read ({error.strerror}); run `python performance/suite.py` first") from None
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError) as error:
        raise ValueError(f"{file} is no output of performance/suite.py ({error}); make it again") from None


def measured_rates(results: Sequence[Result]) -> dict[str, float]:
    """Rows per second, one after the other, of metrics that tell what each row took: language models over a network."""
    seconds: dict[str, list[float]] = {}
    for one in results:
        if one.seconds_per_row > 0:
            seconds.setdefault(one.metric, []).append(one.seconds_per_row)
    return {name: len(found) / math.fsum(found) for name, found in seconds.items()}


def cost(
    agreement: Mapping[str, tuple[float, int]], rates: Mapping[str, float], *, judge: float | None = None
) -> Figure:
    """A point for every metric that has both; the language models' speed is a band, or a bar at their agreement."""
    shared = [name for name in agreement if name in rates]
    if not shared:
        raise ValueError("no metric has both an agreement and a speed; measure the same ones with both")
    figure = new_figure(7.0, 4.6)
    axes = figure.subplots()
    slow, fast = 1 / JUDGE_SECONDS[1], 1 / JUDGE_SECONDS[0]
    # Between two bare dollar signs matplotlib would set a formula.
    label = rf"language models: \${JUDGE_DOLLARS[0]:.2f} to \${JUDGE_DOLLARS[1]:.2f} per 900 rows"
    if judge is None:
        axes.axvspan(slow, fast, color=SOFT, alpha=0.3, label=label)
    else:
        axes.plot([slow, fast], [judge, judge], color=SOFT, linewidth=5, solid_capstyle="round", label=label)
    for name in shared:
        value, count = agreement[name]
        axes.plot(rates[name], value, "o", color=MARK)
        note = (rates[name], value)
        axes.annotate(f"{name} ({count})", note, (5, 4), textcoords="offset points", fontsize="small", color=INK)
    axes.set_xscale("log")
    axes.margins(x=0.18, y=0.15)
    axes.set_xlabel("rows per second on the machine of the measurement (language models: over the network)")
    axes.set_ylabel("mean Spearman with people (benchmarks)")
    axes.legend(loc="lower left", frameon=False, fontsize="small")
    return figure
