"""`dialeval judge`: one context, one reply or several, one answer."""

from __future__ import annotations

from typing import Annotated

import typer

from dialeval.cli.options import say

HELP = """Judge a reply, or compare several, and say why.

[bold]Examples[/bold]

$ dialeval judge "How was your trip?" "Great, but I lost my suitcase." --reply "Oh no! Did you find it?"

$ dialeval judge "Do you have a pet?" --reply "Yes, a dog." --reply "It will rain." --fact "I have a dog."

$ dialeval score --help judges files."""


def judge(
    context: Annotated[list[str], typer.Argument(metavar="TURN...", help="The turns before the reply, oldest first.")],
    reply: Annotated[list[str], typer.Option("--reply", "-r", help="A reply; repeat it to compare several.")],
    fact: Annotated[list[str] | None, typer.Option("--fact", help="A fact the reply should know; repeatable.")] = None,
    following: Annotated[str | None, typer.Option(help="What the other side said next, if you know it.")] = None,
    checkpoint: Annotated[str | None, typer.Option(help="Folder, name or Hub id; default: the embedded judge.")] = None,
) -> None:
    """Load the judge, ask it, print the answer and a table."""
    from dialeval.io.tables import show
    from dialeval.judge.verdicts import compare_replies
    from dialeval.registry import load

    comparison = compare_replies(
        load("judge", checkpoint=checkpoint), context, reply, facts=fact or (), following=following
    )
    say(comparison.sentence)
    scores = comparison.scores
    show([comparison.table])
    for warning in scores.warnings:
        say(f"warning: {warning}", err=True)
    for row in comparison.order if len(comparison.order) > 1 else ():
        say(f"{comparison.names[row]}: {scores.explain(row)}")
