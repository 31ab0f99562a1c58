"""`python -m reproduce`: the commands that remake tables and figures."""

from __future__ import annotations

import typer

from dialeval.cli import ErrorsInOneSentence
from dialeval.io import interrupts
from reproduce import leaderboard
from reproduce.commands import calibration, distances, features, papers


def build_app() -> typer.Typer:
    """All commands."""
    app = typer.Typer(
        name="python -m reproduce",
        cls=ErrorsInOneSentence,
        help="Remake the papers' tables and figures, and the studies behind the documentation.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
    )
    for command in (papers, calibration, distances, features, leaderboard):
        command.add_to(app)
    return app


if __name__ == "__main__":
    with interrupts.listening():
        build_app()()
