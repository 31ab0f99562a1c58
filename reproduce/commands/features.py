"""`python -m reproduce features`: what the features behind a metric look like."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from dialeval.cli.options import command_line, flowing

_HELP = """Study the features of replies: their conicity and their normality.

[bold]Conicity[/bold] is the mean cosine between the replies to one context and their mean, averaged over contexts: near
1 they lie in one narrow cone, and a metric can hardly tell them apart. In labelled benchmarks it is told for the
positive replies, and with the random or the adversarial ones among them.

[bold]Normality[/bold] is Shapiro-Wilk's test of each dimension of the features of people's replies, which FBD takes
for normal: mean and spread of the statistic W, and the share of dimensions that are not normal at 0.05. "Pooled" throws
statistics and p-values together, as published code does; exactly normal features give about 0.74.

[bold]Output[/bold] in the folder: features.json, features.npz, and with --plot a picture in two dimensions.

[bold]Examples[/bold]

$ python -m reproduce features --input dailydialogpp_test --contexts 200 --out features/

$ python -m reproduce features --input dailydialogpp_test --metric deb --out features_deb/

$ python -m reproduce features -i people.jsonl --encoder roberta-base --out features_roberta/"""


def add_to(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command("features", help=flowing(_HELP), no_args_is_help=True)(features)


def features(
    input: Annotated[str, typer.Option("--input", "-i", help="A benchmark's name, or a file of rows by people.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for results.")],
    metric: Annotated[
        str | None, typer.Option("--metric", "-m", help="density or deb: features of its network, not the encoder's.")
    ] = None,
    encoder: Annotated[
        str | None, typer.Option(help="Folder or name of a pretrained encoder, or of the metric's checkpoint.")
    ] = None,
    contexts: Annotated[int | None, typer.Option(min=1, help="Maximum number of contexts, drawn at random.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed for drawing contexts.")] = 0,
    plot: Annotated[Literal["pca", "tsne"] | None, typer.Option(help="Draw the features in two dimensions.")] = None,
    mirror: Annotated[
        str | None, typer.Option(envvar="DIALEVAL_MIRROR", help="Folder or URL of benchmark files, instead of GitHub.")
    ] = None,
) -> None:
    """Encode, measure, and write what was found."""
    from dialeval.io.files import write_atomically
    from dialeval.reports.plots.figures import save
    from reproduce.features import feature_map, features_of, replies_of, study, write_features

    replies = replies_of(input, mirror).of_contexts(contexts, seed)
    found, made_with = features_of(replies.exchanges, metric, encoder, progress=True)
    record = {"input": replies.name, **study(replies, found), "features": made_with, "seed": seed}
    write_features(out / "features.npz", found, replies.labels)
    if plot is not None:
        save(feature_map(found, replies.labels, method=plot, seed=seed), out / plot)
    about = {**record, "command": command_line(sys.argv[1:], program="python -m reproduce")}
    write_atomically(out / "features.json", [json.dumps(about, ensure_ascii=False, indent=1)])
    for line in _lines(record):
        typer.echo(line)


def _lines(record: dict[str, Any]) -> list[str]:
    lines = [f"{record['input']}: {record['replies']} replies to {record['contexts']} contexts"]
    for name, one in record["conicity"].items():
        value = "not defined" if one["mean"] is None else f"{one['mean']:.3f}"
        lines.append(f"conicity, {name}: {value} ({one['contexts']} contexts)")
    test = record["normality"]
    lines.append(
        f"normality of {test['n']} human replies: W {test['w_mean']:.3f} ± {test['w_std']:.3f} over "
        f"{test['dimensions']} dimensions, {test['share_p_below_05']:.0%} of them not normal at 0.05; "
        f"W and p pooled {test['pooled_mean']:.2f} ± {test['pooled_std']:.2f}"
    )
    return lines
