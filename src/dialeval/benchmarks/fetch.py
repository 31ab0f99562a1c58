"""Benchmark files from GitHub at their pinned commit, or from a mirror, into a cache addressed by content.

A file enters the cache under its sha256 only after its bytes were checked, by a rename; what an
interruption leaves behind is a `.part` file from which the next attempt goes on. Downloaders that do most of this were
tried: pooch 1.9 begins anew after a break (a file cut off at 28 of 30 MB took 58 MB), and the Hub's client resumes
but knows the Hub's addresses only.
"""

from __future__ import annotations

import errno
import hashlib
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from dialeval.benchmarks.base import BenchmarkInfo, SourceFile
from dialeval.benchmarks.origin import FetchError, Origin, Stalled, origin_of, origin_of_companion

ATTEMPTS = 3
PAUSE_SECONDS = 0.5
CHUNK = 1 << 16

#: Told how many bytes of the current file have arrived.
Tell = Callable[[int], None]


def cache_directory() -> Path:
    """`$DIALEVAL_CACHE`, else `dialeval` in the user's cache folder."""
    own = os.environ.get("DIALEVAL_CACHE")
    if own:
        return Path(own).expanduser()
    shared = os.environ.get("XDG_CACHE_HOME")
    return (Path(shared).expanduser() if shared else Path.home() / ".cache") / "dialeval"


def cached_path(file: SourceFile) -> Path:
    """Where a file lies once it was fetched."""
    return cache_directory() / "benchmarks" / file.sha256[:2] / file.sha256


def is_genuine(path: Path, file: SourceFile) -> bool:
    """Whether the file is there with exactly the pinned bytes; read anew each time, because disks fail."""
    return path.is_file() and path.stat().st_size == file.bytes and _sha256(path) == file.sha256


def fetch_files(
    info: BenchmarkInfo, *, mirror: str | os.PathLike[str] | None = None, progress: bool = False
) -> dict[str, Path]:
    """Local copies of all files of a benchmark, by their path in the repository.

    `mirror` (or the environment variable DIALEVAL_MIRROR) is a folder or an http(s) or file address
    with the layout OWNER/REPO/COMMIT/PATH that takes GitHub's place. What is in the cache already
    is asked for nowhere.
    """
    place = (os.environ.get("DIALEVAL_MIRROR") or None) if mirror is None else os.fspath(mirror)
    found = {}
    with _bar(info, progress) as tell_of:
        for source, file in info.files:
            found[file.path] = _local(file, partial(origin_of, source, file, place), tell_of(file))
        if info.companion is not None:
            origin = partial(origin_of_companion, info, info.companion, place)
            found[info.companion.path] = _local(info.companion, origin, tell_of(info.companion))
    return found


def is_cached(info: BenchmarkInfo) -> bool:
    """Whether all files of a benchmark are in the cache, by name and size; reading them checks the rest."""
    files = [file for _, file in info.files] + ([info.companion] if info.companion else [])
    return all(_size(cached_path(file)) == file.bytes for file in files)


def _local(file: SourceFile, origin: Callable[[], Origin], tell: Tell) -> Path:
    final = cached_path(file)
    with _cache_trouble(file):
        if not is_genuine(final, file):
            _fetch(origin(), final, tell)
    tell(file.bytes)
    return final


def _fetch(origin: Origin, final: Path, tell: Tell) -> None:
    from filelock import FileLock

    final.parent.mkdir(parents=True, exist_ok=True)
    # The kernel drops the lock with its holder; whoever waited finds the file, or its beginning.
    with FileLock(final.with_name(f"{final.name}.lock")):
        if not is_genuine(final, origin.file):
            part = final.with_name(f"{final.name}.part")
            _complete(origin, part, tell)
            os.replace(part, final)


def _complete(origin: Origin, part: Path, tell: Tell) -> None:
    """Bring the part to its full, checked length, or say why that is impossible."""
    file, trouble = origin.file, ""
    for attempt in range(ATTEMPTS):
        if attempt:
            time.sleep(PAUSE_SECONDS)
        started_at = _size(part)
        if started_at < file.bytes or not part.exists():
            try:
                started_at = _append(origin, part, started_at, tell)
            except Stalled as stalled:
                trouble = f" ({stalled})"
        if is_genuine(part, file):
            return
        if _size(part) < file.bytes:
            continue
        # Full length, wrong bytes. If they came in several pieces, one may have been foreign: start anew.
        found = _sha256(part)
        part.unlink()
        if started_at == 0:
            raise FetchError(
                f"{origin.address} has sha256 {found[:12]}… instead of {file.sha256[:12]}…: its content was changed "
                "or damaged, so it was not kept; use another mirror or none"
            )
    raise FetchError(
        f"{origin.address} stopped at {_size(part)} of {file.bytes} bytes{trouble}; run this again to go on from there"
    )


def _append(origin: Origin, part: Path, offset: int, tell: Tell) -> int:
    """Write what the origin gives from `offset` on; returns where it really began."""
    with origin.open(offset) as stream:
        # A server that knows no ranges sends the whole file again.
        offset = held = stream.offset
        with part.open("r+b" if part.exists() else "wb") as target:
            target.seek(offset)
            target.truncate()
            # One byte too many is enough to know that the content is wrong.
            while held <= origin.file.bytes and (block := stream.read(CHUNK)):
                target.write(block)
                held += len(block)
                tell(min(held, origin.file.bytes))
            target.flush()
            os.fsync(target.fileno())
    return offset


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


@contextmanager
def _cache_trouble(file: SourceFile) -> Iterator[None]:
    """Say what is wrong with the cache folder in place of a bare operating-system error."""
    try:
        yield
    except FetchError:
        raise
    except OSError as error:
        cache = cache_directory()
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            final = cached_path(file)
            final.with_name(f"{final.name}.part").unlink(missing_ok=True)
            raise FetchError(
                f"no space left in {cache} for {file.path} ({file.bytes} bytes); "
                "free some, or set DIALEVAL_CACHE to a folder on another disk"
            ) from None
        raise FetchError(
            f"{file.path} cannot be kept in {cache} ({error.strerror or error}); "
            "set DIALEVAL_CACHE to a folder that can be written"
        ) from None


@contextmanager
def _bar(info: BenchmarkInfo, shown: bool) -> Iterator[Callable[[SourceFile], Tell]]:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not (shown and console.is_terminal)) as bar:
        total = sum(file.bytes for _, file in info.files) + (info.companion.bytes if info.companion else 0)
        task = bar.add_task(info.name, total=total)
        done = 0

        def tell_of(file: SourceFile) -> Tell:
            nonlocal done
            before, done = done, done + file.bytes
            return lambda held: bar.update(task, completed=before + held)

        yield tell_of
