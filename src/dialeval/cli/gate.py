"""`dialeval gate`: may the new system go out?"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Literal

import typer

from dialeval.cli import options as reading
from dialeval.cli.options import check_reports

HELP = """Test whether a new system is worse than a baseline by more than a margin, on replies to the same contexts.

Both files hold rows of `dialeval score`. Rows belong together by their id; without ids both files must have the same
contexts in the same order. The gate passes only on evidence: the lower bound of the gain, from resampled contexts, must
be above minus the margin. With --level dialogue conversations are compared, in pairs if they share ids, else as groups.

[bold]Exit codes[/bold]: 0 not worse; 1 worse, or not ruled out; 2 an error; 4 undecided, since too
few rows or contexts could be compared.

[bold]Examples[/bold]

$ dialeval gate new.jsonl --baseline old.jsonl --metric judge --margin 0.02

$ dialeval gate new_chats.jsonl -b old_chats.jsonl --margin 0.02 --level dialogue

$ dialeval gate new.jsonl -b old.jsonl --margin 0.05 --junit gate.xml --markdown gate.md"""


_EXIT_CODES = {"passed": 0, "failed": 1, "undecided": 4}


def gate(
    new: Annotated[str, typer.Argument(metavar="NEW", help="Rows of the new system.")],
    baseline: Annotated[str, typer.Option("--baseline", "-b", help="Rows of the baseline system.")],
    margin: Annotated[float, typer.Option(min=0, help="Accepted loss, in units of the scale.")],
    metric: Annotated[str, typer.Option("--metric", "-m", help="A metric of single replies.")] = "judge",
    checkpoint: Annotated[str | None, typer.Option(help="Checkpoint of the metric: folder, name or Hub id.")] = None,
    confidence: Annotated[
        float, typer.Option(min=0.5, max=0.999, help="Confidence level of the one-sided bound.")
    ] = 0.95,
    min_contexts: Annotated[
        int, typer.Option(min=1, help="Minimum contexts; with fewer the verdict is undecided.")
    ] = 30,
    scale: Annotated[Literal["native", "human_percentile"], typer.Option(help="Unit of the margin.")] = ("native"),
    columns_b: reading.ColumnsB = None,
    *,
    read: reading.Read,
    level: Annotated[
        Literal["turn", "dialogue"], typer.Option(help="Compare replies, or whole conversations.")
    ] = "turn",
    junit: Annotated[Path | None, typer.Option(help="Also write a JUnit report.")] = None,
    markdown: Annotated[
        Path | None, typer.Option(help="Also write the verdict as Markdown, for a pull request.")
    ] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Also write all figures as JSON.")] = None,
    resamples: Annotated[int, typer.Option(min=100, help="Resamples of the bootstrap over contexts.")] = 10_000,
    seed: Annotated[int, typer.Option(min=0, help="Random seed.")] = 0,
) -> None:
    """Score both, test, say it in one sentence."""
    import json

    from dialeval.io import write_atomically
    from dialeval.registry import load
    from dialeval.systems import gate as test

    check_reports({"--junit": junit, "--markdown": markdown, "--json": json_file}, (new, baseline))
    with _errors_in_reports(junit, markdown, json_file):
        loaded = load(metric, checkpoint=checkpoint) if checkpoint else load(metric)
        found = test(
            read(new),
            read(baseline, **reading.of_second(1, columns_b)),
            loaded, margin=margin, confidence=confidence, min_contexts=min_contexts, scale=scale, level=level,
            resamples=resamples, seed=seed, names=(new, baseline), progress=True,
        )  # fmt: skip
        for path, text in (
            (junit, found.to_junit),
            (markdown, found.to_markdown),
            (json_file, lambda: json.dumps(found.to_dict(), ensure_ascii=False, indent=1) + "\n"),
        ):
            if path is not None:
                write_atomically(path, text().splitlines())
    for warning in found.warnings:
        typer.echo(f"warning: {warning}", err=True)
    typer.echo(found.sentence)
    if found.fell and not found.passed:
        typer.echo(found.fell)
    raise typer.Exit(_EXIT_CODES[found.verdict])


#: What stands in a report until there is a verdict, and stays there if nothing of this program runs any more.
_UNFINISHED = "the gate has not finished: it is still running, or was stopped"


@contextmanager
def _errors_in_reports(junit: Path | None, markdown: Path | None, json_file: Path | None) -> Iterator[None]:
    """Have no report of an earlier run pass for this one's, however this one ends; what went wrong stands there."""
    import json

    from dialeval.io import is_stream, write_atomically
    from dialeval.systems.gate import error_as_junit, error_as_markdown

    def tell(message: str) -> Iterator[tuple[Path, list[str]]]:
        reports = {
            junit: error_as_junit(message),
            markdown: error_as_markdown(message),
            json_file: json.dumps({"passed": False, "error": message}, ensure_ascii=False, indent=1),
        }
        return ((path, text.splitlines()) for path, text in reports.items() if path is not None)

    for path, lines in tell(_UNFINISHED):
        if not is_stream(path):
            write_atomically(path, lines)
    try:
        yield
    except Exception as error:
        for path, lines in tell(str(error) or type(error).__name__):
            with suppress(OSError):  # where nothing can be written the error itself has to do
                write_atomically(path, lines)
        raise
