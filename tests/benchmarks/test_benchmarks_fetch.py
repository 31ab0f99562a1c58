"""Fetching: from a loopback server and from folders, whole, broken off, damaged and missing."""

from __future__ import annotations

import errno
import functools
import hashlib
import http.server
import multiprocessing
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from dialeval.benchmarks import fetch as fetching
from dialeval.benchmarks import origin
from dialeval.benchmarks.base import BenchmarkInfo, FileSource, SourceFile
from dialeval.benchmarks.fetch import cached_path, fetch_files, is_cached
from dialeval.benchmarks.origin import FetchError, Unreachable

CONTENT = bytes(range(256)) * 1200
PATH = "data/a file.json"
COMMIT = "0" * 40


def pinned(content: bytes = CONTENT, path: str = PATH) -> SourceFile:
    return SourceFile(path, hashlib.sha256(content).hexdigest(), len(content))


def benchmark(*files: SourceFile, companion: SourceFile | None = None) -> BenchmarkInfo:
    return BenchmarkInfo(
        name="toy",
        title="Toy",
        level="turn",
        rows=1,
        sources=(FileSource("someone/something", COMMIT, files),),
        licence="MIT",
        citation="nobody",
        companion=companion,
    )


TOY = benchmark(pinned())


class Server(http.server.ThreadingHTTPServer):
    """Serves one content; `script` tells how the next requests misbehave, `seen` what was asked."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.content = CONTENT
        self.script: list[str] = []
        self.seen: list[tuple[str, str | None]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/mirror"


class Handler(http.server.BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        asked = self.headers.get("Range")
        self.server.seen.append((self.path, asked))
        mode = self.server.script.pop(0) if self.server.script else ""
        content = self.server.content
        if mode.isdigit():
            self.send_error(int(mode))
            return
        start = int(asked.removeprefix("bytes=").removesuffix("-")) if asked and mode != "no ranges" else 0
        if start:
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        else:
            self.send_response(200)
        if mode != "no length":
            self.send_header("Content-Length", str(len(content) - start))
        self.end_headers()
        rest = content[start:]
        self.wfile.write(rest[: len(rest) // 2] if mode in ("cut", "no length") else rest)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    running = Server()
    thread = threading.Thread(target=functools.partial(running.serve_forever, poll_interval=0.01))
    thread.start()
    yield running
    running.shutdown()
    thread.join()
    running.server_close()


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("DIALEVAL_CACHE", str(folder))
    monkeypatch.delenv("DIALEVAL_MIRROR", raising=False)
    monkeypatch.setattr(fetching, "PAUSE_SECONDS", 0.0)
    return folder


def kept(cache: Path) -> list[Path]:
    """Whatever lies in the cache, lock files aside."""
    return sorted(path for path in cache.rglob("*") if path.is_file() and path.suffix != ".lock")


def part_of(file: SourceFile) -> Path:
    final = cached_path(file)
    final.parent.mkdir(parents=True, exist_ok=True)
    return final.with_name(f"{final.name}.part")


def test_a_file_is_asked_for_once_under_its_quoted_address(server: Server, cache: Path) -> None:
    assert not is_cached(TOY)
    found = fetch_files(TOY, mirror=server.url)
    assert found[PATH].read_bytes() == CONTENT
    assert fetch_files(TOY, mirror=server.url) == found
    assert server.seen == [(f"/mirror/someone/something/{COMMIT}/data/a%20file.json", None)]
    assert kept(cache) == [cache / "benchmarks" / TOY.files[0][1].sha256[:2] / TOY.files[0][1].sha256]
    assert is_cached(TOY)


def test_the_host_is_used_without_a_mirror(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    assert origin.HOST == "https://raw.githubusercontent.com"
    monkeypatch.setattr(origin, "HOST", server.url)
    assert fetch_files(TOY)[PATH].read_bytes() == CONTENT


def test_the_environment_names_the_mirror(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIALEVAL_MIRROR", server.url)
    assert fetch_files(TOY)[PATH].read_bytes() == CONTENT


def test_a_transfer_that_breaks_off_is_resumed_at_once(server: Server) -> None:
    server.script = ["cut", "cut"]
    assert fetch_files(TOY, mirror=server.url)[PATH].read_bytes() == CONTENT
    half, three_quarters = len(CONTENT) // 2, len(CONTENT) * 3 // 4
    assert [asked for _, asked in server.seen] == [None, f"bytes={half}-", f"bytes={three_quarters}-"]


def test_what_an_earlier_run_left_is_resumed(server: Server) -> None:
    part_of(pinned()).write_bytes(CONTENT[:1000])
    assert fetch_files(TOY, mirror=server.url)[PATH].read_bytes() == CONTENT
    assert [asked for _, asked in server.seen] == ["bytes=1000-"]
    assert not part_of(pinned()).exists()


def test_a_server_without_ranges_sends_it_all_again(server: Server) -> None:
    part_of(pinned()).write_bytes(CONTENT[:1000])
    server.script = ["no ranges"]
    assert fetch_files(TOY, mirror=server.url)[PATH].read_bytes() == CONTENT


def test_a_refused_range_starts_from_the_beginning(server: Server) -> None:
    part_of(pinned()).write_bytes(CONTENT[:1000])
    server.script = ["416"]
    assert fetch_files(TOY, mirror=server.url)[PATH].read_bytes() == CONTENT
    assert [asked for _, asked in server.seen] == ["bytes=1000-", None]


@pytest.mark.parametrize("left", [b"x" * 1000, b"x" * len(CONTENT), b"x" * (len(CONTENT) + 5)])
def test_a_foreign_beginning_is_thrown_away(server: Server, left: bytes) -> None:
    part_of(pinned()).write_bytes(left)
    assert fetch_files(TOY, mirror=server.url)[PATH].read_bytes() == CONTENT


def test_a_transfer_that_never_ends_says_where_it_stopped(server: Server, cache: Path) -> None:
    server.script = ["no length"] * fetching.ATTEMPTS
    with pytest.raises(FetchError, match=rf"a%20file.json stopped at \d+ of {len(CONTENT)} bytes; run this again"):
        fetch_files(TOY, mirror=server.url)
    assert kept(cache) == [part_of(pinned())]
    assert fetch_files(TOY, mirror=server.url)[PATH].read_bytes() == CONTENT


def test_wrong_bytes_are_refused_and_not_kept(server: Server, cache: Path) -> None:
    server.content = CONTENT[:-1] + b"!"
    with pytest.raises(FetchError, match=r"a%20file.json has sha256 .*… instead of .*use another mirror"):
        fetch_files(TOY, mirror=server.url)
    assert kept(cache) == []
    assert len(server.seen) == 1


@pytest.mark.parametrize("content", [CONTENT[:-1], CONTENT + b"!", b"<html>log in</html>", b""])
def test_another_length_is_refused_before_anything_is_written(server: Server, cache: Path, content: bytes) -> None:
    server.content = content
    with pytest.raises(FetchError, match=rf"has {len(content)} bytes instead of {len(CONTENT)}"):
        fetch_files(TOY, mirror=server.url)
    assert kept(cache) == []


def test_too_much_from_a_server_that_tells_no_length(server: Server, cache: Path) -> None:
    server.content, server.script = CONTENT * 3, ["no length"]
    with pytest.raises(FetchError, match="sha256"):
        fetch_files(TOY, mirror=server.url)
    assert kept(cache) == []


def test_a_missing_file_names_the_layout_of_a_mirror(server: Server, cache: Path) -> None:
    server.script = ["404"]
    with pytest.raises(FetchError, match=r"a%20file.json is not there .*404.*OWNER/REPO/COMMIT/PATH"):
        fetch_files(TOY, mirror=server.url)
    assert kept(cache) == []


def test_a_missing_file_of_the_host_asks_for_a_mirror(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(origin, "HOST", server.url)
    server.script = ["404"]
    with pytest.raises(FetchError, match="repository may be gone: pass a mirror"):
        fetch_files(TOY)


def test_a_busy_server_gets_another_chance(server: Server) -> None:
    server.script = ["503", "429"]
    assert fetch_files(TOY, mirror=server.url)[PATH].read_bytes() == CONTENT
    assert len(server.seen) == 3


def test_a_server_that_stays_busy_or_forbids_is_told(server: Server, cache: Path) -> None:
    server.script = ["503"] * fetching.ATTEMPTS
    with pytest.raises(FetchError, match=r"stopped at 0 of .*the server answered 503"):
        fetch_files(TOY, mirror=server.url)
    server.script = ["403"]
    with pytest.raises(FetchError, match="refused \\(403 Forbidden\\)"):
        fetch_files(TOY, mirror=server.url)
    assert kept(cache) == []


def test_no_network_names_host_file_and_remedy(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{closed.getsockname()[1]}"
    with pytest.raises(Unreachable, match=r"no connection to 127.0.0.1:\d+ for data/a file.json .*DIALEVAL_MIRROR"):
        fetch_files(TOY, mirror=address)
    assert kept(cache) == []


def folder_mirror(tmp_path: Path, content: bytes = CONTENT) -> Path:
    mirror = tmp_path / "mirror folder"
    file = mirror / "someone" / "something" / COMMIT / PATH
    file.parent.mkdir(parents=True)
    file.write_bytes(content)
    return mirror


def test_a_folder_is_a_mirror_by_path_and_by_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mirror = folder_mirror(tmp_path)
    for number, place in enumerate((mirror, str(mirror), mirror.as_uri())):
        monkeypatch.setenv("DIALEVAL_CACHE", str(tmp_path / f"cache{number}"))
        found = fetch_files(TOY, mirror=place)[PATH]
        assert found == cached_path(pinned())
        assert found.read_bytes() == CONTENT


def test_what_is_cached_needs_no_mirror(tmp_path: Path) -> None:
    fetch_files(TOY, mirror=folder_mirror(tmp_path))
    assert fetch_files(TOY, mirror=tmp_path / "gone")[PATH].read_bytes() == CONTENT


def test_a_damaged_cache_is_noticed_and_mended(tmp_path: Path) -> None:
    mirror = folder_mirror(tmp_path)
    path = fetch_files(TOY, mirror=mirror)[PATH]
    path.write_bytes(b"?" * len(CONTENT))
    assert fetch_files(TOY, mirror=mirror)[PATH].read_bytes() == CONTENT


def test_a_corrupted_folder_is_refused(tmp_path: Path, cache: Path) -> None:
    mirror = folder_mirror(tmp_path, b"?" * len(CONTENT))
    with pytest.raises(FetchError, match=r"a file.json has sha256"):
        fetch_files(TOY, mirror=mirror)
    assert kept(cache) == []


@pytest.mark.parametrize(
    ("mirror", "message"),
    [
        ("nowhere", "mirror nowhere is not a folder"),
        ("ftp://host/folder", "is no folder and no http, https or file address"),
    ],
)
def test_an_unusable_mirror_is_told(mirror: str, message: str) -> None:
    with pytest.raises(FetchError, match=message):
        fetch_files(TOY, mirror=mirror)


def test_an_incomplete_or_unreadable_folder_is_told(tmp_path: Path) -> None:
    mirror = tmp_path / "mirror"
    place = mirror / "someone" / "something" / COMMIT
    place.mkdir(parents=True)
    with pytest.raises(FetchError, match=r"a file.json does not exist; complete the mirror"):
        fetch_files(TOY, mirror=mirror)
    (place / PATH).mkdir(parents=True)
    with pytest.raises(FetchError, match=r"a file.json cannot be read \(Is a directory\)"):
        fetch_files(TOY, mirror=mirror)


def test_a_full_disk_is_told_and_leaves_nothing(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(FetchError, match=r"no space left in .*cache for data/a file.json .*DIALEVAL_CACHE"):
        fetch_files(TOY, mirror=folder_mirror(tmp_path))
    assert kept(cache) == []


def test_a_cache_that_cannot_be_written_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("DIALEVAL_CACHE", str(tmp_path / "file"))
    with pytest.raises(FetchError, match=r"cannot be kept in .*file \(Not a directory\); set DIALEVAL_CACHE"):
        fetch_files(TOY, mirror=folder_mirror(tmp_path))


def test_an_interruption_keeps_the_beginning_and_goes_on(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    read, blocks = origin.Stream.read, []

    def interrupted(stream: origin.Stream, size: int) -> bytes:
        if blocks:
            raise KeyboardInterrupt
        blocks.append(read(stream, size))
        return blocks[0]

    with monkeypatch.context() as patch:
        patch.setattr(origin.Stream, "read", interrupted)
        with pytest.raises(KeyboardInterrupt):
            fetch_files(TOY, mirror=server.url)
    assert not cached_path(pinned()).exists()
    held = part_of(pinned()).read_bytes()
    assert held == blocks[0] == CONTENT[: len(held)]
    assert fetch_files(TOY, mirror=server.url)[PATH].read_bytes() == CONTENT
    assert server.seen[-1][1] == f"bytes={len(held)}-"


def test_a_companion_lies_beside_the_mirror(tmp_path: Path, server: Server) -> None:
    companion = pinned(b"beside\n", "benchmarks/beside.jsonl")
    toy = benchmark(companion=companion)
    with pytest.raises(FetchError, match=r"no single file to fetch; pass a mirror that has benchmarks/beside.jsonl"):
        fetch_files(toy)
    server.content = b"beside\n"
    assert fetch_files(toy, mirror=server.url)[companion.path].read_bytes() == b"beside\n"
    assert server.seen == [("/benchmarks/beside.jsonl", None)]
    cached_path(companion).unlink()
    (tmp_path / "mirror").mkdir()
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "beside.jsonl").write_bytes(b"beside\n")
    assert fetch_files(toy, mirror=tmp_path / "mirror")[companion.path].read_bytes() == b"beside\n"


def test_an_empty_file_can_be_pinned(server: Server) -> None:
    server.content = b""
    assert fetch_files(benchmark(pinned(b"")), mirror=server.url)[PATH].read_bytes() == b""


def _fetch_in_process(url: str, cache: str) -> bytes:
    os.environ |= {"DIALEVAL_CACHE": cache, "no_proxy": "127.0.0.1"}
    return fetch_files(TOY, mirror=url)[PATH].read_bytes()


@pytest.mark.slow
def test_processes_that_fetch_at_once_share_one_download(server: Server, cache: Path) -> None:
    server.script = ["cut"]
    with multiprocessing.get_context("spawn").Pool(3) as pool:
        found = pool.starmap(_fetch_in_process, [(server.url, str(cache))] * 6)
    assert found == [CONTENT] * 6
    assert [asked for _, asked in server.seen] == [None, f"bytes={len(CONTENT) // 2}-"]
    assert kept(cache) == [cached_path(pinned())]


def test_the_cache_follows_the_users_cache_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("DIALEVAL_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert fetching.cache_directory() == tmp_path / "dialeval"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert fetching.cache_directory() == tmp_path / ".cache" / "dialeval"
