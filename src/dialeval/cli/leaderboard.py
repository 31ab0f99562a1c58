"""`dialeval leaderboard`: the pages of earlier runs, made anew."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dialeval.cli.options import flowing

_HELP = """Make the leaderboards of earlier runs anew from their results; nothing is scored or measured.

Marks follow what the embedded checkpoints now say that they were trained on, and bold follows the present rules.

[bold]Example[/bold]

$ dialeval leaderboard results results/dailydialogpp"""


def add_to(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command("leaderboard", help=flowing(_HELP), no_args_is_help=True)(leaderboard)


def leaderboard(
    folders: Annotated[list[Path], typer.Argument(help="Folders of `dialeval agreement` runs.")],
) -> None:
    """Read, mark, write."""
    from dialeval.reports.outputs import write_leaderboards
    from dialeval.reports.stored import read_report, with_present_marks
    from dialeval.weights.find import WEIGHTS

    for folder in folders:
        report = read_report(folder)
        report.results = with_present_marks(report.results, WEIGHTS)
        report.aspects = with_present_marks(report.aspects, WEIGHTS)
        for path in write_leaderboards(report, folder):
            typer.echo(path)
