"""The `dialeval` command. Each sub-command is one module here with a function `add_to(app)`.

Modules import only typer and the standard library at the top, so that `--help` is quick; what
computes is imported inside the commands.
"""

from __future__ import annotations

import importlib

import typer

#: Modules of this package, in the order in which `--help` shows their commands.
COMMANDS: tuple[str, ...] = ()


def build_app() -> typer.Typer:
    """The command with all its sub-commands."""
    app = typer.Typer(
        name="dialeval",
        help="Judge open-domain dialogue replies automatically.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
    )
    for name in COMMANDS:
        importlib.import_module(f"{__name__}.{name}").add_to(app)
    return app


def main() -> None:
    """Entry point of the console script."""
    build_app()()
