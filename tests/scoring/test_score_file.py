"""A run that is killed goes on where it was; what it had finished is neither lost, nor done again, nor doubled."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import overlap_metric
from dialeval.io.files import ProgressLines, WriteError, pace, read_json_lines
from dialeval.readers import Source
from dialeval.scoring import Summary, Task, score_file
from dialeval.scoring import run as scoring_run
from dialeval.scoring.task import FIRST_PAIRS
from overlap_metric import Overlap
from refusals import refused
from resources import PATIENCE

N_ROWS = 7 * FIRST_PAIRS + 100


def row(number: int) -> dict[str, Any]:
    words = " ".join(str(number + step) for step in range(number % 7))
    return {"context": [f"{number} {words}"], "response": f"{number}", "id": f"r{number}", "system": "AB"[number % 2]}


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_rows(N_ROWS)


def write_rows(count: int, **changes: Any) -> None:
    Path("rows.jsonl").write_text("".join(json.dumps(row(number) | changes) + "\n" for number in range(count)))


class Breaking(Overlap):
    """Breaks down in its second chunk, when it is told to."""

    breaks = False

    def judge(self, exchanges: Any, *, progress: bool = False) -> Any:
        if self.breaks and exchanges[0].id not in ("r0", None):
            raise KeyboardInterrupt
        return super().judge(exchanges)


def run(output: str = "scores.jsonl", *, breaks: bool = False, weight: float = 1.0, **options: Any) -> Summary:
    metric = Breaking(weight)
    metric.breaks = breaks
    task = Task(Source("rows.jsonl"), {"overlap": Overlap.info})
    return score_file(task, output, lambda: {"overlap": metric}, **options)


def interrupt(**options: Any) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(breaks=True, **options)


@pytest.mark.parametrize("output", ["scores.jsonl", "scores.csv", "scores.parquet"])
def test_a_broken_run_goes_on(output: str) -> None:
    whole = run(f"whole-{output}")
    with pytest.raises(KeyboardInterrupt):
        run(output, breaks=True)
    assert not Path(output).exists()
    with Path(f"{output}.partial").open("ab") as stream:
        stream.write(b'{"fingerprint": "cut off while it was wri')
    again = run(output)
    assert (again.n, again.n_resumed) == (N_ROWS, FIRST_PAIRS)
    assert again.tallies["overlap"].aggregate == whole.tallies["overlap"].aggregate
    assert Path(output).read_bytes() == Path(f"whole-{output}").read_bytes()
    assert {path.name for path in Path().iterdir()} == {"rows.jsonl", output, f"whole-{output}"}


def test_a_damaged_journal_costs_time_and_nothing_else() -> None:
    """Whatever of it is lost, altered or made up: the outcome is that of an undisturbed run, or a sentence."""
    run("whole.jsonl")
    interrupt()
    journal = Path("scores.jsonl.partial")
    sound = journal.read_bytes()
    header, record = (json.loads(line.rpartition(b"\t")[0]) for line in sound.splitlines())
    damaged = [sound[:size] for size in range(0, len(sound), len(sound) // 40)]
    places = range(0, len(sound), len(sound) // 40)
    damaged += [sound[:place] + bytes([sound[place] ^ 1]) + sound[place + 1 :] for place in places]
    for line, number in ((header, 0), (record, 1)):
        for key in line:
            for value in (None, 7, "x", [], {}, {"overlap": [[]]}):
                lines = [json.dumps(header).encode(), json.dumps(record).encode()]
                lines[number] = json.dumps({**line, key: value}).encode()
                damaged.append(b"\n".join(lines) + b"\n")
    for content in damaged:
        journal.write_bytes(content)
        if content and b"\n" in content and not content.startswith(sound.splitlines()[0]):
            refused(ValueError, "scores.jsonl.partial", run)
            journal.unlink()
        run()
        assert Path("scores.jsonl").read_bytes() == Path("whole.jsonl").read_bytes()
        Path("scores.jsonl").unlink()


def test_no_resume_begins_again() -> None:
    interrupt()
    assert run(resume=False).n_resumed == 0


def test_other_options_or_another_input_are_told() -> None:
    interrupt()
    refused(ValueError, "weight", run, weight=2.0)
    write_rows(N_ROWS, response="another")
    refused(ValueError, "rows 0 and", run)
    write_rows(N_ROWS)
    assert run().n_resumed == FIRST_PAIRS


def test_what_stands_there_is_kept() -> None:
    Path("scores.jsonl").write_text("precious")
    with pytest.raises(FileExistsError):
        run()
    interrupt(overwrite=True)
    assert Path("scores.jsonl").read_text() == "precious"
    assert run().n_resumed == FIRST_PAIRS  # --overwrite was said when the run began
    Path("scores.jsonl").unlink()
    interrupt()  # and this one began without it
    Path("scores.jsonl").write_text("precious")
    with pytest.raises(FileExistsError):
        run()
    Path("kept.jsonl.partial").write_text("somebody's notes\n")
    refused(ValueError, "kept.jsonl.partial", run, "kept.jsonl", overwrite=True)
    assert Path("kept.jsonl.partial").read_text() == "somebody's notes\n"


def test_killed_between_the_output_and_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(journal: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(scoring_run.Journal, "drop", killed)
        with pytest.raises(KeyboardInterrupt):
            run()
    written = Path("scores.jsonl").read_bytes()
    assert run().n_resumed == N_ROWS
    assert Path("scores.jsonl").read_bytes() == written


def test_a_disk_that_is_full_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*given: Any, **options: Any) -> Any:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(scoring_run, "table", full)
        with pytest.raises(WriteError):
            run()
    assert not Path("scores.jsonl").exists()
    assert run().n_resumed == N_ROWS


def test_bad_rows_are_set_aside_again_when_the_run_goes_on() -> None:
    lines = Path("rows.jsonl").read_text().splitlines()
    Path("rows.jsonl").write_text("\n".join(['{"context": ["a"]}', *lines, "nonsense"]) + "\n")
    interrupt(skip_bad=True)
    assert not Path("scores.jsonl.rejects.jsonl").exists()
    summary = run(skip_bad=True)
    assert (summary.n, summary.n_rejected) == (N_ROWS, 2)
    assert [one["row"] for one in read_json_lines(Path("scores.jsonl.rejects.jsonl"))] == [0, N_ROWS + 1]


@pytest.mark.slow
def test_a_second_process_is_refused_and_a_killed_one_continued() -> None:
    command = [sys.executable, overlap_metric.__file__, "score", "-m", "overlap", "-i", "rows.jsonl", "-o", "out.csv"]
    slow = {**os.environ, "OVERLAP_SECONDS": "10", "OVERLAP_LOG": "judged.log", "OMP_NUM_THREADS": "1"}
    first = subprocess.Popen(command, env=slow, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        until = time.monotonic() + PATIENCE
        while not Path("out.csv.partial").exists() or Path("out.csv.partial").read_bytes().count(b"\n") < 2:
            assert time.monotonic() < until
            time.sleep(0.05)
        second = subprocess.run(command, env=slow, capture_output=True, text=True)
        assert second.returncode == 2
        assert "out.csv.partial" in second.stderr
    finally:
        os.killpg(first.pid, signal.SIGKILL)
        first.wait()
    kept = Path("out.csv.partial").read_bytes().count(b"\n") - 1
    Path("judged.log").write_text("")
    done = subprocess.run(command, env=slow | {"OVERLAP_SECONDS": "0"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert len(Path("judged.log").read_text().splitlines()) == 4 - kept
    assert len(Path("out.csv").read_text().splitlines()) == N_ROWS + 1


def test_the_first_chunks_are_small() -> None:
    done: list[int] = []
    run(progress=lambda count, total, kept: done.append(count))
    assert done == [0, FIRST_PAIRS, 3 * FIRST_PAIRS, 7 * FIRST_PAIRS, N_ROWS]


def test_rows_of_an_earlier_run_do_not_count_in_the_pace(capsys: pytest.CaptureFixture[str]) -> None:
    interrupt()
    done: list[tuple[int, int]] = []
    run(progress=lambda count, total, kept: done.append((count, kept)))
    assert done[1] == (FIRST_PAIRS, FIRST_PAIRS)
    assert done[-1][0] == N_ROWS > done[-1][1]
    lines = ProgressLines("scoring", first=0)
    for count, kept in done[:3]:
        lines.reach(count, N_ROWS, kept)
    (line,) = capsys.readouterr().err.splitlines()
    assert f"{done[2][0]:,} of {N_ROWS:,}" in line
    assert pace(20, 400, 10.0).startswith("2/s, 0:03:20")
    assert pace(2, None, 10.0) == "0.2/s"


@pytest.mark.parametrize("breaks", [False, True])
def test_the_worst_rows_are_named_even_of_a_run_that_went_on(breaks: bool) -> None:
    if breaks:
        interrupt()
    rows = read_json_lines(Path("rows.jsonl"))
    lines = run(worst=3).worst
    told = [int(line.split()[1]) for line in lines if line.startswith("  row ")]
    scored = read_json_lines(Path("scores.jsonl"))
    lowest = sorted(range(len(rows)), key=lambda at: (scored[at]["overlap"], at))[:3]
    assert told == lowest
    assert repr(rows[told[0]]["response"]) in lines[1]
    assert lines[1].split()[2] == str(rows[told[0]]["id"])


def shrink(rows: Path) -> None:
    rows.write_text("".join(rows.read_text().splitlines(keepends=True)[:200]))


def grow(rows: Path) -> None:
    rows.write_text(rows.read_text() + json.dumps(row(0)) + "\n")


def rewrite(rows: Path) -> None:
    """As many bytes as before, at another time."""
    rows.write_text(rows.read_text().replace('"response": "1"', '"response": "2"'))
    os.utime(rows, ns=(0, 0))


def tear(rows: Path) -> None:
    rows.write_bytes(rows.read_bytes()[:-50])


@pytest.mark.parametrize("output", ["scores.jsonl", "-"])
@pytest.mark.parametrize("is_kept", [True, False])
@pytest.mark.parametrize("change", [shrink, grow, rewrite, tear, Path.unlink])
@pytest.mark.parametrize("changed", ["rows.jsonl", "people.jsonl"])
def test_an_input_that_changes_while_it_is_scored_is_told_and_nothing_is_lost(
    change: Any, changed: str, is_kept: bool, output: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows, whether or not they are kept in memory, and another file that the run reads."""
    reads = ("people.jsonl",)
    Path("people.jsonl").write_bytes(Path("rows.jsonl").read_bytes())
    if not is_kept:
        monkeypatch.setattr("dialeval.scoring.task.CHUNK_CHARACTERS", 500)

    class Changing(Overlap):
        chunks = 0

        def judge(self, exchanges: Any, *, progress: bool = False) -> Any:
            self.chunks += 1
            if self.chunks == 2:
                change(Path(changed))
            return super().judge(exchanges)

    task = Task(Source("rows.jsonl"), {"overlap": Overlap.info})
    refused(ValueError, f"{changed} changed", score_file, task, output, lambda: {"overlap": Changing()}, reads=reads)
    if output != "-":
        assert not Path(output).exists()
        assert len(Path(f"{output}.partial").read_text().splitlines()) > 1, "finished rows are kept"


@pytest.mark.parametrize("read", [lambda source: list(source.exchanges()), lambda source: list(source.rated()[1])])
def test_a_file_that_is_written_while_it_is_read_is_refused(read: Any) -> None:
    """Whatever reads rows: ranking, the gate and tuning read them once."""

    class Written(Source):
        def _of_stream(self, *given: Any) -> Any:
            yield from super()._of_stream(*given)
            grow(Path("rows.jsonl"))

    refused(ValueError, "rows.jsonl changed", read, Written("rows.jsonl"))


class Unsteady(Breaking):
    """Its last digits depend on how many rows it is given, as an encoder's do."""

    def judge(self, exchanges: Any, *, progress: bool = False) -> Any:
        judged = super().judge(exchanges)
        return replace(judged, values=judged.values * (1 + 1e-7 * len(exchanges)))


@pytest.mark.parametrize("breaks", [False, True])
def test_the_same_row_twice_has_one_value(breaks: bool) -> None:
    """In chunks of other sizes, and in a run that went on."""
    text = {"context": ["the late bus"], "response": "the bus"}
    Path("rows.jsonl").write_text("".join(json.dumps(text | {"id": f"r{at}"}) + "\n" for at in range(N_ROWS)))
    task, metric = Task(Source("rows.jsonl"), {"overlap": Overlap.info}), Unsteady()
    if breaks:
        metric.breaks = True
        with pytest.raises(KeyboardInterrupt):
            score_file(task, "scores.jsonl", lambda: {"overlap": metric})
        assert Path("scores.jsonl.partial").exists()
        metric.breaks = False
    score_file(task, "scores.jsonl", lambda: {"overlap": metric})
    assert len({row["overlap"] for row in read_json_lines(Path("scores.jsonl"))}) == 1


def test_rows_of_one_text_whose_values_differ_are_left_alone() -> None:
    """A function may look at ids."""

    class ById(Overlap):
        def judge(self, exchanges: Any, *, progress: bool = False) -> Any:
            return replace(super().judge(exchanges), values=np.array([float(str(one.id)[1:]) for one in exchanges]))

    write_rows(100, context=["a"], response="a")
    score_file(Task(Source("rows.jsonl"), {"overlap": Overlap.info}), "scores.jsonl", lambda: {"overlap": ById()})
    assert [one["overlap"] for one in read_json_lines(Path("scores.jsonl"))] == list(range(100))
