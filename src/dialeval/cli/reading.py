"""How rows are read: the options that every command which reads rows has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from dialeval.cli.parsing import pairs, unescaped

if TYPE_CHECKING:
    from dialeval.readers import Source

PANEL = "Input"
#: Between the turns of a CSV cell.
SEPARATOR = "__eou__"

Columns = Annotated[
    list[str] | None,
    typer.Option(rich_help_panel=PANEL, help="FIELD=COLUMN where names differ; several separated by commas."),
]
ColumnsB = Annotated[
    list[str] | None, typer.Option("--columns-b", rich_help_panel=PANEL, help="The same for the second file alone.")
]
ContextSeparator = Annotated[
    str, typer.Option(rich_help_panel=PANEL, help="Between the turns of a CSV cell; \\n and \\t are understood.")
]
Split = Annotated[str | None, typer.Option(rich_help_panel=PANEL, help="Split of a data set.")]
Subset = Annotated[str | None, typer.Option(rich_help_panel=PANEL, help="Configuration of a data set.")]
JudgeRole = Annotated[
    str, typer.Option(rich_help_panel=PANEL, help="In chat logs (messages, conversations): whose turns are judged.")
]
SystemAsFacts = Annotated[
    bool, typer.Option("--system-as-facts", rich_help_panel=PANEL, help="In chat logs: system prompts are facts.")
]
OtherLanguages = Annotated[
    Literal["mark", "skip", "fail"],
    typer.Option(rich_help_panel=PANEL, help="Replies that are not English: score and count them, leave out, refuse."),
]


def source(
    input: str,
    columns: list[str] | None = None,
    context_separator: str = SEPARATOR,
    split: str | None = None,
    subset: str | None = None,
    judge_role: str = "assistant",
    system_as_facts: bool = False,
    other_languages: Literal["mark", "skip", "fail"] = "mark",
) -> Source:
    """Where rows come from, by what the options say."""
    from dialeval.readers import Chats, Source

    chats = Chats(judge_role.strip().lower(), system_as_facts)
    return Source(input, None, pairs(columns), unescaped(context_separator), split, subset, chats, other_languages)
