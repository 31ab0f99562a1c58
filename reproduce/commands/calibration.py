"""`python -m reproduce calibration`: do scores mean what they say?"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from dialeval.cli.options import command_line, flowing, listed

_HELP = """Check what scores promise: human percentiles, and probabilities, on dialogues that nobody trained on.

A human percentile of 0.3 says that 30 % of people's replies score lower; a probability of 0.7 that seven in ten such
replies are right. Each is compared with what is found, corpus by corpus.

--dialogues CORPUS:SPLIT reads FOLDER/CORPUS/SPLIT.jsonl(.gz) below --corpora, one dialogue a line with its
`utterances`, or a Hub data set as hub:OWNER/NAME:SPLIT. True next turns are the right replies, random turns of the same
corpus the wrong ones. --benchmarks takes sets that label replies.

[bold]Output[/bold] in the folder: calibration.md, calibration.jsonl (every number and curve), calibration.png.

[bold]Example[/bold]

$ python -m reproduce calibration -m density,deb --corpora corpora/ --dialogues
dailydialog:test,convai2:validation --out results/calibration"""


def add_to(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command("calibration", help=flowing(_HELP), no_args_is_help=True)(calibration)


def calibration(
    metrics: Annotated[list[str], typer.Option("--metrics", "-m", help="Learned metrics, as in `dialeval agreement`.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for results.")],
    dialogues: Annotated[list[str] | None, typer.Option(help="CORPUS:SPLIT, several separated by commas.")] = None,
    corpora: Annotated[Path, typer.Option(help="Folder of the corpora.")] = Path(),
    benchmarks: Annotated[list[str] | None, typer.Option("--benchmarks", "-b", help="Benchmarks with labels.")] = None,
    pairs: Annotated[int, typer.Option(min=10, help="True replies drawn from each corpus.")] = 500,
    mirror: Annotated[
        str | None, typer.Option(envvar="DIALEVAL_MIRROR", help="Folder or URL of benchmark files, instead of GitHub.")
    ] = None,
    plots: Annotated[str, typer.Option(help="Formats of the picture: png, svg, png,svg or none.")] = "png",
    seed: Annotated[int, typer.Option(min=0, help="Random seed.")] = 0,
) -> None:
    """Score, compare, and write what was found."""
    from dialeval.agreement.sources import find_sources
    from dialeval.reports.output import plot_formats
    from dialeval.robustness.inputs import read_input
    from reproduce.calibration import benchmark_sample, calibrations, dialogue_sample
    from reproduce.calibration_report import write_calibrations

    formats = plot_formats(plots)
    samples = []
    for text in listed(dialogues):
        name, colon, split = text.rpartition(":")
        if not (colon and name and split):
            raise ValueError(f"--dialogues {text!r} is not CORPUS:SPLIT; write for instance dailydialog:test")
        samples.append(dialogue_sample(corpora, name, split, pairs=pairs, seed=seed))
    samples += [benchmark_sample(read_input(name, mirror)) for name in listed(benchmarks)]
    if not samples:
        raise ValueError("there is nothing to check the scores on; give --dialogues or --benchmarks")
    sources = {source.name: source.metric for source in find_sources(listed(metrics))}
    judged = {name: metric for name, metric in sources.items() if metric is not None}
    if lacking := [name for name in sources if name not in judged]:
        raise ValueError(f"{lacking[0]} is a file of scores, which cannot score other replies; name a metric")
    found = calibrations(judged, samples, seed=seed)
    for path in write_calibrations(
        found, out, command=command_line(sys.argv[1:], program="python -m reproduce"), formats=formats
    ):
        typer.echo(path)
