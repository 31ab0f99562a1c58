"""`dialeval compare`: is one set of scores higher than another?"""

from __future__ import annotations

from typing import Annotated

import typer

from dialeval.cli import options as reading
from dialeval.cli.options import listed

HELP = """Compare two files of scores, as `dialeval score` writes them for two systems, by paired tests.

For each column that both have: the means, their difference with its bootstrap interval, and the p-value of a
permutation test that swaps whole contexts. FILE#COLUMN chooses a column. A file of scores does not record its metric's
options: both must have been scored with the same --scale and checkpoint.

Rows belong together by id. Without ids, name the rows that were scored (--rows), which show whether they answer the
same contexts; without either the files are refused. `dialeval rank` compares systems from their replies in one step;
`dialeval agreement` tests which metric agrees better with people.

[bold]Examples[/bold]

$ dialeval compare old_scores.jsonl new_scores.jsonl

$ dialeval compare old_scores.jsonl new_scores.jsonl --rows old_bot.jsonl --rows new_bot.jsonl"""


def compare(
    first: Annotated[str, typer.Argument(metavar="A", help="A file of scores.")],
    second: Annotated[str, typer.Argument(metavar="B", help="Another one.")],
    lower_is_better: Annotated[list[str] | None, typer.Option(help="Columns for which lower is better.")] = None,
    rows: Annotated[
        list[str] | None,
        typer.Option(help="The scored rows, if score files have no ids: one file, or one each for A and B."),
    ] = None,
    columns_b: reading.ColumnsB = None,
    allow_missing: Annotated[
        bool, typer.Option("--allow-missing", help="Allow more than 10 % unpaired rows in one file.")
    ] = False,
    resamples: Annotated[
        int, typer.Option(min=100, max=10**6, help="Resamples of the bootstrap and the permutation test.")
    ] = 10_000,
    seed: Annotated[int, typer.Option(min=0, help="Random seed.")] = 0,
    *,
    read: reading.Read,
) -> None:
    """Print the paired tests."""
    from dialeval.agreement.score_comparison import compare as compare_scores
    from dialeval.reports.console import show_verdicts

    verdicts = compare_scores(
        first,
        second,
        rows=[read(file, **reading.of_second(index, columns_b)) for index, file in enumerate(rows or ())],
        lower_is_better=listed(lower_is_better), allow_missing=allow_missing, resamples=resamples, seed=seed,
    )  # fmt: skip
    show_verdicts(verdicts)
