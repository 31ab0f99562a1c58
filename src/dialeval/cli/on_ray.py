"""`dialeval score --engine ray …`: Parquet files into a folder, on the cluster that is there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

import typer

from dialeval.cli.errors import ROWS_SET_ASIDE


def check_given(given: Mapping[str, Any]) -> None:
    """Refuse the options that only one process has, instead of leaving them without effect."""
    for option, value in given.items():
        if value not in (None, False):
            raise ValueError(f"--engine ray reads Parquet and writes a folder of it; leave out --{option}")


def score_on_ray(
    input: str, output: str, names: list[str], bar: Callable[[int | None], AbstractContextManager[Any]], **settings: Any
) -> None:
    """Run the job and say what it added up to."""
    if "-" in (input, output):
        raise ValueError("--engine ray reads files and writes a folder, no pipes; name both")
    from dialeval.ray import score_files

    with bar(None) as progress:
        summary = score_files(input, output, names, progress=progress, **settings)
    for line in summary.lines():
        typer.echo(line, err=True)
    if summary.n_rejected:
        typer.echo(f"{summary.n_rejected} rows were set aside in {output}/*.rejects.jsonl", err=True)
        raise typer.Exit(ROWS_SET_ASIDE)
