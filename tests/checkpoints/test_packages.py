"""Base encoders from packages: the pieces of one archive are put together once, whole or not at all."""

import hashlib
import io
import os
import shutil
import signal
import subprocess
import sys
import zipfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from dialeval.checkpoints import packages
from dialeval.checkpoints.catalogue import BaseEncoder, base_encoders
from dialeval.checkpoints.find import CheckpointError, find_encoder
from dialeval.checkpoints.packages import from_packages, installed
from refusals import refused

FILES = {"model.safetensors": bytes(range(256)) * 9000, "tokenizer.json": b"{}" * 700, "config.json": b"{}"}


@pytest.fixture
def encoder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BaseEncoder:
    """An encoder in three packages, on the path of this process."""
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in FILES.items():
            archive.writestr(f"small/{name}", content)
    site, names = tmp_path / "site", [f"small-piece-{number}" for number in (1, 2, 3)]
    size = -(-len(whole.getvalue()) // 3)
    for number, name in enumerate(names):
        piece = f"{name}/input/small.zip.00{number + 1}"
        (site / piece).parent.mkdir(parents=True)
        (site / piece).write_bytes(whole.getvalue()[number * size : (number + 1) * size])
        about = site / f"{name.replace('-', '_')}-0.0.1.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.0.1\n")
        (about / "RECORD").write_text(f"{piece},,\n")
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.setenv("DIALEVAL_CACHE", str(tmp_path / "cache"))
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in FILES.items()}
    return BaseEncoder("someone/small", "large", tuple(names), digests, archive="small")


def test_pieces_become_one_folder_and_are_not_needed_again(encoder: BaseEncoder, tmp_path: Path) -> None:
    folder = from_packages(encoder)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == FILES
    assert installed(encoder).startswith("package small-piece-1")
    shutil.rmtree(tmp_path / "site")
    assert from_packages(encoder) == folder
    assert sorted(path.name for path in folder.parent.iterdir()) == [folder.name, f"{folder.name}.lock"]


def test_a_package_that_is_missing_gives_nothing(encoder: BaseEncoder, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "site" / "small_piece_2-0.0.1.dist-info")
    assert from_packages(encoder) is None
    assert installed(encoder) == ""


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_damaged_piece_leaves_no_folder(encoder: BaseEncoder, tmp_path: Path, number: int) -> None:
    piece = tmp_path / "site" / f"small-piece-{number}/input/small.zip.00{number}"
    content = bytearray(piece.read_bytes())
    content[len(content) // 2] ^= 0xFF
    piece.write_bytes(content)
    refused(CheckpointError, "--force-reinstall", from_packages, encoder)
    assert not [path for path in (tmp_path / "cache" / "encoders").iterdir() if path.suffix != ".lock"]


def test_an_archive_of_other_contents_leaves_no_folder(encoder: BaseEncoder, tmp_path: Path) -> None:
    """It is whole by its own word."""
    other = replace(encoder, files={**encoder.files, "config.json": hashlib.sha256(b"[]").hexdigest()})
    assert "config.json" in refused(CheckpointError, "--force-reinstall", from_packages, other)
    assert in_the_cache(tmp_path) == {}


def test_whatever_byte_of_the_directory_is_damaged_is_told(encoder: BaseEncoder, tmp_path: Path) -> None:
    """zipfile raises nearly anything: of a method, a version, a password, a place that is no place."""
    piece = tmp_path / "site" / "small-piece-3/input/small.zip.003"
    sound = piece.read_bytes()
    for place in range(sound.index(b"PK\x01\x02"), len(sound)):
        piece.write_bytes(sound[:place] + bytes([sound[place] ^ 0x61]) + sound[place + 1 :])
        with suppress(CheckpointError):
            folder = from_packages(encoder)
            assert {path.name: path.read_bytes() for path in folder.iterdir()} == FILES
            shutil.rmtree(folder)
        assert in_the_cache(tmp_path) == {}, place


@pytest.mark.parametrize("put", [None, os.mkfifo, Path.mkdir])
def test_a_piece_that_is_no_file_is_told(
    put: Callable[[Path], None] | None, encoder: BaseEncoder, tmp_path: Path
) -> None:
    piece = tmp_path / "site" / "small-piece-2/input/small.zip.002"
    piece.unlink()
    if put:
        put(piece)
    refused(CheckpointError, "small.zip.002 is missing", from_packages, encoder)


@pytest.mark.parametrize("put", [os.mkfifo, Path.touch, lambda path: path.symlink_to(path.parents[2] / "elsewhere")])
def test_what_stands_in_the_place_of_the_folder_gives_way(
    put: Callable[[Path], None], encoder: BaseEncoder, tmp_path: Path
) -> None:
    """A link does; what it leads to stays as it is."""
    folder = from_packages(encoder)
    shutil.rmtree(folder)
    kept = tmp_path / "elsewhere" / "kept"
    kept.parent.mkdir()
    kept.touch()
    put(folder)
    assert from_packages(encoder) == folder
    assert in_the_cache(tmp_path) == {folder.name: sorted(FILES)}
    assert list(kept.parent.iterdir()) == [kept]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("content", [b"", b"\0" * 64])
def test_a_file_that_was_damaged_since_is_told(
    name: str, content: bytes, encoder: BaseEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dialeval.checkpoints.find.base_encoders", lambda: {encoder.id: encoder})
    located = find_encoder(encoder.id)
    (located.folder / name).write_bytes(content)
    refused(CheckpointError, f"{located.folder / name} has sha256", find_encoder, encoder.id)
    (located.folder / name).unlink()  # as the sentence says
    assert (find_encoder(encoder.id).folder / name).read_bytes() == FILES[name]


@pytest.fixture
def joining(encoder: BaseEncoder, tmp_path: Path) -> Callable[..., subprocess.Popen[str]]:
    """Starts a process that joins the pieces; `first` is code that it runs before."""

    def start(first: str = "") -> subprocess.Popen[str]:
        code = (
            "import os, resource, signal, sys\n"
            "from dialeval.checkpoints import packages\n"
            f"encoder = packages.BaseEncoder('someone/small', 'large', {encoder.packages!r}, {dict(encoder.files)!r},"
            " archive='small')\n"
            f"{first}\n"
            "print(packages.from_packages(encoder, progress=False))\n"
        )
        paths = [str(tmp_path / "site"), str(Path(packages.__file__).parents[2])]
        environment = {"PYTHONPATH": ":".join(paths), "PATH": "", "DIALEVAL_CACHE": str(tmp_path / "cache")}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen([sys.executable, "-c", code], env=environment, text=True, **pipes)  # type: ignore[call-overload, no-any-return]

    return start


def in_the_cache(tmp_path: Path) -> dict[str, list[str]]:
    folder = tmp_path / "cache" / "encoders"
    return {path.name: sorted(file.name for file in path.iterdir()) for path in folder.iterdir() if path.is_dir()}


def test_a_kill_in_between_leaves_nothing_that_is_taken_for_whole(
    encoder: BaseEncoder, joining: Callable[..., subprocess.Popen[str]], tmp_path: Path
) -> None:
    killed = joining(
        "copied = packages._copied\n"
        "def kill(archive, name, *rest):\n"
        "    if name.endswith('tokenizer.json'): os.kill(os.getpid(), signal.SIGKILL)\n"
        "    return copied(archive, name, *rest)\n"
        "packages._copied = kill"
    )
    assert killed.wait() == -signal.SIGKILL
    assert in_the_cache(tmp_path)
    folder = from_packages(encoder)
    assert in_the_cache(tmp_path) == {folder.name: sorted(FILES)}


def test_two_processes_join_once(joining: Callable[..., subprocess.Popen[str]], tmp_path: Path) -> None:
    both = [joining("print('ready', flush=True); sys.stdin.readline()") for _ in range(2)]
    for one in both:
        assert one.stdout.readline() == "ready\n"
    told = [one.communicate("go\n") for one in both]
    assert [one.returncode for one in both] == [0, 0], told
    assert told[0] == told[1]
    assert {path.name: path.read_bytes() for path in Path(told[0][0].strip()).iterdir()} == FILES
    assert len(in_the_cache(tmp_path)) == 1


def test_a_disk_that_is_full_meanwhile_is_told_and_leaves_nothing(
    encoder: BaseEncoder, joining: Callable[..., subprocess.Popen[str]], tmp_path: Path
) -> None:
    full = joining("resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))")
    _, told = full.communicate()
    assert full.returncode == 1
    assert "File too large" in told.splitlines()[-1]
    assert in_the_cache(tmp_path) == {}
    assert from_packages(encoder) is not None


def test_the_catalogue_names_both_encoders() -> None:
    listed = base_encoders()
    assert {one.extra for one in listed.values()} == {"offline", "large"}
    assert all(len(digest) == 64 for one in listed.values() for digest in one.files.values())
