"""Where uploads and results lie, and that they go again: after an hour, or when there are too many."""

from __future__ import annotations

import os
import secrets
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from time import monotonic

from limits import MAX_STORED_BYTES, MAX_STORED_FILES, STORED_SECONDS

#: One folder for what gradio keeps and what we make: only here does the page write, and only here is anything removed.
#: A folder that somebody names may hold what others put there, so ours is one inside it.
FOLDER = Path(os.environ.get("GRADIO_TEMP_DIR") or tempfile.mkdtemp(prefix="dialeval-")) / "page"
_EVERY = 60
#: What is younger may still be in use when all of it is too much.
_IN_USE = 300
#: And how old a count of all files may be.
_LOOK = 10.0


def use() -> None:
    """Have gradio keep its files here, too; it asks when a part of the page is made."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    os.environ["GRADIO_TEMP_DIR"] = str(FOLDER)


def new_folder() -> Path:
    """A folder for the results of one request, whose name nobody guesses."""
    folder = FOLDER / "results" / secrets.token_urlsafe(16)
    folder.mkdir(parents=True)
    return folder


def files() -> list[tuple[float, int, Path]]:
    """Age in seconds, size and place of every file, the oldest first."""
    found, now = [], time.time()
    for folder, _, names in os.walk(FOLDER):
        for name in names:
            path = Path(folder, name)
            with suppress(OSError):
                known = path.lstat()
                found.append((now - known.st_mtime, known.st_size, path))
    return sorted(found, reverse=True)


class Room:
    """Whether there is room for more, without looking at every file each time."""

    def __init__(self) -> None:
        self._at = float("-inf")
        self._bytes = self._files = 0

    def for_bytes(self, size: int) -> bool:
        """Whether an upload of so many bytes may come; if so, it is counted."""
        if monotonic() - self._at > _LOOK:
            self._look()
        if not self._fits(size):
            sweep(MAX_STORED_BYTES - size)
            self._look()
        if not self._fits(size):
            return False
        self._bytes += size
        self._files += 1
        return True

    def _look(self) -> None:
        found = files()
        self._at, self._bytes, self._files = monotonic(), sum(size for _, size, _ in found), len(found)

    def _fits(self, size: int) -> bool:
        return self._bytes + size <= MAX_STORED_BYTES and self._files < MAX_STORED_FILES


def sweep(most: int = MAX_STORED_BYTES, seconds: float = STORED_SECONDS) -> None:
    """Remove what is older than that; then the oldest, until no more than so much is left."""
    found = files()
    left = sum(size for _, size, _ in found)
    for age, size, path in found:
        if age > seconds or (left > most and age > _IN_USE):
            with suppress(OSError):
                path.unlink()
                left -= size
    for folder, _, _ in os.walk(FOLDER, topdown=False):
        # Not the folders that are just being filled, nor the one that all others stand in.
        with suppress(OSError):
            if Path(folder) != FOLDER and time.time() - os.stat(folder).st_mtime > _IN_USE:
                os.rmdir(folder)


def sweep_always() -> None:
    """From now on, every minute."""

    def run() -> None:
        while True:
            time.sleep(_EVERY)
            sweep()

    threading.Thread(target=run, name="sweep", daemon=True).start()
