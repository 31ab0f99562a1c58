"""`python -m reproduce`: the commands that remake tables and figures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dialeval.cli import ErrorsInOneSentence
from dialeval.cli.options import flowing, listed
from dialeval.io import interrupts
from dialeval.io.files import near
from dialeval.reports.output import telling
from reproduce.calibration import calibration
from reproduce.distances import distances
from reproduce.papers.listing import chosen_papers
from reproduce.papers.measured import answers
from reproduce.papers.render import render
from reproduce.writing import Mirror, Out, write_page


def papers(
    values: Annotated[Path, typer.Option(help="Folder with the values of earlier runs.")],
    out: Out,
    only: Annotated[list[str] | None, typer.Option(help="Papers by name; all if left out.")] = None,
    mirror: Mirror = None,
    resamples: Annotated[int, typer.Option(min=0, help="Number of bootstrap resamples.")] = 2_000,
    measure: Annotated[bool, typer.Option("--measure", help="Score what has no values and can be loaded.")] = False,
) -> None:
    """Lay the tables of the papers beside ours: a Markdown file for each paper.

    Ours come from values that `dialeval agreement` left; with --measure what is missing is scored and kept there, too.
    A cell without values says so, and the command that would make them stands under the table.

    [bold]Example[/bold]

    $ python -m reproduce papers --values results/values --out results/papers
    """
    wanted = chosen_papers(listed(only))
    shown = near(values) if values.is_absolute() else str(values)
    # What has no values is told in the tables, so only bars are shown.
    with telling(quiet=True) as reporter:
        tables = [table for paper in wanted for table in paper.tables]
        measured = answers(tables, values, mirror=mirror, resamples=resamples, reporter=reporter, measure=measure)
    for paper in wanted:
        title = f"# {paper.title}: its tables beside ours"
        write_page(out / f"{paper.name}.md", title, render(paper, measured, values=shown))


def build_app() -> typer.Typer:
    """All commands."""
    app = typer.Typer(
        name="python -m reproduce",
        cls=ErrorsInOneSentence,
        help="Remake the papers' tables, and the studies behind the documentation.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
    )
    for command in (papers, calibration, distances):
        app.command(help=flowing(str(command.__doc__)), no_args_is_help=True)(command)
    return app


if __name__ == "__main__":
    with interrupts.listening():
        build_app()()
