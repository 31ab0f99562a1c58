"""`dialeval score-ray`: rows of Parquet, JSON lines or CSV files scored on a Ray cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from dialeval.cli import options as reading
from dialeval.cli.options import checkpoints, metrics_or_judge, say

HELP = """Score files on the Ray cluster of RAY_ADDRESS, else on all processors and GPUs of this machine.

Files and folders can be anywhere that Ray Data reads and writes (s3://, gs://, local). Scores are
Parquet files with the columns of the rows; values of fbd and prd are printed. An interrupted run is not
resumed.

[bold]Example[/bold]

$ dialeval score-ray -m judge,deb -i 's3://bucket/replies/' -o s3://bucket/scores"""


def score_ray(
    input: Annotated[str, typer.Option("--input", "-i", help="File or folder of .parquet, .jsonl or .csv.")],
    metric: Annotated[
        list[str] | None, typer.Option("--metric", "-m", help="Names, separated by commas; default: judge.")
    ] = None,
    output: Annotated[str | None, typer.Option("--output", "-o", help="Folder for Parquet files.")] = None,
    checkpoint: Annotated[list[str] | None, typer.Option(help="Weights; METRIC=CHECKPOINT with several.")] = None,
    dtype: Annotated[str | None, typer.Option(help="float32, bfloat16 or auto.")] = None,
    actors: Annotated[
        int | None, typer.Option(min=1, help="Number of model processes; default: one per GPU or per two cores.")
    ] = None,
    *,
    read: reading.Read,
) -> None:
    """Read, score, write."""
    from dialeval.io.places import check_new_folder
    from dialeval.registry import metric_class, registered
    from dialeval.registry.metric import Level
    from dialeval.scoring.on_ray import read_dataset, score_dataset, score_systems

    names = [registered(name) for name in metrics_or_judge(metric)]
    options: dict[str, Any] = {} if dtype is None else {"dtype": dtype}
    weights, source = checkpoints(checkpoint, names), read(input)
    if source.split is not None or source.subset is not None:
        raise ValueError("score-ray reads files, which have no splits or subsets; leave those options out")
    sets = [name for name in names if metric_class(name)[0].info.level is Level.SYSTEM]
    of_rows = [name for name in names if name not in sets]
    if of_rows and output is None:
        raise ValueError("scores of rows need a folder; pass --output")
    if output is not None and "://" not in output:
        check_new_folder(Path(output), [] if "://" in input else [input])
    dataset = read_dataset(input)
    if of_rows and output is not None:
        score_dataset(
            dataset, of_rows, source=source, checkpoints=weights, actors=actors, **options
        ).write_parquet(output)  # fmt: skip
        say(f"scores: {output}", err=True)
    for name in sets:
        checkpoint_of = weights.get(name)
        scores = score_systems(dataset, name, source=source, checkpoint=checkpoint_of, actors=actors, **options)
        for system, value in zip(scores.ids or ("all",), scores.values, strict=True):
            say(f"{name}\t{system or 'all'}\t{value:.6g}")
