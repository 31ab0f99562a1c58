"""`dialeval show`: how the rows of a file are understood."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from dialeval.cli import options as reading
from dialeval.cli.options import say

HELP = """Show how the first rows of a file are read, before anything is scored.

Each row is shown as a chat: what was said before, the reply that is judged (>), what was said then, references and
facts. On standard error stands what was guessed: columns, who is judged, what was passed over. It takes
the options of reading that `dialeval score` has.

[bold]Examples[/bold]

$ dialeval show traces.jsonl

$ dialeval show export.zip --rows 5 --judge-role ShopBot

$ dialeval show log.csv --columns response=outputs.messages[-1].content,message=inputs.question

$ dialeval show runs.json --columns messages=outputs.messages --level dialogue"""


def show(
    input: Annotated[str, typer.Argument(metavar="FILE", help="File, data-set folder or Hub id.")],
    *,
    read: reading.Read,
    rows: Annotated[int, typer.Option(min=1, help="How many rows.")] = 3,
    level: Annotated[Literal["turn", "dialogue"], typer.Option(help="Read replies, or whole dialogues.")] = "turn",
) -> None:
    """Read the first rows and print them."""
    say(*read(input).shown(rows, level=level))
