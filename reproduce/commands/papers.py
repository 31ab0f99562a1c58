"""`python -m reproduce papers`: the published tables and figures beside ours."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from dialeval.cli.options import command_line, flowing, listed

_HELP = """Lay the tables and figures of the papers beside ours: a Markdown file for each paper, with its pictures.

Ours come from values that `dialeval agreement` left; with --measure what is missing is scored and kept there, too. A
cell without values says so, and the command that would make them stands under the table.

[bold]Example[/bold]

$ python -m reproduce papers --values results/values --out results/papers"""


def add_to(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command("papers", help=flowing(_HELP), no_args_is_help=True)(papers)


def papers(
    values: Annotated[Path, typer.Option(help="Folder with the values of earlier runs.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for Markdown files and, in `figures`, pictures.")],
    only: Annotated[list[str] | None, typer.Option(help="Papers by name; all if left out.")] = None,
    mirror: Annotated[
        str | None, typer.Option(envvar="DIALEVAL_MIRROR", help="Folder or URL of benchmark files, instead of GitHub.")
    ] = None,
    resamples: Annotated[int, typer.Option(min=0, help="Number of bootstrap resamples.")] = 2_000,
    measure: Annotated[bool, typer.Option("--measure", help="Score what has no values and can be loaded.")] = False,
) -> None:
    """Look up, and write."""
    from dialeval.io.files import near, write_atomically
    from dialeval.reports.output import telling
    from dialeval.reports.plots.figures import save
    from reproduce.papers.catalogue import chosen_papers
    from reproduce.papers.figures import draw
    from reproduce.papers.measured import answers
    from reproduce.papers.render import render

    wanted = chosen_papers(listed(only))
    command = command_line(sys.argv[1:], program="python -m reproduce")
    shown = near(values) if values.is_absolute() else str(values)
    # What has no values is told in the tables, so only bars are shown.
    with telling(quiet=True) as reporter:
        tables = [table for paper in wanted for table in paper.tables]
        found = answers(tables, values, mirror=mirror, resamples=resamples, reporter=reporter, measure=measure)
        figures = [dict(draw(paper, found, values, mirror=mirror, reporter=reporter)) for paper in wanted]
    for paper, drawn in zip(wanted, figures, strict=True):
        for name, figure in drawn.items():
            save(figure, out / "figures" / name)
        path = out / f"{paper.name}.md"
        page = render(paper, found, command=command, values=shown, drawn=drawn)
        write_atomically(path, [page.rstrip("\n")])
        typer.echo(path)
