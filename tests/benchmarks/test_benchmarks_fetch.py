"""Benchmark files: fetched, checked and kept, and the command that does it."""

from __future__ import annotations

import functools
import hashlib
import http.server
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from dialeval import benchmarks
from dialeval.benchmarks import fetch as fetching
from dialeval.benchmarks.benchmark import BenchmarkInfo, FileSource, SourceFile
from dialeval.benchmarks.fetch import FetchError, Unreachable, cached_path, fetch_files, is_cached
from dialeval.cli import benchmarks as command
from refusals import refused

CONTENT = bytes(range(256)) * 1200
PATH = "data/a file.json"
COMMIT = "0" * 40


def pinned(content: bytes = CONTENT, path: str = PATH) -> SourceFile:
    return SourceFile(path, hashlib.sha256(content).hexdigest(), len(content))


def benchmark(*files: SourceFile, companion: SourceFile | None = None) -> BenchmarkInfo:
    sources = (FileSource("someone/something", COMMIT, files),)
    return BenchmarkInfo("toy", "Toy", "turn", 1, sources, licence="MIT", citation="nobody", companion=companion)


TOY = benchmark(pinned())


class Server(http.server.ThreadingHTTPServer):
    """Serves one content; `script` says how the next requests misbehave, `seen` what was asked."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.content = CONTENT
        self.script: list[str] = []
        self.seen: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/mirror"


class Handler(http.server.BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.seen.append(self.path)
        mode = self.server.script.pop(0) if self.server.script else ""
        if mode.isdigit():
            self.send_error(int(mode))
            return
        content = self.server.content
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[: len(content) // 2] if mode == "cut" else content)

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
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    return folder


def kept(cache: Path) -> list[Path]:
    return sorted(path for path in cache.rglob("*") if path.is_file())


def folder_mirror(tmp_path: Path, content: bytes = CONTENT) -> Path:
    mirror = tmp_path / "mirror folder"
    file = mirror / "someone" / "something" / COMMIT / PATH
    file.parent.mkdir(parents=True)
    file.write_bytes(content)
    return mirror


def test_a_file_is_asked_for_once_under_its_quoted_address(server: Server, cache: Path) -> None:
    assert not is_cached(TOY)
    found = fetch_files(TOY, mirror=server.url)
    assert found[PATH].read_bytes() == CONTENT
    assert fetch_files(TOY, mirror=server.url) == found
    assert server.seen == [f"/mirror/someone/something/{COMMIT}/data/a%20file.json"]
    assert kept(cache) == [cached_path(pinned())]
    assert is_cached(TOY)


@pytest.mark.parametrize("trouble", ["cut", "503", "429"])
def test_what_breaks_off_starts_again(server: Server, trouble: str) -> None:
    server.script = [trouble, trouble]
    assert fetch_files(TOY, mirror=server.url)[PATH].read_bytes() == CONTENT
    assert len(server.seen) == 3


@pytest.mark.parametrize(("script", "named"), [("cut", "run this again"), ("503", "503"), ("404", "404")])
def test_trouble_that_stays_is_named_and_leaves_nothing(server: Server, cache: Path, script: str, named: str) -> None:
    server.script = [script] * (fetching.RETRIES + 1)
    assert "a%20file.json" in refused(FetchError, named, fetch_files, TOY, mirror=server.url)
    assert kept(cache) == []
    assert fetch_files(TOY, mirror=server.url)[PATH].read_bytes() == CONTENT


@pytest.mark.parametrize("content", [CONTENT[:-1] + b"!", CONTENT[:-1], CONTENT + b"!", b"<html>log in</html>", b""])
def test_wrong_bytes_are_refused_and_not_kept(server: Server, cache: Path, content: bytes) -> None:
    server.content = content
    refused(FetchError, pinned().sha256[:12], fetch_files, TOY, mirror=server.url)
    assert kept(cache) == []


def test_no_network_names_host_file_and_mirror(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{closed.getsockname()[1]}"
    with pytest.raises(Unreachable) as failed:
        fetch_files(TOY, mirror=f"http://{address}")
    assert all(word in str(failed.value) for word in (address, PATH, "DIALEVAL_MIRROR"))
    assert kept(cache) == []


def test_a_folder_is_a_mirror_by_path_and_by_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mirror = folder_mirror(tmp_path)
    for number, place in enumerate((mirror, str(mirror), mirror.as_uri())):
        monkeypatch.setenv("DIALEVAL_CACHE", str(tmp_path / f"cache{number}"))
        found = fetch_files(TOY, mirror=place)[PATH]
        assert found == cached_path(pinned())
        assert found.read_bytes() == CONTENT


def test_a_damaged_cache_is_noticed_and_mended_and_a_whole_one_needs_no_mirror(tmp_path: Path) -> None:
    mirror = folder_mirror(tmp_path)
    path = fetch_files(TOY, mirror=mirror)[PATH]
    path.write_bytes(b"?" * len(CONTENT))
    assert fetch_files(TOY, mirror=mirror)[PATH].read_bytes() == CONTENT
    assert fetch_files(TOY, mirror=tmp_path / "gone")[PATH].read_bytes() == CONTENT


@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_a_mirror_without_an_end_is_refused(kind: str, tmp_path: Path, cache: Path) -> None:
    mirror = folder_mirror(tmp_path)
    (file,) = (path for path in mirror.rglob("*") if path.is_file())
    file.unlink()
    {"pipe": os.mkfifo, "device": lambda path: path.symlink_to("/dev/zero"), "folder": Path.mkdir}[kind](file)
    refused(FetchError, "is not the pinned file", fetch_files, TOY, mirror=mirror)
    assert kept(cache) == []


def test_a_cache_that_cannot_be_written_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("DIALEVAL_CACHE", str(tmp_path / "file"))
    refused(FetchError, "DIALEVAL_CACHE", lambda: fetch_files(TOY, mirror=folder_mirror(tmp_path)))


def test_an_interruption_leaves_nothing_half(server: Server, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pooch

    def interrupted(self: object, url: str, output: str, pooch: object) -> None:
        Path(output).write_bytes(CONTENT[:1000])
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(pooch.HTTPDownloader, "__call__", interrupted)
        with pytest.raises(KeyboardInterrupt):
            fetch_files(TOY, mirror=server.url)
    assert kept(cache) == []
    assert fetch_files(TOY, mirror=server.url)[PATH].read_bytes() == CONTENT


Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("DIALEVAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))
    monkeypatch.delenv("DIALEVAL_MIRROR", raising=False)
    app = typer.Typer()
    app.add_typer(command.app, name="benchmarks")
    app.callback()(lambda: None)
    return lambda *words: CliRunner().invoke(app, ["benchmarks", *map(str, words)])


def test_the_list_names_every_benchmark_in_full(run: Run) -> None:
    lines = run("list").output.splitlines()
    assert [line.split()[0] for line in lines[1:-1]] == benchmarks.available()
    assert lines[1].split() == ["convai2_grade", "turn", "600", "coherence", "4", "no", "standard", "-"]
    rows = [line.split() for line in lines[1:-1]]
    assert [row[0] for row in rows if row[-1] != "-"] == [name for name, *_ in rows if name.startswith("fbd_")]
    assert "`all` leaves out" in lines[-1]
    assert "repeats rows of: dailydialog_zhao" in run("info", "fbd_dailyz").output


def test_an_unknown_name_gets_a_suggestion_before_anything_is_fetched(run: Run) -> None:
    failed = run("fetch", "convai2_grade", "persona_user")
    assert isinstance(failed.exception, ValueError)
    assert "did you mean 'persona_usr'" in str(failed.exception)


def test_fetching_goes_on_after_a_failure_and_says_so_at_the_end(run: Run, tmp_path: Path) -> None:
    (tmp_path / "mirror").mkdir()
    failed = run("fetch", "persona_usr", "fed_turn", "--mirror", tmp_path / "mirror")
    assert failed.exit_code == 1
    first, second = failed.output.splitlines()
    assert first.startswith("persona_usr: ")
    assert "pc_usr_data.json" in first
    assert second.startswith("fed_turn: ")
