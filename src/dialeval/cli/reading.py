"""How rows are read: the options that every command which reads rows has."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints

import typer

from dialeval.cli.parsing import pairs, unescaped

if TYPE_CHECKING:
    from dialeval.readers import Source

    #: Makes a `Source` of a file; keywords replace what the options say.
    Read = Callable[..., Source]
else:
    Read = Callable

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
    columns: Columns = None,
    context_separator: ContextSeparator = SEPARATOR,
    split: Split = None,
    subset: Subset = None,
    judge_role: JudgeRole = "assistant",
    system_as_facts: SystemAsFacts = False,
    other_languages: OtherLanguages = "mark",
) -> Source:
    """Where rows come from, by what the options say."""
    from dialeval.readers import Chats, Source

    chats = Chats(judge_role.strip().lower(), system_as_facts)
    return Source(input, None, pairs(columns), unescaped(context_separator), split, subset, chats, other_languages)


def reads_rows(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of reading in place of its parameter `read`, which makes a `Source` of a file."""
    hints = get_type_hints(source, localns={"Source": Any}, include_extras=True)
    hints |= get_type_hints(command, include_extras=True)
    options = [one for one in inspect.signature(source).parameters.values() if one.name != "input"]
    own = list(inspect.signature(command).parameters.values())
    at = next(place for place, one in enumerate(own) if one.name == "read")

    def with_options(**given: Any) -> None:
        chosen = {one.name: given.pop(one.name) for one in options}
        command(**given, read=lambda file, **changes: source(file, **{**chosen, **changes}))

    with_options.__name__, with_options.__doc__ = command.__name__, command.__doc__
    parameters = [
        one.replace(annotation=hints[one.name], kind=inspect.Parameter.KEYWORD_ONLY)
        for one in (*own[:at], *options, *own[at + 1 :])
    ]
    with_options.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    with_options.__annotations__ = {one.name: one.annotation for one in parameters}
    return with_options
