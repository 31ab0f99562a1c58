"""Where a benchmark's file comes from: GitHub at a commit, or a mirror of the same layout."""

from __future__ import annotations

import http.client
import re
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Self

from dialeval.benchmarks.base import BenchmarkInfo, FileSource, SourceFile

HOST = "https://raw.githubusercontent.com"
TIMEOUT_SECONDS = 30.0


class FetchError(OSError):
    """A file could not be fetched; the message names it and says what to do."""


class Unreachable(FetchError):
    """There is no connection to the host, so other files of it will fail as well."""


class Stalled(Exception):
    """A transfer broke off, or the server was busy; another attempt may succeed."""


class Stream:
    """The bytes of a file from `offset` on."""

    def __init__(self, raw: BinaryIO | http.client.HTTPResponse, offset: int) -> None:
        self._raw = raw
        self.offset = offset

    def read(self, size: int) -> bytes:
        """The next bytes; none at the end."""
        try:
            return self._raw.read(size)
        except (OSError, http.client.HTTPException) as error:
            raise Stalled(str(error) or type(error).__name__) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._raw.close()


@dataclass(frozen=True)
class Origin:
    """One file at one address: a URL, or a path in a folder."""

    file: SourceFile
    address: str
    is_mirror: bool

    def open(self, offset: int) -> Stream:
        """Start reading at a position; a server may start earlier, which `Stream.offset` tells."""
        return self._open_url(offset) if _is_url(self.address) else self._open_path(offset)

    def _open_path(self, offset: int) -> Stream:
        try:
            raw = Path(self.address).open("rb")  # noqa: SIM115 - the stream closes it
        except FileNotFoundError:
            raise FetchError(self._missing("does not exist")) from None
        except OSError as error:
            raise FetchError(f"{self.address} cannot be read ({error.strerror}); check its permissions") from None
        self._expect(raw.seek(0, 2))
        raw.seek(offset)
        return Stream(raw, offset)

    def _open_url(self, offset: int) -> Stream:
        request = urllib.request.Request(self.address, headers={"User-Agent": "dialeval"})
        if offset:
            request.add_header("Range", f"bytes={offset}-")
        try:
            response = urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS)
        except urllib.error.HTTPError as error:
            error.close()
            if error.code == http.client.REQUESTED_RANGE_NOT_SATISFIABLE and offset:
                return self._open_url(0)
            raise self._refusal(error) from None
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", None) or error
            raise Unreachable(
                f"no connection to {urllib.parse.urlsplit(self.address).netloc} for {self.file.path} ({reason}); "
                "connect to a network, or pass a folder that holds the files with --mirror or DIALEVAL_MIRROR"
            ) from None
        span = re.fullmatch(r"bytes (\d+)-\d+/(\d+)", response.headers.get("Content-Range", ""))
        if response.status == http.client.PARTIAL_CONTENT and span is not None:
            self._expect(int(span[2]))
            return Stream(response, int(span[1]))
        length = response.headers.get("Content-Length", "")
        if length.isdigit():
            self._expect(int(length))
        return Stream(response, 0)

    def _expect(self, size: int) -> None:
        if size != self.file.bytes:
            raise FetchError(
                f"{self.address} has {size} bytes instead of {self.file.bytes}, so it is not the pinned file; "
                "use another mirror or none"
            )

    def _refusal(self, error: urllib.error.HTTPError) -> Exception:
        if error.code in (404, 410):
            return FetchError(self._missing(f"is not there (the server answered {error.code})"))
        if error.code >= 500 or error.code == 429:
            return Stalled(f"the server answered {error.code}")
        return FetchError(f"{self.address} was refused ({error.code} {error.reason}); use another mirror or none")

    def _missing(self, what: str) -> str:
        if self.is_mirror:
            remedy = "complete the mirror (layout OWNER/REPO/COMMIT/PATH), or fetch without one"
        else:
            remedy = "its repository may be gone: pass a mirror that still has it with --mirror or DIALEVAL_MIRROR"
        return f"{self.address} {what}; {remedy}"


def origin_of(source: FileSource, file: SourceFile, mirror: str | None) -> Origin:
    """The address of one file of a repository."""
    base = HOST if mirror is None else _checked_mirror(mirror)
    return Origin(file, _join(base, source.repository, source.commit, file.path), mirror is not None)


def origin_of_companion(info: BenchmarkInfo, file: SourceFile, mirror: str | None) -> Origin:
    """The address of a converted file, which only a mirror has: it lies beside the mirror's own folder."""
    if mirror is None:
        raise FetchError(
            f"{info.name} has no single file to fetch; pass a mirror that has {file.path} beside it, "
            "or load such a file by its path"
        )
    base = _checked_mirror(mirror)
    beside = base.rstrip("/").rpartition("/")[0] if _is_url(base) else str(Path(base).parent)
    return Origin(file, _join(beside, file.path), True)


def _is_url(address: str) -> bool:
    return address.startswith(("http://", "https://"))


def _join(base: str, *parts: str) -> str:
    if _is_url(base):
        return "/".join([base.rstrip("/"), *(urllib.parse.quote(part) for part in parts)])
    return str(Path(base, *parts))


def _checked_mirror(mirror: str) -> str:
    if _is_url(mirror):
        return mirror
    parts = urllib.parse.urlsplit(mirror)
    if "://" in mirror and parts.scheme != "file":
        raise FetchError(f"mirror {mirror} is no folder and no http, https or file address; pass one of these")
    folder = Path(urllib.request.url2pathname(parts.path) if parts.scheme == "file" else mirror)
    folder = folder.expanduser().absolute()
    if not folder.is_dir():
        raise FetchError(f"mirror {mirror} is not a folder; pass one with the layout OWNER/REPO/COMMIT/PATH")
    return str(folder)
