"""Benchmark files from GitHub at their pinned commit, or from a mirror, into a cache where each is named by its sha256.

`pooch` downloads and checks. A file gets its name only when its bytes were checked; an interrupted one starts again.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import urllib.parse
import urllib.request
from functools import partial
from pathlib import Path
from typing import Any

from dialeval.benchmarks.benchmark import BenchmarkInfo, SourceFile
from dialeval.io.files import cache_directory, is_stream
from dialeval.version import how_to_install

HOST = "https://raw.githubusercontent.com"
TIMEOUT_SECONDS = 30
RETRIES = 2
_REMEDY = "pass a folder or an address with the layout OWNER/REPO/COMMIT/PATH by --mirror or DIALEVAL_MIRROR"


class FetchError(OSError):
    """A file could not be fetched; the message names it and says what to do."""


class Unreachable(FetchError):
    """There is no connection to the host, so other files of it will fail as well."""


def cached_path(file: SourceFile) -> Path:
    """Where a file lies once it was fetched."""
    return cache_directory() / "benchmarks" / file.sha256[:2] / file.sha256


def fetch_files(
    info: BenchmarkInfo, *, mirror: str | os.PathLike[str] | None = None, progress: bool = False
) -> dict[str, Path]:
    """Local copies of all files of a benchmark, by their path in the repository.

    `mirror` (or the environment variable DIALEVAL_MIRROR) is a folder or an http(s) or file address with the layout
    OWNER/REPO/COMMIT/PATH that is read instead of GitHub. What is in the cache is not fetched again.
    """
    place = (os.environ.get("DIALEVAL_MIRROR") if mirror is None else os.fspath(mirror)) or HOST
    for source, file in info.files:
        if not _is_genuine(file):
            _fetch(file, _address(place, source.repository, source.commit, file.path), progress)
    pinned = [file for _, file in info.files]
    if info.companion is not None:
        # A converted file, which only mirrors have: it lies beside the mirror's own folder.
        if not _is_genuine(info.companion):
            if place == HOST:
                raise FetchError(
                    f"{info.name} is not available online; pass a mirror with {info.companion.path} beside it"
                )
            above = place.rstrip("/").rpartition("/")[0] if _is_url(place) else str(_folder(place).parent)
            _fetch(info.companion, _address(above, info.companion.path), progress)
        pinned.append(info.companion)
    return {file.path: cached_path(file) for file in pinned}


def is_cached(info: BenchmarkInfo) -> bool:
    """Whether all files of a benchmark are in the cache, by name and size; reading them checks the rest."""
    paths = [(cached_path(file), file.bytes) for file in (*(file for _, file in info.files), info.companion) if file]
    return all(path.is_file() and path.stat().st_size == size for path, size in paths)


def _is_genuine(file: SourceFile) -> bool:
    """Whether the cache holds exactly the pinned bytes; read anew each time, because disks fail."""
    path = cached_path(file)
    if not path.is_file() or path.stat().st_size != file.bytes:
        return False
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest() == file.sha256


def _fetch(file: SourceFile, address: str, progress: bool) -> None:
    try:
        import pooch
        import requests
    except ModuleNotFoundError as error:
        message = f"fetching benchmarks needs {error.name}; install it with: {how_to_install('agreement')}"
        raise ModuleNotFoundError(message, name=error.name) from None
    pooch.get_logger().setLevel("WARNING")
    shown = progress and sys.stderr is not None and sys.stderr.isatty()
    downloader = (
        pooch.HTTPDownloader(progressbar=shown, timeout=TIMEOUT_SECONDS) if _is_url(address) else partial(_copy, file)
    )
    name = f"{file.sha256[:2]}/{file.sha256}"
    cache = pooch.create(
        cache_directory() / "benchmarks",
        base_url="",
        registry={name: f"sha256:{file.sha256}"},
        urls={name: address},
        retry_if_failed=RETRIES if _is_url(address) else 0,
    )
    try:
        cache.fetch(name, downloader=downloader)
    except requests.HTTPError as error:
        raise FetchError(f"{file.path}: {error}; {_REMEDY}") from None
    except (requests.ConnectionError, requests.Timeout) as error:
        host = urllib.parse.urlsplit(address).netloc
        raise Unreachable(f"no connection to {host} for {file.path} ({error}); {_REMEDY}") from None
    except requests.RequestException as error:
        raise FetchError(f"{address}: {error}; run this again") from None
    except OSError as error:
        if isinstance(error, FetchError):
            raise
        message = f"{file.path} cannot be stored in {cache_directory()} ({error.strerror or error})"
        raise FetchError(f"{message}; set DIALEVAL_CACHE to a writable folder with enough space") from None
    except ValueError:
        raise FetchError(f"{address} is not the pinned file: sha256 is not {file.sha256[:12]}…; {_REMEDY}") from None


def _copy(file: SourceFile, address: str, output: str, _pooch: Any) -> None:
    """pooch's downloader for files of a folder; a pipe or a device there might have no end."""
    try:
        size = Path(address).stat().st_size
        if is_stream(Path(address)) or size != file.bytes:
            raise FetchError(f"{address} is not the pinned file: it has {size} bytes, not {file.bytes}; {_REMEDY}")
        source = Path(address).open("rb")  # noqa: SIM115 - closed below
    except OSError as error:
        if isinstance(error, FetchError):
            raise
        raise FetchError(f"{address} cannot be read ({error.strerror}); {_REMEDY}") from None
    with source, Path(output).open("wb") as target:
        shutil.copyfileobj(source, target)


def _is_url(address: str) -> bool:
    return address.startswith(("http://", "https://"))


def _folder(mirror: str) -> Path:
    """A mirror that is a folder, or the file address of one."""
    address = urllib.parse.urlsplit(mirror)
    folder = Path(urllib.request.url2pathname(address.path) if address.scheme == "file" else mirror)
    folder = folder.expanduser().absolute()
    if not folder.is_dir():
        raise FetchError(f"mirror {mirror} is neither a folder nor an http(s) address; {_REMEDY}")
    return folder


def _address(base: str, *parts: str) -> str:
    if _is_url(base):
        return "/".join([base.rstrip("/"), *map(urllib.parse.quote, parts)])
    return str(_folder(base).joinpath(*parts))
