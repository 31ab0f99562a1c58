"""The `dialeval` command. Each sub-command is one module here with a function `add_to(app)`.

Modules import only typer and the standard library at the top, so that `--help` is quick; what
computes is imported inside the commands.
"""

from __future__ import annotations

import importlib
import inspect
import os
import sys
import warnings
from collections.abc import Sequence
from typing import Annotated

import typer

from dialeval.cli.errors import ErrorsInOneSentence, last_words

#: Modules of this package, in the order in which `--help` shows their commands.
COMMANDS: tuple[str, ...] = (
    "score",
    "judge",
    "llm_score",
    "score_ray",
    "tune",
    "info",
    "install_modules",
    "copy_training",
    "benchmarks",
    "agreement",
    "compare",
    "rank",
    "gate",
    "plot",
    "robustness",
    "publish",
)


def build_app(commands: Sequence[str] = COMMANDS) -> typer.Typer:
    """The command with all its sub-commands, or with some of them only."""
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
    app.callback()(_dialeval)
    for name in commands:
        importlib.import_module(f"{__name__}.{name}").add_to(app)
    return app


def main() -> None:
    """Entry point of the console script."""
    # What libraries announce for their next versions is for developers, not for who scores replies.
    warnings.simplefilter("ignore", FutureWarning)
    warnings.formatwarning = _in_a_sentence
    try:
        _app_for(sys.argv[1:])()
    except SystemExit as ended:
        raise SystemExit(last_words(ended.code)) from None


def _app_for(arguments: Sequence[str]) -> typer.Typer:
    """As much of the command as these arguments need: typer looks at every option of every command that it is given."""
    if "_DIALEVAL_COMPLETE" in os.environ:  # a shell asks what could follow
        return build_app()
    name = "__help" if not arguments or arguments[0] == "--help" else arguments[0].replace("-", "_")
    if name in COMMANDS:
        return build_app([name])
    app = build_app()
    if name == "__help":
        _without_options(app)
    return app


def _without_options(app: typer.Typer) -> None:
    """Leave the names and what they are for, which is all that the overview shows."""
    for command in app.registered_commands:
        if command.callback is not None:
            command.help = command.help or inspect.getdoc(command.callback)
            command.name = command.name or command.callback.__name__.replace("_", "-")
        command.callback = _nothing
    for group in app.registered_groups:
        if group.typer_instance is not None:  # another in its place: it belongs to its module, and is used again
            group.typer_instance = typer.Typer(help=group.typer_instance.info.help)


def _in_a_sentence(message: Warning | str, *where: object, **more: object) -> str:
    # Our warnings say what to do; the line of code that raised one is for developers.
    return f"warning: {message}\n"


def _tell_version(wanted: bool) -> None:
    if wanted:
        from dialeval.version import __version__

        typer.echo(f"dialeval {__version__}")
        raise typer.Exit


def _dialeval(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_tell_version, help="Show the version and exit.")
    ] = False,
) -> None:
    # Its presence also keeps `dialeval NAME` a sub-command even while there is only one.
    pass


def _nothing() -> None:
    pass
