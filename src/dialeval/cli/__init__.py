"""The `dialeval` command. Each sub-command is one module here with a function `add_to(app)`.

Modules import only typer and the standard library at the top, so that `--help` is quick; what
computes is imported inside the commands.
"""

from __future__ import annotations

import importlib
import warnings

import typer

from dialeval.cli.errors import ErrorsInOneSentence

#: Modules of this package, in the order in which `--help` shows their commands.
COMMANDS: tuple[str, ...] = (
    "score",
    "tune",
    "info",
    "install_modules",
    "benchmarks",
    "agreement",
    "leaderboard",
    "compare",
    "rank",
    "gate",
    "ensemble",
    "papers",
    "plot",
    "robustness",
    "features",
    "calibration",
    "publish",
)


def build_app() -> typer.Typer:
    """The command with all its sub-commands."""
    app = typer.Typer(
        name="dialeval",
        cls=ErrorsInOneSentence,
        help="Judge open-domain dialogue replies automatically.",
        epilog="[bold]Exit codes[/bold]: 0 done; 1 the program or the machine failed; 2 wrong usage or input; "
        "3 done, but rows were set aside; 130 interrupted. DIALEVAL_TRACEBACK=1 shows where an error came from.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
    )
    app.callback()(_nothing_to_do)
    for name in COMMANDS:
        importlib.import_module(f"{__name__}.{name}").add_to(app)
    return app


def main() -> None:
    """Entry point of the console script."""
    # What libraries announce for their next versions is for developers, not for who scores replies.
    warnings.simplefilter("ignore", FutureWarning)
    warnings.formatwarning = _in_a_sentence
    build_app()()


def _in_a_sentence(message: Warning | str, *where: object, **more: object) -> str:
    # Our warnings say what to do; the line of code that raised one is for developers.
    return f"warning: {message}\n"


def _nothing_to_do() -> None:
    # Its presence keeps `dialeval NAME` a sub-command even while there is only one.
    pass
