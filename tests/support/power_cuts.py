"""The power goes out between any two operations on files: from a chosen one on, none is carried out any more.

A process without power clears nothing away, so everything after the cut fails, too, whatever tries it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest


class PowerCut(BaseException):
    """Not an Exception: nothing that handles errors may handle this one."""


_CHANGES = {"os.rename", "os.remove", "os.truncate", "os.chmod", "os.mkdir", "os.rmdir", "os.link", "os.symlink"}


#: Which argument is the folder that a name is relative to, where there is one; whole folders are removed like that.
_FOLDER_AT = {"os.remove": 1, "os.rmdir": 1, "os.mkdir": 2, "os.rename": 2, "os.chmod": 2}


def _absolute(event: str, arguments: tuple[Any, ...]) -> str:
    name, at = os.fsdecode(arguments[0]), _FOLDER_AT.get(event)
    folder = arguments[at] if at is not None else -1
    if isinstance(folder, int) and folder >= 0:
        name = os.path.join(os.readlink(f"/proc/self/fd/{folder}"), name)
    return os.path.abspath(name)


class _Meter:
    """Counts operations below a folder, and cuts the power at one of them. A hook stays, so it is switched."""

    def __init__(self) -> None:
        self.place: str | None = None
        self.left = -1
        self.done = 0

    def hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.place is None or not (event in _CHANGES or event == "open"):
            return
        if event == "open":
            flags = arguments[2] or 0
            if not flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC):
                return
        if isinstance(arguments[0], str | bytes | os.PathLike) and _absolute(event, arguments).startswith(self.place):
            self.count()

    def count(self) -> None:
        self.done += 1
        if self.left == 0:
            raise PowerCut
        self.left -= 1


_METER = _Meter()
_is_hooked = False


@contextmanager
def power_until(operation: int, place: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[_Meter]:
    """Carry out so many operations on files below `place`, and then none; with a negative number, all."""
    global _is_hooked
    if not _is_hooked:
        sys.addaudithook(_METER.hook)
        _is_hooked = True
    fsync = os.fsync

    def counted(descriptor: int) -> None:
        _METER.count()
        fsync(descriptor)

    with monkeypatch.context() as changed:
        changed.setattr(os, "fsync", counted)
        _METER.place, _METER.left, _METER.done = place, operation, 0
        try:
            yield _METER
        finally:
            _METER.place = None


def operations_of(work: Callable[[], Any], place: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many operations an undisturbed run takes."""
    with power_until(-1, place, monkeypatch) as meter:
        work()
    return meter.done
