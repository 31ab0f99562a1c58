"""`dialeval export`: a judge as a model that other libraries load."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dialeval.cli.options import say

HELP = """Write a judge's encoder and its head for relevance as a plain cross-encoder.

The folder loads with sentence_transformers.CrossEncoder, transformers' text-classification pipeline, and servers that
take sequence classifiers, without dialeval. Its README says what it lacks beside the judge.

[bold]Examples[/bold]

$ dialeval export judge --to relevance

$ dialeval export judge --checkpoint judge-open --to relevance-open"""


def export(
    what: Annotated[str, typer.Argument(metavar="judge", help="The metric: judge.")],
    to: Annotated[Path, typer.Option("--to", help="A new folder.", file_okay=False)],
    checkpoint: Annotated[str | None, typer.Option(help="Name, folder or Hub id of a judge.")] = None,
) -> None:
    """Fold, write, say where it lies."""
    if what != "judge":
        raise ValueError(f"{what} cannot be exported; judge can")
    from dialeval.io.places import check_new_folder

    check_new_folder(to)
    from dialeval.hub.export import export_judge

    say(f"wrote {export_judge(checkpoint, to)}")
