"""Every error of the command: one sentence on standard error, and an exit code that scripts can rely on."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup

from dialeval import interrupts

OK, FAILED, BAD_INPUT, ROWS_SET_ASIDE, INTERRUPTED = 0, 1, 2, 3, interrupts.INTERRUPTED

_PIPE_CLOSED = 128 + 13  # what the shell reports of any tool that SIGPIPE ended

#: What the machine lacks, as against what the user asked for.
_MACHINE = {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.ENOMEM, errno.EMFILE, errno.ENFILE}

_FULL = {errno.ENOSPC, errno.EDQUOT}


class ErrorsInOneSentence(TyperGroup):
    """Runs sub-commands and turns what they raise into a message and an exit code."""

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        """Read the command line, which is where help is printed."""
        try:
            return super().make_context(*arguments, **options)
        except BrokenPipeError:
            raise
        except OSError as error:
            _leave(_of_system(error), FAILED)

    def invoke(self, ctx: Any) -> Any:
        """Run the sub-command; an interrupt is one however libraries have wrapped it up."""
        with interrupts.listening():
            try:
                return self._invoke(ctx)
            except (typer.Exit, typer.Abort):
                raise
            except BaseException:
                if interrupts.heard():
                    _leave("interrupted", INTERRUPTED)
                raise

    def _invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
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
            _leave("there is not enough memory", _failed(ctx.invoked_subcommand))
        except (ValueError, ModuleNotFoundError) as error:
            _leave(str(error), BAD_INPUT)
        except RuntimeError as error:
            if _has_message(error):
                _leave(str(error), BAD_INPUT)
            if "out of memory" in str(error):
                _leave("the device has not enough memory", _failed(ctx.invoked_subcommand))
            raise


def _has_message(error: RuntimeError) -> bool:
    """Whether it is the library's own error about weights, which says what to do."""
    from dialeval.weights.find import CheckpointError

    return isinstance(error, CheckpointError)


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
            typer.echo(f"error: {_of_system(error)}", err=True)
            return _failed(next(iter(sys.argv[1:]), None))
    return code


def _of_system(error: OSError) -> str:
    if error.strerror is None:
        return str(error)
    place = f" ({error.filename})" if error.filename else ""
    advice = "; make room, then run the same command again: what was finished is kept" if error.errno in _FULL else ""
    return f"{error.strerror}{place}{advice}"


def _leave(message: str, code: int) -> NoReturn:
    if interrupts.heard():
        message, code = "interrupted", INTERRUPTED
    if os.environ.get("DIALEVAL_TRACEBACK"):
        traceback.print_exc()
    from dialeval.exchange import one_line

    # Messages quote what a user wrote, which may hold line breaks and codes that a terminal obeys.
    typer.echo(message if code == INTERRUPTED else f"error: {one_line(message)}", err=True)
    raise typer.Exit(code) from None
