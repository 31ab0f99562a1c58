"""Run a command with a disk that is full from its n-th operation on, for every n, each time in a process of its own.

As a program, under `LD_PRELOAD` of what `full_disk.c` is built to: takes a place and commands, prints what went wrong.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).with_name("full_disk.c")

#: How a disk fails: the number of the error, whether only once, whether half of the last write is still taken.
WAYS = {
    "full": (errno.ENOSPC, False, False),
    "full in the middle of a write": (errno.ENOSPC, False, True),
    "full for a moment": (errno.ENOSPC, True, False),
    "read-only": (errno.EROFS, False, False),
    "forbidden": (errno.EACCES, False, False),
}


def built(folder: Path) -> Path | None:
    """The library that is preloaded, or None where there is no compiler or no such loader."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    library = folder / "full_disk.so"
    if compiler is None or sys.platform != "linux":
        return None
    asked = [compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(SOURCE), "-ldl"]
    return library if subprocess.run(asked, capture_output=True).returncode == 0 else None


@dataclass(frozen=True)
class Command:
    """A command, the files that it starts from, and those that it makes."""

    arguments: tuple[str, ...]
    prepare: Callable[[Path], None]
    #: Files that are replaced or made; at any time each is that of before or a whole new one.
    outputs: tuple[str, ...]
    #: Exit codes of a run that nothing disturbs, and of one that cannot write.
    good: tuple[int, ...] = (0,)
    bad: tuple[int, ...] = (1, 2)
    #: What else an output may hold, such as a report that says that there is no verdict.
    may_say: tuple[str, ...] = ()
    #: Where something of before may be kept, if it can go back no more.
    keeps: str = "\0"


@dataclass
class Outcome:
    """What a command left."""

    code: int
    error: str
    raised: str
    operations: int
    files: Mapping[str, bytes]


def listing(folder: Path) -> dict[str, bytes]:
    """Every file by its content."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def run(command: Command, place: Path, after: int, way: str) -> Outcome:
    """Once, in a child, on a disk that fails after so many operations; never if that is negative."""
    from typer.testing import CliRunner

    from dialeval.cli import build_app

    number, is_once, is_torn = WAYS[way]
    library: Any = ctypes.CDLL(None)
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.chdir(place)
        folder = str(place).encode()
        library.disk_is_full_after(folder, ctypes.c_long(after), number, int(is_once), int(is_torn))
        found = CliRunner().invoke(build_app(), list(command.arguments))
        count = library.disk_operations()
        raised = "" if isinstance(found.exception, SystemExit | None) else repr(found.exception)
        told = json.dumps([found.exit_code, found.stderr, raised, count])
        with os.fdopen(writing, "w") as stream:
            stream.write(told)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as stream:
        told = stream.read()
    os.waitpid(child, 0)
    code, error, raised, count = json.loads(told) if told else (-1, "", "it died", 0)
    return Outcome(code, error, raised, count, listing(place))


def faults(command: Command, place: Path, way: str, *, step: int = 1) -> list[str]:
    """What is wrong with a command that meets such a disk at any of its operations; nothing if all is well."""
    from typer.testing import CliRunner

    from dialeval.cli import build_app

    def begin() -> None:
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        command.prepare(place)

    begin()
    with contextlib.chdir(place):  # here, so that the children need not import it all again
        CliRunner().invoke(build_app(), list(command.arguments))
    begin()
    before = listing(place)
    whole = run(command, place, -1, way)
    if whole.code not in command.good or whole.operations < 4:
        return [f"undisturbed: {whole}"[:2000]]
    found = []
    is_fixed = WAYS[way][0] in (errno.EROFS, errno.EACCES)
    for after in range(0, 1 if is_fixed else whole.operations, step):
        begin()
        failed = run(command, place, after, way)
        found += [f"{way} after {after}: {fault}" for fault in _faults_of(failed, whole, before, command, is_fixed)]
        if failed.code in command.good and failed.code not in command.bad:
            continue
        again = run(command, place, -1, way)
        if again.code not in command.good:
            found.append(f"{way} after {after}: going on gives {again.code}, {again.error}{again.raised}")
        elif odd := _differing(_without(again.files, command.keeps), whole.files):
            found.append(f"{way} after {after}: going on leaves another {odd}")
    return found


def _faults_of(
    failed: Outcome, whole: Outcome, before: Mapping[str, bytes], command: Command, is_fixed: bool
) -> list[str]:
    found = []
    if failed.raised:
        return [failed.raised]
    if failed.code in command.good and failed.code not in command.bad:
        odd = _differing(failed.files, whole.files)
        return [f"a run that ends well leaves another {odd}"] if odd else []
    lines = failed.error.strip().splitlines()
    if failed.code not in command.bad:
        found.append(f"the code is {failed.code}: {failed.error}")
    if not lines or not lines[-1].startswith("error: ") or sum(line.startswith("error: ") for line in lines) != 1:
        return [*found, f"no sentence: {failed.error!r}"]
    if "(" not in lines[-1]:
        found.append(f"it names no place: {lines[-1]}")
    if "Traceback" in failed.error:
        found.append("a traceback")
    if is_fixed and failed.files != before:
        found.append(f"{_differing(failed.files, before)} changed, where nothing can be written")
    for name, content in failed.files.items():
        known = content in (before.get(name), whole.files.get(name)) or any(
            text.encode() in content for text in command.may_say
        )
        if name in command.outputs and not known:
            found.append(f"{name} is neither of before nor whole")
    found += [f"{name} is left" for name in failed.files if Path(name).name.startswith(".") and name not in before]
    kept = {name.partition("/former/")[2] for name in failed.files if name.startswith(command.keeps)}
    found += [f"{name} is gone" for name in before if name not in failed.files and name.partition("/")[2] not in kept]
    return found


def _without(files: Mapping[str, bytes], start: str) -> dict[str, bytes]:
    return {name: content for name, content in files.items() if not name.startswith(start)}


def _differing(one: Mapping[str, bytes], other: Mapping[str, bytes]) -> str:
    return next((name for name in sorted({*one, *other}) if one.get(name) != other.get(name)), "")


def _lines(path: Path, rows: Any) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def _rows(place: Path) -> None:
    rows = [{"context": [f"{number} a"], "response": f"{number}"} for number in range(8)]
    _lines(place / "rows.jsonl", [*rows[:5], {"context": 3}, *rows[5:]])


def _rows_and_scores(place: Path) -> None:
    _rows(place)
    for name in ("scores.jsonl", "scores.csv", "scores.parquet", "summary.json", "rejects.jsonl"):
        (place / name).write_text("of an earlier run")


def _answers(place: Path) -> None:
    for name in ("new", "old"):
        rows = [
            {"id": f"{at}", "context": [f"{at} a"], "response": f"{at} b" if name == "new" else "c"} for at in range(12)
        ]
        _lines(place / f"{name}.jsonl", [{**row, "reference": f"{at} b"} for at, row in enumerate(rows)])
    for name in ("r.xml", "r.md", "r.json", "r.html", "r.svg"):
        (place / name).write_text("of an earlier run")


def _benchmark(place: Path) -> None:
    from toy_benchmark import rated_rows

    _lines(place / "toy.jsonl", rated_rows(contexts=6))


def _report(place: Path) -> None:
    shutil.copytree(os.environ["FULL_DISK_REPORT"], place / "out")


def _judge(place: Path) -> None:
    from rated_rows import rated

    shutil.copytree(os.environ["FULL_DISK_JUDGE"], place / "mine")
    _lines(place / "rated.jsonl", rated(90))


_SCORE = "score -m overlap -i rows.jsonl --skip-bad --rejects rejects.jsonl --summary summary.json"
_AGREEMENT = "agreement -m overlap -b toy.jsonl -o out --resamples 20 --statistics spearman --plots none"
_TUNE = "tune rated.jsonl --out mine --overwrite --resamples 100 --device cpu --checkpoint"
COMMANDS = {
    **{
        f"score {form}": Command(
            (*_SCORE.split(), "-o", f"scores.{form}", "--overwrite"),
            _rows_and_scores,
            (f"scores.{form}", "summary.json"),
            good=(3,),
        )
        for form in ("jsonl", "csv", "parquet")
    },
    "score anew": Command((*_SCORE.split(), "-o", "scores.jsonl"), _rows, ("scores.jsonl", "summary.json"), (3,)),
    "gate": Command(
        tuple(
            "gate new.jsonl -b old.jsonl --margin 0.1 --junit r.xml --markdown r.md --json r.json -m bleu1 "
            "--resamples 100".split()
        ),
        _answers,
        ("r.xml", "r.md", "r.json"),
        bad=(2,),
        may_say=("not come to its end", "cannot be written"),
    ),
    "rank": Command(
        tuple(
            "rank new.jsonl old.jsonl --markdown r.md --json r.json --html r.html --plot r.svg -m bleu1 "
            "--resamples 100".split()
        ),
        _answers,
        ("r.md", "r.json", "r.html", "r.svg"),
    ),
    "agreement": Command(
        tuple(_AGREEMENT.split()),
        _benchmark,
        tuple(f"out/{name}" for name in ("agreement.jsonl", "agreement.parquet", "leaderboard.md", "leaderboard.html")),
    ),
    "leaderboard": Command(
        ("leaderboard", "out"),
        _report,
        tuple(f"out/{name}" for name in ("agreement.jsonl", "agreement.parquet", "leaderboard.md", "leaderboard.html")),
    ),
    **{
        f"export {form}": Command(
            ("benchmarks", "export", "toy.jsonl", "-o", "out", "--format", form), _benchmark, (f"out/toy.{form}",)
        )
        for form in ("jsonl", "parquet")
    },
    "tune": Command(
        (*_TUNE.split(), os.environ.get("FULL_DISK_JUDGE", "")),
        _judge,
        ("mine/config.json", "mine/model.safetensors"),
        keeps=".mine-",
    ),
}


def main(place: Path, names: list[str], way: str, step: int) -> None:
    """Print a JSON list of faults."""
    import functools

    import matplotlib

    import dialeval.scoring.run
    import overlap_metric
    from dialeval.scoring.task import chunked

    overlap_metric.register()
    matplotlib.rcParams["svg.hashsalt"] = "always"
    os.environ["SOURCE_DATE_EPOCH"] = "0"
    dialeval.scoring.run.chunked = functools.partial(chunked, pairs=3)  # type: ignore[assignment]
    print(json.dumps([f"{name}: {fault}" for name in names for fault in faults(COMMANDS[name], place, way, step=step)]))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2].split(","), sys.argv[3], int(sys.argv[4]))
