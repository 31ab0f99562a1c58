"""Ctrl-C ends a program with one line and exit code 130 whenever it comes: while modules are imported, too.

Some libraries turn an interrupt into an error of their own, so that one came is noted beside what is raised.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

#: What shells report of what SIGINT ended.
INTERRUPTED = 130

_came = False


def leave_at_once() -> None:
    """While nothing has begun, or all is done, an interrupt ends the process: there is nothing to clear away.

    A process that was started to ignore interrupts goes on doing so, and one whose owner has a handler keeps it.
    """
    if signal.getsignal(signal.SIGINT) in (signal.default_int_handler, _raise, _leave):
        with suppress(ValueError):  # not the main thread
            signal.signal(signal.SIGINT, _leave)


@contextmanager
def listening() -> Iterator[None]:
    """While work is done, an interrupt is raised as usual, and noted."""
    global _came
    _came = False
    before = signal.getsignal(signal.SIGINT)
    is_ours = before in (signal.default_int_handler, _leave)
    with suppress(ValueError):
        if is_ours:
            signal.signal(signal.SIGINT, _raise)
    try:
        yield
    finally:
        with suppress(ValueError):
            if is_ours:
                signal.signal(signal.SIGINT, before)


def came() -> bool:
    """Whether an interrupt came since `listening` began, whatever it was turned into."""
    return _came


def _raise(number: int, frame: FrameType | None) -> None:
    global _came
    _came = True
    raise KeyboardInterrupt


def _leave(number: int, frame: FrameType | None) -> None:
    with suppress(Exception):
        sys.stdout.flush()
    with suppress(OSError):
        os.write(2, b"interrupted\n")
    os._exit(INTERRUPTED)
