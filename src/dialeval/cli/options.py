"""What options hold, and the options of every command that reads rows or writes reports."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer.core import TyperCommand

from dialeval.io.files import near, without_machine
from dialeval.io.harmless import one_line

if TYPE_CHECKING:
    from dialeval.readers import Source


def say(*lines: str, err: bool = False) -> None:
    """Print lines that may quote rows, columns and names, with line breaks and codes that a terminal would obey."""
    for line in lines:
        typer.echo("\t".join(map(one_line, line.split("\t"))), err=err)


def flowing(text: str) -> str:
    """Help text without the line breaks inside its paragraphs, which typer would keep."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))


def listed(options: list[str] | None) -> list[str]:
    """Values that may be given as several options, separated by commas, or both."""
    return [part.strip() for option in options or [] for part in option.split(",") if part.strip()]


def metrics_or_judge(options: list[str] | None) -> list[str]:
    """The metrics that were named, without any the judge."""
    names = listed(options if options is not None else ["judge"])
    if not names:
        raise ValueError("no metric was given; `dialeval info` lists them")
    return names


def pairs(options: list[str] | None, *, flag: str = "--columns", form: str = "FIELD=COLUMN") -> dict[str, str]:
    """Options such as `FIELD=COLUMN` as a mapping."""
    mapping = {}
    for option in listed(options):
        field, equals, column = option.partition("=")
        if not (field and equals and column):
            example = "; write for instance response=reply" if flag == "--columns" else ""
            raise ValueError(f"{flag} {option!r} is not {form}{example}")
        mapping[field.strip()] = column.strip()
    return mapping


def checkpoints(options: list[str] | None, metrics: list[str]) -> dict[str, str]:
    """Which metric gets which checkpoint; with a single metric its name may be left out."""
    chosen: dict[str, str] = {}
    for option in options or []:
        name, equals, checkpoint = option.partition("=")
        if equals and name in metrics:
            chosen[name] = checkpoint
        elif len(metrics) == 1:
            chosen[metrics[0]] = option
        else:
            raise ValueError(f"--checkpoint {option!r} does not say for which metric; write METRIC=CHECKPOINT")
    return chosen


def files_of(metrics: list[str] | None) -> list[str]:
    """The files that stand in names of metrics: `scores:FILE#column`, `llm:FILE`; what is none is no file."""
    return [name.partition(":")[2].partition("#")[0].partition("?")[0] for name in listed(metrics)]


def command_line(arguments: list[str], *, program: str = "dialeval") -> str:
    """The command as it may stand beside results: ready for a shell, without the folders of this machine."""
    import shlex

    # An argument that is a path from end to end may hold blanks, too.
    shown = (near(Path(word)) if Path(word).is_absolute() else without_machine(word) for word in arguments)
    return f"{program} {shlex.join(shown)}"


def in_panel(name: str) -> Callable[..., Any]:
    """`typer.Option` for the options that the help shows in one panel."""
    return partial(typer.Option, rich_help_panel=name)


option = in_panel("Input")
#: Between the turns of a CSV cell.
SEPARATOR = "__eou__"

Columns = Annotated[
    list[str] | None,
    option(help="Map fields to columns or paths: response=outputs.text, messages=log.turns, separated by commas."),
]
ColumnsB = Annotated[list[str] | None, option("--columns-b", help="Column mapping of the second file, if it differs.")]
ContextSeparator = Annotated[str, option(help="Separator of turns in a CSV cell; \\n and \\t are allowed.")]
Split = Annotated[str | None, option(help="Split of a data set.")]
Subset = Annotated[str | None, option(help="Configuration of a data set.")]
JudgeRole = Annotated[str, option(help="Role or speaker to judge in chat logs.")]
SystemAsFacts = Annotated[bool, option("--system-as-facts", help="Use the system prompts of chat logs as facts.")]
KeepPreambles = Annotated[
    bool, option("--keep-preambles", help="Judge what is said before a call of a tool, too (Let me look).")
]
OtherLanguages = Annotated[
    Literal["mark", "skip", "fail"], option(help="Non-English replies: score and count, leave out, or refuse.")
]
Show = Annotated[int, option(min=0, help="Print how the first N rows of each file are read.")]
Empty = Annotated[Literal["error", "score"], option(help="Refuse blank responses and contexts, or take them.")]


def source(
    input: str,
    columns: Columns = None,
    context_separator: ContextSeparator = SEPARATOR,
    split: Split = None,
    subset: Subset = None,
    judge_role: JudgeRole = "assistant",
    system_as_facts: SystemAsFacts = False,
    keep_preambles: KeepPreambles = False,
    other_languages: OtherLanguages = "mark",
    show: Show = 0,
) -> Any:
    """A `Source`: where rows come from, by what the options say."""
    from dialeval.readers import Chats, Source

    chats = Chats(judge_role.strip().lower(), system_as_facts, keep_preambles)
    texts = context_separator.replace("\\n", "\n").replace("\\t", "\t")  # as a shell can pass them
    return Source(input, None, pairs(columns), texts, split, subset, chats, other_languages, show=show)


def of_second(place: int, columns: list[str] | None) -> dict[str, list[str]]:
    """What `read` is told of the file in a place: the columns of the second one, if they were named."""
    return {"columns": columns} if columns and place == 1 else {}


#: Where the context of an invocation keeps what its options of reading say.
_READING = "dialeval.reading"


def _options_of_reading() -> list[Any]:
    """Those of `source`, as a command of its own would have them."""
    app = typer.Typer(add_completion=False)
    app.command()(source)
    return [parameter for parameter in typer.main.get_command(app).params if parameter.name != "input"]


class ReadsRows(TyperCommand):
    """A command that has the options of reading beside its own; `reader` hands over what they say."""

    def __init__(self, name: str | None, *, params: list[Any], **others: Any) -> None:
        # Showing how rows are read is all that `show` does.
        self._reading = [option for option in _options_of_reading() if (name, option.name) != ("show", "show")]
        super().__init__(name, params=[*params, *self._reading], **others)

    def invoke(self, ctx: Any) -> Any:
        """Run it with its own options; the others wait in the context."""
        ctx.meta[_READING] = {str(option.name): ctx.params.pop(str(option.name)) for option in self._reading}
        return super().invoke(ctx)


def reader(context: typer.Context) -> Callable[..., Source]:
    """Makes a `Source` of a file by the options of reading; keywords replace what they say."""
    return lambda file, **changes: source(file, **{**context.meta[_READING], **changes})
