"""A file that appears when it is complete, and that nobody else can read before."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def private_until_done(path: Path, hidden: Path) -> Iterator[Path]:
    """Hand out `hidden`, beside `path`, to write to; it takes the place of `path` if all goes well.

    While it is written only its owner may read it (0600); then it gets the mode that any new file would
    have had. What an interrupted run, or somebody else, left under its name is removed, never followed.
    """
    hidden.unlink(missing_ok=True)
    descriptor = os.open(hidden, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
    usual = os.fstat(descriptor).st_mode & 0o777
    os.close(descriptor)
    try:
        os.chmod(hidden, 0o600)
        yield hidden
        os.chmod(hidden, usual)
        os.replace(hidden, path)
    finally:
        with suppress(OSError):
            hidden.unlink(missing_ok=True)
