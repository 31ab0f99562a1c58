"""No file is lost: who holds an output keeps everything of its run, and no path is written in another one's place."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner

import overlap_metric
from dialeval.cli import build_app
from dialeval.exchange import Exchange
from dialeval.io import atomic_file
from dialeval.metric import Judged
from dialeval.scoring.journal import Journal, begun
from dialeval.scoring.outputs import hidden_path

pytestmark = pytest.mark.slow

ROW = json.dumps({"context": ["one two"], "response": "two three", "id": "a"}) + "\n"
CHUNK = {"fingerprint": "f", "row": [0], "values": {"overlap": [0.5]}}


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    overlap_metric.register()
    monkeypatch.chdir(tmp_path)
    Path("rows.jsonl").write_text(ROW * 3)


def score(*options: str, output: str = "scores.jsonl", rows: str = "rows.jsonl") -> tuple[int, str]:
    found = CliRunner().invoke(build_app(), ["score", "-m", "overlap", "-i", rows, "-o", output, *options])
    assert found.exception is None or isinstance(found.exception, SystemExit), found.exception
    return found.exit_code, found.stderr


def listing() -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in Path().iterdir() if path.is_file()}


# --- two processes ----------------------------------------------------------------------------------


def test_who_comes_second_touches_nothing() -> None:
    with (
        Journal(Path("scores.jsonl.partial"), {}, fresh=False) as journal,
        atomic_file(Path("scores.jsonl.rejects.jsonl"), hidden_path(Path("scores.jsonl.rejects.jsonl"))) as rejects,
    ):
        journal.append(CHUNK)
        rejects.write_text("set aside\n")
        before = listing()
        for options in ((), ("--no-resume",), ("--overwrite",)):
            code, message = score("--skip-bad", *options)
            assert (code, "another process is writing" in message) == (2, True), message
            assert listing() == before
    assert Path("scores.jsonl.rejects.jsonl").read_text() == "set aside\n"


def test_what_another_process_is_writing_is_not_taken_from_it(tmp_path: Path) -> None:
    target, hidden = tmp_path / "file", tmp_path / ".file.tmp"
    with atomic_file(target, hidden) as first:
        first.write_text("first")
        with pytest.raises(ValueError, match="another process is writing"), atomic_file(target, hidden):
            raise AssertionError("the second one was let in")
        assert first.read_text() == "first"
    assert target.read_text() == "first"


def test_what_a_dead_process_left_is_replaced(tmp_path: Path) -> None:
    (tmp_path / ".file.tmp").write_text("left")
    with atomic_file(tmp_path / "file", tmp_path / ".file.tmp") as hidden:
        hidden.write_text("new")
    assert (tmp_path / "file").read_text() == "new"


# --- a journal tells of a run that was begun ----------------------------------------------------------


def test_without_a_finished_chunk_there_is_no_journal() -> None:
    path = Path("scores.jsonl.partial")
    with Journal(path, {"a": 1}, fresh=False):
        assert path.exists()
        assert begun(path) is None
    assert not path.exists()
    with Journal(path, {"a": 1}, fresh=False) as journal:
        journal.append(CHUNK)
    assert begun(path) is not None
    with Journal(path, {"a": 1}, fresh=False):
        pass
    assert path.exists(), "what was finished is still there after a run that did nothing"
    with Journal(path, {"a": 1}, fresh=True):
        pass
    assert not path.exists()


def test_a_run_that_fails_before_its_first_chunk_leaves_nothing() -> None:
    Path("bad.jsonl").write_text("no json\n")
    before = listing()
    assert score("--skip-bad", rows="bad.jsonl")[0] == 2
    assert listing() == before


def test_a_header_alone_does_not_let_a_finished_output_be_replaced() -> None:
    assert score()[0] == 0
    finished = Path("scores.jsonl").read_bytes()
    Path("scores.jsonl.partial").write_text('{"dialeval_journal": 1, "run": {}, "replaces": false}\n')
    code, message = score()
    assert (code, "scores.jsonl is there already" in message) == (2, True)
    assert Path("scores.jsonl").read_bytes() == finished


@pytest.mark.parametrize("replaces", [False, True])
def test_what_another_run_finished_meanwhile_is_replaced_only_if_asked(replaces: bool) -> None:
    with Journal(Path("scores.jsonl.partial"), {}, fresh=False, replaces=replaces) as journal:
        journal.append(CHUNK)
    Path("scores.jsonl").write_text("another run's\n")
    code, message = score()
    assert ("is there already" in message) == (not replaces)
    assert ("with other options" in message) == replaces
    assert code == 2
    assert Path("scores.jsonl").read_text() == "another run's\n"
    assert score("--no-resume", "--overwrite")[0] == 0


def test_the_table_that_the_run_itself_put_there_is_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as changed:
        changed.setattr(Path, "unlink", lambda *_, **__: None)  # killed before its journal was removed
        assert score()[0] == 0
    finished = Path("scores.jsonl").read_bytes()
    assert score()[0] == 0
    assert Path("scores.jsonl").read_bytes() == finished
    assert not Path("scores.jsonl.partial").exists()


# --- every path once --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "output", "rows", "message"),
    [
        (("--reference", "people.jsonl"), "people.jsonl", "rows.jsonl", "both --output and --reference"),
        (("--rejects", "scores.jsonl.partial"), "scores.jsonl", "rows.jsonl", "the journal of finished rows"),
        (("--rejects", ".scores.jsonl.tmp"), "scores.jsonl", "rows.jsonl", "what --output is written to first"),
        (("--summary", "rows.jsonl"), "scores.jsonl", "rows.jsonl", "both --summary and the input"),
        (("--summary", "people.jsonl", "--reference", "hard.jsonl"), "scores.jsonl", "rows.jsonl", "--reference"),
        ((), "scores.jsonl", "scores.jsonl.partial", "the journal of finished rows and the input"),
        ((), "scores.jsonl", ".scores.jsonl.tmp", "what --output is written to first and the input"),
        ((), "linked.jsonl", "rows.jsonl", "both --output and the input"),
        ((), "hard.jsonl", "people.jsonl", "both --output and the input"),
        (("--prices", "people.jsonl"), "people.jsonl", "rows.jsonl", "both --output and --prices"),
        (("--overwrite", "--rejects", "./x/../scores.jsonl"), "scores.jsonl", "rows.jsonl", "--output and --rejects"),
    ],
)
def test_no_path_stands_for_two_things(options: tuple[str, ...], output: str, rows: str, message: str) -> None:
    Path("people.jsonl").write_text(ROW)
    os.link("people.jsonl", "hard.jsonl")
    Path("linked.jsonl").symlink_to("rows.jsonl")
    Path("x").mkdir()
    if not Path(rows).exists():
        Path(rows).write_text(ROW)
    before = listing()
    code, said = score("--input-format", "jsonl", "--overwrite", *options, output=output, rows=rows)
    assert code == 2
    assert message in said
    assert listing() == before


@pytest.mark.parametrize("options", [(), ("--no-resume",), ("--no-resume", "--overwrite")])
@pytest.mark.parametrize("content", ["my notes\n", '{"a": 1}\n', "\0\1", '{"dialeval": "mine"}'])
def test_a_foreign_file_where_the_journal_would_be_stays(content: str, options: tuple[str, ...]) -> None:
    Path("scores.jsonl.partial").write_text(content)
    code, message = score(*options)
    assert code == 2
    assert "is no unfinished run" in message
    assert Path("scores.jsonl.partial").read_text() == content


@pytest.mark.parametrize("content", ['{"dialeval_journal": 1}\n', '{"dialeval_journal": 99, "run": {}}\n'])
def test_what_another_version_left_is_dropped_only_if_asked(content: str) -> None:
    Path("scores.jsonl.partial").write_text(content)
    assert "is no unfinished run of this version" in score()[1]
    assert Path("scores.jsonl.partial").read_text() == content
    assert score("--no-resume")[0] == 0
    assert not Path("scores.jsonl.partial").exists()


@pytest.mark.parametrize("options", [(), ("--no-resume", "--overwrite")])
def test_nothing_is_written_through_a_link(options: tuple[str, ...]) -> None:
    Path("mine.txt").write_text("mine")
    Path("scores.jsonl.partial").symlink_to("mine.txt")
    assert "is a link" in score(*options)[1]
    assert Path("mine.txt").read_text() == "mine"
    Path("scores.jsonl.partial").unlink()
    Path(".scores.jsonl.tmp").symlink_to("mine.txt")
    assert score(*options)[0] == 0
    assert Path("mine.txt").read_text() == "mine"


def test_a_pipe_where_the_journal_would_be_does_not_hang() -> None:
    os.mkfifo("scores.jsonl.partial")
    code, message = score()
    assert code == 2
    assert "is a link, a folder or a device" in message


@pytest.mark.parametrize("options", [(), ("--rejects", "loop"), ("--summary", "loop")])
def test_a_link_to_itself_is_one_sentence(options: tuple[str, ...]) -> None:
    Path("loop").symlink_to("loop")
    Path("loop.jsonl").symlink_to("loop.jsonl")
    code, message = score(*options, output="scores.jsonl" if options else "loop.jsonl")
    assert code == 2
    assert "is a link that leads nowhere" in message


@pytest.mark.parametrize(
    "line",
    ["[]", "{}", '{"fingerprint": 1, "row": [], "values": {}}', '{"fingerprint": "f", "row": 3, "values": {"a": 1}}'],
)
def test_other_json_in_a_journal_is_dropped(line: str) -> None:
    assert score()[0] == 0
    expected = Path("scores.jsonl").read_bytes()
    Path("scores.jsonl").unlink()
    with Journal(Path("scores.jsonl.partial"), {}, fresh=False) as journal:
        journal.append(CHUNK)
    header = Path("scores.jsonl.partial").read_text().splitlines()[0]
    Path("scores.jsonl.partial").write_text(f"{header}\n{line}\n")
    code, message = score()
    assert code == 2
    assert "with other options" in message
    assert score("--no-resume")[0] == 0
    assert Path("scores.jsonl").read_bytes() == expected


# --- what appears while a run goes on -----------------------------------------------------------------


def write_meanwhile(place: str, changed: pytest.MonkeyPatch) -> None:
    """Have something else write a file while the metric judges."""
    judge = overlap_metric.Overlap.judge

    def judged(self: overlap_metric.Overlap, exchanges: Sequence[Exchange], **options: bool) -> Judged:
        Path(place).write_text("theirs")
        return judge(self, exchanges, **options)

    changed.setattr(overlap_metric.Overlap, "judge", judged)


@pytest.mark.parametrize("place", ["scores.jsonl", "sums.json", "bad.jsonl"])
def test_what_appears_during_a_run_is_not_replaced(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    options = ("--skip-bad", "--rejects", "bad.jsonl", "--summary", "sums.json")
    with monkeypatch.context() as changed:
        write_meanwhile(place, changed)
        code, message = score(*options)
    assert (code, f"{place} was written by something else" in message) == (2, True), message
    assert Path(place).read_text() == "theirs"
    # What was finished is kept, and is the outcome when its user has decided.
    assert begun(Path("scores.jsonl.partial")) is not None
    if place != "scores.jsonl":
        Path(place).unlink()
        assert score(*options)[0] == 0
    else:
        assert "is there already" in score(*options)[1]
        assert score(*options, "--overwrite")[0] == 0
    assert Path("scores.jsonl").read_text().count("\n") == 3
    assert json.loads(Path("sums.json").read_text())["n"] == 3
    assert Path("bad.jsonl").read_text() == ""
    assert not list(Path().glob("*.partial"))


def test_a_run_that_may_replace_does_so_whenever_it_came(monkeypatch: pytest.MonkeyPatch) -> None:
    write_meanwhile("scores.jsonl", monkeypatch)
    assert score("--overwrite")[0] == 0
    assert Path("scores.jsonl").read_text() != "theirs"


@pytest.mark.parametrize("option", ["--rejects", "--summary"])
@pytest.mark.parametrize("others", [(), ("--overwrite",)])
def test_no_file_takes_the_place_of_a_pipe(option: str, others: tuple[str, ...]) -> None:
    os.mkfifo("pipe")
    code, message = score("--skip-bad", option, "pipe", *others)
    assert (code, "is a device or a pipe" in message) == (2, True), message
    assert Path("pipe").is_fifo()


def test_who_interrupts_the_first_chunk_is_told_that_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    def judged(*_: object, **__: object) -> Judged:
        raise KeyboardInterrupt

    monkeypatch.setattr(overlap_metric.Overlap, "judge", judged)
    code, message = score()
    assert (code, message) == (130, "no chunk of rows was finished yet, so nothing is kept\ninterrupted\n")
    assert listing().keys() == {"rows.jsonl"}
