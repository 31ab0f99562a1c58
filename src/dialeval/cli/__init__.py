"""The `dialeval` command. Each sub-command is a function of its name in a module here, or a group of them in its `app`.

Its docstring is the help. One that takes the context has the options of reading.

Modules import only typer and the standard library at the top, so that `--help` is quick; what
computes is imported inside the commands.
"""

from __future__ import annotations

import errno
import importlib
import inspect
import logging
import os
import re
import sys
import traceback
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from dialeval.io import interrupts
from dialeval.io.files import hub_tokens
from dialeval.io.harmless import for_terminal, one_line, without_secrets

#: The module of each command, in the order in which `--help` shows them.
COMMANDS: Mapping[str, str] = {
    "score": "score",
    "show": "score",
    "judge": "score",
    "llm_score": "llm_score",
    "score_ray": "score",
    "tune": "tune",
    "info": "info",
    "install_modules": "hub",
    "copy_training": "hub",
    "benchmarks": "benchmarks",
    "agreement": "agreement",
    "compare": "systems",
    "rank": "systems",
    "gate": "systems",
    "plot": "plot",
    "robustness": "agreement",
    "export": "hub",
    "publish": "hub",
}


def build_app(commands: Iterable[str] = tuple(COMMANDS)) -> typer.Typer:
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
        _add(importlib.import_module(f"{__name__}.{COMMANDS[name]}"), name, app)
    return app


def _add(module: Any, name: str, app: typer.Typer) -> None:
    from dialeval.cli.options import ReadsRows, flowing

    shown = name.replace("_", "-")
    if hasattr(module, "app"):
        app.add_typer(module.app, name=shown)
        return
    command = getattr(module, name)
    asked = inspect.signature(command, eval_str=True).parameters.values()
    reads_rows = any(parameter.annotation is typer.Context for parameter in asked)
    app.command(
        shown,
        cls=ReadsRows if reads_rows else None,
        help=flowing(inspect.getdoc(command) or ""),
        no_args_is_help=any(
            parameter.default is parameter.empty and parameter.annotation is not typer.Context for parameter in asked
        ),
    )(command)


def main() -> None:
    """Entry point of the console script."""
    # What libraries announce for their next versions is for developers, not for who scores replies.
    warnings.simplefilter("ignore", FutureWarning)
    warnings.formatwarning = _in_a_sentence
    logging.setLogRecordFactory(_Harmless)
    try:
        app = app_for(sys.argv[1:])
        with interrupts.listening():
            app()
    except SystemExit as ended:
        raise SystemExit(last_words(ended.code)) from None


def app_for(arguments: Sequence[str]) -> typer.Typer:
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
        command.callback = lambda: None
    for group in app.registered_groups:
        if group.typer_instance is not None:  # another in its place: it belongs to its module, and is used again
            group.typer_instance = typer.Typer(help=group.typer_instance.info.help)


def _in_a_sentence(message: Warning | str, *where: object, **more: object) -> str:
    # Our warnings say what to do; the line of code that raised one is for developers.
    return f"warning: {one_line(str(message))}\n"


class _Harmless(logging.LogRecord):
    """What a library logs, which may quote a server that quotes the token."""

    def getMessage(self) -> str:
        """The text, masked, and nothing in it that a terminal obeys."""
        return for_terminal(without_secrets(super().getMessage(), hub_tokens()))


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


OK, FAILED, BAD_INPUT, ROWS_SET_ASIDE, INTERRUPTED = 0, 1, 2, 3, interrupts.INTERRUPTED

_PIPE_CLOSED = 128 + 13  # what the shell reports of any tool that SIGPIPE ended

#: What the machine lacks, as against what the user asked for.
_MACHINE = {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.ENOMEM, errno.EMFILE, errno.ENFILE}

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}

_NO_MEMORY = (
    "there is not enough memory; close other programs or take a larger machine, then run the same command again: "
    "what was finished is kept"
)
#: How libraries tell of it in errors of their own.
_OF_MEMORY = re.compile(
    r"allocate memory|bad_alloc|not enough memory|failed to map segment|start new thread|ThreadPoolBuildError"
)


class ErrorsInOneSentence(TyperGroup):
    """Runs sub-commands and turns what they raise into a message and an exit code."""

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        """Read the command line, which is where help is printed."""
        try:
            return super().make_context(*arguments, **options)
        except KeyboardInterrupt:
            _leave("interrupted", INTERRUPTED)
        except BrokenPipeError:
            raise
        except OSError as error:
            _leave(_of_system(error), FAILED)

    def invoke(self, ctx: Any) -> Any:
        """Run the sub-command; an interrupt is one however libraries have wrapped it up."""
        try:
            return self._invoke(ctx)
        except (typer.Exit, typer.Abort):
            raise
        except BaseException:
            if interrupts.came():
                _leave("interrupted", INTERRUPTED)
            raise

    def _invoke(self, ctx: Any) -> Any:
        try:
            try:
                return super().invoke(ctx)
            except (typer.Exit, typer.Abort, KeyboardInterrupt):
                raise
            except BaseException as error:  # those of libraries in Rust are no Exceptions
                if _lacks_memory(error):
                    raise MemoryError from error
                raise
        except (typer.Exit, typer.Abort):
            raise
        except KeyboardInterrupt:
            _leave("interrupted", INTERRUPTED)
        except BrokenPipeError:
            # The reader of our output has gone, as `head` does. There is nobody to tell, and nothing more to flush.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(_PIPE_CLOSED) from None
        except OSError as error:
            _leave(_of_system(error), _failed(ctx.invoked_subcommand) if error.errno in _MACHINE else BAD_INPUT)
        except MemoryError:
            _leave(_NO_MEMORY, _failed(ctx.invoked_subcommand))
        except (ValueError, ModuleNotFoundError) as error:
            _leave(str(error), BAD_INPUT)
        except RuntimeError as error:
            from dialeval.checkpoints.find import CheckpointError

            if isinstance(error, CheckpointError):
                _leave(str(error), BAD_INPUT)
            if "out of memory" in str(error):
                _leave("the device has not enough memory", _failed(ctx.invoked_subcommand))
            raise


def _lacks_memory(error: BaseException | None) -> bool:
    """Whether an error, or one that it was made of, says that the machine has no memory left."""
    while error is not None:
        if isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM:
            return True
        # Our own errors and the system's quote rows and names of files, which may hold any words.
        quotes = isinstance(error, ValueError) or getattr(error, "filename", None) is not None
        if not quotes and _OF_MEMORY.search(str(error)):
            return True
        error = error.__cause__ or error.__context__
    return False


def _failed(command: str | None) -> int:
    """The code of what the machine lacks; of the gate, 1 is a verdict."""
    return BAD_INPUT if command == "gate" else FAILED


def last_words(code: Any) -> Any:
    """The code to end with, after what is still buffered: Python's own last try could only show a traceback."""
    try:
        if sys.stdout is not None and not sys.stdout.closed:
            sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            return code or _PIPE_CLOSED
        if not code:
            from dialeval.cli.options import say

            say(f"error: {_of_system(error)}", err=True)
            return _failed(next(iter(sys.argv[1:]), None))
    return code


def _of_system(error: OSError) -> str:
    if error.strerror is None:
        return str(error)
    place = f" ({error.filename})" if error.filename else ""
    advice = "; make room, then run the same command again: what was finished is kept" if error.errno in _FULL else ""
    return f"{error.strerror}{place}{advice}"


def _leave(message: str, code: int) -> NoReturn:
    if interrupts.came():
        message, code = "interrupted", INTERRUPTED
    if os.environ.get("DIALEVAL_TRACEBACK"):
        traceback.print_exc()
    from dialeval.cli.options import say

    say(message if code == INTERRUPTED else f"error: {without_secrets(message, hub_tokens())}", err=True)
    raise typer.Exit(code) from None
