"""`dialeval tune`: a judge that learns from your own ratings."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dialeval.cli import options as reading
from dialeval.cli.options import in_panel, listed, say

_learning = in_panel("Learning")


def tune(
    context: typer.Context,
    rows: Annotated[str, typer.Argument(metavar="ROWS", help="File, - for standard input, data-set folder or Hub id.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Output folder; it appears when it is complete.")],
    checkpoint: Annotated[
        str | None, _learning(help="Judge to start from: folder, name or Hub id; default: the embedded one.")
    ] = None,
    human: Annotated[
        str | None, _learning(help="Human-written replies, for the human percentile of the new values.")
    ] = None,
    contaminated_by: Annotated[
        list[str] | None, _learning(help="Benchmarks that the rows come from; results on them will be marked.")
    ] = None,
    seed: Annotated[int, _learning(min=0, help="Random seed.")] = 0,
    resamples: Annotated[int, _learning(min=100, max=10**6, help="Resamples behind the intervals.")] = 2000,
    empty: reading.Empty = "error",
    device: Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1, ...; default: automatic.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing checkpoint at --out.")] = False,
) -> None:
    """Fit the judge to replies that people rated, or to pairs of replies that they compared.

    [bold]Rows[/bold] are those of `dialeval score`, each with a rating (a number on any scale, higher is better) or
    with ratings (a list, one of each rater; in CSV 4;5;3). Or each has response_a, response_b and preferred: a, b or
    tie. At least 30 opinions about 10 contexts; 100 are recommended, and 5,000 take minutes.

    [bold]What happens[/bold]: a ridge regression on everything that the judge computes of a reply corrects its values.
    Agreement on held-out contexts, by cross-validation, is printed before and after, with its interval; also how well
    one rater predicts the others, if there are several, and how each aspect agrees with them. Without a gain the judge
    is unchanged.

    [bold]Output[/bold]: an ordinary checkpoint folder with a card, which every command takes as --checkpoint. It holds
    counts and figures of your rows, no text.

    [bold]Examples[/bold]

    $ dialeval tune rated.jsonl --out mine

    $ dialeval score --metric judge --checkpoint mine --input rows.jsonl --output scores.jsonl

    $ dialeval tune rated.csv --columns response=reply,rating=stars --human our-agents.jsonl --out mine
    """

    from dialeval.tuning import tune as tune_judge

    read = reading.reader(context)
    outcome = tune_judge(
        read(rows),
        out=out,
        checkpoint=checkpoint,
        human=None if human is None else read(human, columns=None, split=None, subset=None, other_languages="mark"),
        empty=empty, contaminated_by=listed(contaminated_by), seed=seed, resamples=resamples, device=device,
        overwrite=overwrite, progress=True,
    )  # fmt: skip
    for line in outcome.lines():
        say(line)
    say(f"{outcome.folder}: dialeval score --metric judge --checkpoint {outcome.folder} ...")
