"""`python -m reproduce distances`: what FBD and PRD stand on."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from dialeval.cli.options import command_line, flowing, listed, pairs

_HELP = """Study what FBD and PRD stand on: how normal features are, and how both see replies get worse.

[bold]Normality[/bold] is Shapiro-Wilk's test of each dimension of the features of people's replies, for every
benchmark and encoder, beside the paper's table.

[bold]Curves[/bold] hold people's replies against themselves with a growing share of them spoilt, by noise, replies to
other contexts, words in another order and replies that fit anywhere.

[bold]Example[/bold]

$ python -m reproduce distances -b fbd_dailyz,fbd_dailyh --curves fbd_dailyz --encoder DEB=deb-minilm
--out distances/"""


def add_to(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command("distances", help=flowing(_HELP), no_args_is_help=True)(distances)


def distances(
    benchmarks: Annotated[list[str], typer.Option("--benchmarks", "-b", help="Benchmarks with human replies.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for results.")],
    curves: Annotated[
        list[str] | None, typer.Option(help="Benchmarks whose replies are damaged; none by default.")
    ] = None,
    encoder: Annotated[
        list[str] | None,
        typer.Option(help="NAME=ENCODER beside the plain one: a pretrained encoder or a trained checkpoint."),
    ] = None,
    mirror: Annotated[
        str | None, typer.Option(envvar="DIALEVAL_MIRROR", help="Folder or URL of benchmark files, instead of GitHub.")
    ] = None,
) -> None:
    """Encode, test, spoil, and write what was found."""
    from dialeval.papers.fbd import Fbd
    from reproduce.distances import Curve, Normal, normal_features, replies_of_people
    from reproduce.distances import curves as curves_of
    from reproduce.distances_report import write_distances

    encoders: dict[str, str | None] = {"plain": None, **pairs(encoder, flag="--encoder", form="NAME=ENCODER")}
    tested: list[Normal] = []
    found: list[Curve] = []
    for name, checkpoint in encoders.items():
        metric = Fbd(checkpoint, resamples=0)
        tested += (
            normal_features(metric, name, corpus, replies_of_people(metric, corpus, mirror))
            for corpus in listed(benchmarks)
        )
        for corpus in listed(curves):
            found += curves_of(checkpoint, name, corpus, replies_of_people(metric, corpus, mirror))
    for path in write_distances(tested, found, out, command=command_line(sys.argv[1:], program="python -m reproduce")):
        typer.echo(path)
