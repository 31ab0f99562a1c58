"""What the commands share: options, and a page that says how it was made."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from dialeval.cli.options import command_line
from dialeval.io.files import write_atomically

Mirror = Annotated[
    str | None, typer.Option(envvar="DIALEVAL_MIRROR", help="Folder or URL of benchmark files, instead of GitHub.")
]
Out = Annotated[Path, typer.Option("--out", "-o", help="Folder for results.")]


def made_by() -> str:
    """The command that runs, as it may stand on a page."""
    return command_line(sys.argv[1:], program="python -m reproduce")


def write_page(path: Path, intro: str, lines: Iterable[str], records: Iterable[Any] = ()) -> None:
    """A page with what is said of it, the command and its lines; beside it the records that it shows, as JSON lines."""
    write_atomically(path, [*intro.splitlines(), "", "Made by:", "", "```", made_by(), "```", "", *lines])
    typer.echo(path)
    if rows := [json.dumps(record, ensure_ascii=False) for record in records]:
        write_atomically(path.with_suffix(".jsonl"), rows)
        typer.echo(path.with_suffix(".jsonl"))
