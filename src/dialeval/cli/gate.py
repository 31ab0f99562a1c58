"""`dialeval gate`: fail CI if the new system is worse."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Literal

import typer

from dialeval.cli import options as reading
from dialeval.cli.options import files_of, pairs, say

HELP = """Test whether a new system is worse than a baseline by more than a margin, on replies to the same contexts.

Both files hold rows of `dialeval score`. Rows belong together by their id; without ids both files must have the same
contexts in the same order. The gate passes only on evidence: the lower bound of the gain, from resampled contexts, must
be above minus the margin. Where it cannot tell, it says how many contexts like these the margin needs. With --level
dialogue conversations are compared, in pairs if they share ids, else as groups.

[bold]A mean hides rare faults[/bold]: --max limits how many rows of the new system meet a condition, --min-aspect gives
an aspect a margin of its own. Without them, too, the verdict names aspects that fell significantly and new faults.

[bold]Exit codes[/bold]: 0 passed; 1 worse, or over a limit; 2 an error; 4 undecided, since too few rows or contexts
could be compared; 5 not shown: neither worse nor ruled out.

[bold]Examples[/bold]

$ dialeval gate new.jsonl --baseline old.jsonl --margin 0.05 --max 'respectful<0.5=0'

$ dialeval gate new.jsonl -b old.jsonl --margin 0.05 --max 'judge<0.2=5%' --min-aspect specific=-0.05

$ dialeval gate new_chats.jsonl -b old_chats.jsonl --margin 0.05 --level dialogue

$ dialeval gate new.jsonl -b old.jsonl --margin 0.05 --junit gate.xml --markdown gate.md"""


_EXIT_CODES = {"passed": 0, "worse": 1, "undecided": 4, "not shown": 5}


def gate(
    new: Annotated[str, typer.Argument(metavar="NEW", help="Rows of the new system.")],
    baseline: Annotated[str, typer.Option("--baseline", "-b", help="Rows of the baseline system.")],
    margin: Annotated[float, typer.Option(min=0, help="Accepted loss, in units of the scale.")],
    metric: Annotated[str, typer.Option("--metric", "-m", help="A metric of single replies.")] = "judge",
    max_rows: Annotated[
        list[str] | None,
        typer.Option("--max", help="Most rows of the new system that may be so: respectful<0.5=0 or =2%; repeatable."),
    ] = None,
    min_aspect: Annotated[
        list[str] | None,
        typer.Option("--min-aspect", help="Smallest accepted gain of an aspect: specific=-0.05; repeatable."),
    ] = None,
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
    resamples: Annotated[
        int, typer.Option(min=100, max=10**6, help="Resamples of the bootstrap over contexts.")
    ] = 10_000,
    seed: Annotated[int, typer.Option(min=0, help="Random seed.")] = 0,
) -> None:
    """Score both, test, summarise the verdict."""
    import json

    from dialeval.io.files import write_atomically
    from dialeval.io.places import check_places
    from dialeval.registry import check_options, load_metrics
    from dialeval.systems import gate as test

    reports = {"--junit": junit, "--markdown": markdown, "--json": json_file}
    check_places(reports, (new, baseline, checkpoint, *files_of([metric])))
    with _errors_in_reports(junit, markdown, json_file):
        weights = {metric: checkpoint} if checkpoint else {}
        check_options([metric], {}, weights)
        (loaded,) = load_metrics([metric], {}, weights).values()
        outcome = test(
            read(new),
            read(baseline, **reading.of_second(1, columns_b)),
            loaded, margin=margin, max_rows=pairs(max_rows, flag="--max", form="NAME<NUMBER=ROWS"),
            min_aspects=_numbers(min_aspect), confidence=confidence, min_contexts=min_contexts, scale=scale,
            level=level, resamples=resamples, seed=seed, names=(new, baseline), progress=True,
        )  # fmt: skip
        for path, text in (
            (junit, outcome.to_junit),
            (markdown, outcome.to_markdown),
            (json_file, lambda: json.dumps(outcome.to_dict(), ensure_ascii=False, indent=1)),
        ):
            if path is not None:
                write_atomically(path, [text().rstrip("\n")])
    for warning in outcome.warnings:
        say(f"warning: {warning}", err=True)
    say(outcome.sentence)
    raise typer.Exit(_EXIT_CODES[outcome.verdict])


def _numbers(options: list[str] | None) -> dict[str, float]:
    """Aspects and numbers."""
    numbers = {}
    for aspect, number in pairs(options, flag="--min-aspect", form="ASPECT=NUMBER").items():
        try:
            numbers[aspect] = float(number)
        except ValueError:
            raise ValueError(f"--min-aspect {aspect}={number}: {number!r} is no number; write {aspect}=-0.05") from None
    return numbers


#: What stands in a report until there is a verdict, and stays there if nothing of this program runs any more.
_UNFINISHED = "the gate has not finished: it is still running, or was stopped"


@contextmanager
def _errors_in_reports(junit: Path | None, markdown: Path | None, json_file: Path | None) -> Iterator[None]:
    """Replace any earlier report, so that a failed run leaves its error instead."""
    import json

    from dialeval.io.files import hub_tokens, is_stream, write_atomically
    from dialeval.io.harmless import without_secrets
    from dialeval.systems.gate_outcome import error_as_junit, error_as_markdown

    def tell(message: str) -> Iterator[tuple[Path, str]]:
        message = without_secrets(message, hub_tokens())
        reports = {
            junit: error_as_junit(message),
            markdown: error_as_markdown(message),
            json_file: json.dumps({"passed": False, "error": message}, ensure_ascii=False, indent=1),
        }
        return ((path, text.rstrip("\n")) for path, text in reports.items() if path is not None)

    for path, text in tell(_UNFINISHED):
        if not is_stream(path):
            write_atomically(path, [text])
    try:
        yield
    except Exception as error:
        for path, text in tell(str(error) or type(error).__name__):
            with suppress(OSError):  # where nothing can be written the error itself has to do
                write_atomically(path, [text])
        raise
