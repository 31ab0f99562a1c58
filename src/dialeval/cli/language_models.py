"""Options of commands that ask language models."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

if TYPE_CHECKING:
    from dialeval.scoring.task import Task

_PANEL = "Language models (metric llm)"

Model = Annotated[
    list[str] | None,
    typer.Option("--model", rich_help_panel=_PANEL, help="As its server calls it; given several times, a panel."),
]
BaseUrl = Annotated[
    str | None,
    typer.Option(
        "--base-url", rich_help_panel=_PANEL, help="Of a server that speaks OpenAI's chat completions, .../v1."
    ),
]
Protocol = Annotated[
    str | None,
    typer.Option("--protocol", rich_help_panel=_PANEL, help="llm_eval, g_eval, pairwise, or a file of your own."),
]
Weighting = Annotated[
    Literal["auto", "logprobs", "samples"] | None,
    typer.Option("--weighting", rich_help_panel=_PANEL, help="Of g_eval: token probabilities, or many samples."),
]
Samples = Annotated[int | None, typer.Option("--samples", rich_help_panel=_PANEL, min=1, help="How many of them.")]
MaxTokens = Annotated[
    int | None,
    typer.Option("--max-tokens", rich_help_panel=_PANEL, min=1, help="Of an answer; models that think need many."),
]
Rival = Annotated[
    Path | None,
    typer.Option(
        "--rival",
        rich_help_panel=_PANEL,
        help="For pairwise: a file of another system's replies to the same rows, joined by id, else by context.",
    ),
]
Concurrency = Annotated[
    int | None, typer.Option("--concurrency", rich_help_panel=_PANEL, min=1, help="Requests under way at once.")
]
Timeout = Annotated[
    float | None, typer.Option("--timeout", rich_help_panel=_PANEL, help="Seconds of silence before asking again.")
]
Retries = Annotated[
    int | None, typer.Option("--retries", rich_help_panel=_PANEL, min=0, help="How often to ask again after a fault.")
]
RequestsPerMinute = Annotated[
    int | None, typer.Option("--requests-per-minute", rich_help_panel=_PANEL, min=1, help="Never more than so many.")
]
TokensPerMinute = Annotated[
    int | None,
    typer.Option("--tokens-per-minute", rich_help_panel=_PANEL, min=1, help="The same, read and written."),
]
Prices = Annotated[
    Path | None,
    typer.Option(
        "--prices", rich_help_panel=_PANEL, help="YAML or JSON: model: {input: 0.15, output: 0.6}, per million tokens."
    ),
]
MaxCost = Annotated[
    float | None, typer.Option("--max-cost", rich_help_panel=_PANEL, min=0, help="Dollars that a run does not pass.")
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", rich_help_panel=_PANEL, help="Count tokens and money; ask and write nothing.")
]
Answers = Annotated[
    Path | None,
    typer.Option("--answers", rich_help_panel=_PANEL, help="Folder in which answers are kept; else the user's cache."),
]
KeyVariable = Annotated[
    str | None,
    typer.Option("--key-variable", rich_help_panel=_PANEL, help="Of the environment; else OPENAI_API_KEY."),
]
ServedAs = Annotated[
    str | None,
    typer.Option("--served-as", rich_help_panel=_PANEL, help="The server's name for the model, if it is another."),
]


def chosen(model: list[str] | None, dry_run: bool, **options: Any) -> dict[str, Any]:
    """The options that were given, in the metric's words; none of them belongs to other metrics."""
    given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    if model:
        given |= {"model": model[0]} if len(model) == 1 else {"panel": tuple(model)}
    if dry_run:
        import os

        # Counting needs no key, which only OpenAI's own address would ask for.
        given.setdefault("base_url", os.environ.get("OPENAI_BASE_URL") or "https://api.openai.com/v1")
    return given


def tell_estimate(task: Task, names: list[str], options: dict[str, Any]) -> None:
    """Print what a run would ask and cost."""
    from dialeval.registry import load_metrics

    if "llm" not in names:
        raise ValueError("--dry-run counts what language models cost, and none is among the metrics; leave it out")
    loaded = load_metrics(["llm"], options, {})["llm"]
    from dialeval.llm.estimate import estimates
    from dialeval.llm.judge import LlmJudge

    assert isinstance(loaded, LlmJudge)
    for one in estimates(loaded, (item for _, item in task.rows(None))):
        typer.echo(one.line())
