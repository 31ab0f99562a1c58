"""Reports of `rank` and `gate`: what is read is never written, and nothing but a file is replaced by one."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

import dialeval.systems
from dialeval.cli import build_app
from dialeval.io.files import is_stream, replacing, write_atomically
from refusals import refused
from shell import write_rows

pytestmark = pytest.mark.slow

RANK = ["rank", "rows.jsonl", "-m", "bleu1", "--resamples", "100"]
GATE = ["gate", "new.jsonl", "-b", "old.jsonl", "-m", "bleu1", "--margin", "0.1", "--resamples", "100"]


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made = [
        {"context": [f"{at}"], "response": f"{at} and {system}", "reference": f"{at} and", "id": f"{at}"}
        for at in range(30)
        for system in ("new", "old")
    ]
    for name in ("new", "old"):
        own = [row for row in made if row["response"].endswith(name)]
        write_rows(f"{name}.jsonl", own)
    both = [{**row, "system": row["response"].split()[-1]} for row in made]
    write_rows("rows.jsonl", both)


def run(*arguments: str) -> tuple[int, str]:
    found = CliRunner().invoke(build_app(), list(arguments))
    assert found.exception is None or isinstance(found.exception, SystemExit), found.exception
    return found.exit_code, found.stderr


def listing() -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in Path().iterdir() if path.is_file()}


@pytest.mark.parametrize("as_link", [False, "hard", "soft"])
@pytest.mark.parametrize(
    ("command", "option", "place"),
    [(RANK, option, "rows.jsonl") for option in ("--markdown", "--json", "--html", "--plot")]
    + [(GATE, option, place) for option in ("--junit", "--markdown", "--json") for place in ("new.jsonl", "old.jsonl")]
    # An error is told in the reports, too: it must not be told in what was to be read.
    + [([*GATE[:1], "absent.jsonl", *GATE[2:]], "--json", "old.jsonl")],
)
def test_no_report_is_written_over_what_is_read(command: list[str], option: str, place: str, as_link: Any) -> None:
    named = Path("other.jsonl") if as_link else Path(place)
    if as_link == "hard":
        named.hardlink_to(place)
    elif as_link:
        named.symlink_to(place)
    before = listing()
    code, message = run(*command, option, str(named))
    assert (code, f"{named} " in message, option in message) == (2, True, True), message
    assert listing() == before


@pytest.mark.parametrize(
    "command", [[*RANK, "--json"], [*GATE, "--junit"], ["export", "judge", "--to"], ["tune", "rows.jsonl", "--out"]]
)
def test_a_path_of_too_many_folders_is_refused(command: list[str]) -> None:
    code, message = run(*command, "a/" * 1500 + "b")
    assert (code, len(message) < 400) == (2, True), message


@pytest.mark.parametrize("command", [RANK, GATE])
def test_a_report_goes_through_a_pipe_and_leaves_it_one(command: list[str]) -> None:
    os.mkfifo("pipe")
    heard: list[str] = []
    listener = threading.Thread(target=lambda: heard.append(Path("pipe").read_text()))
    listener.start()
    code, message = run(*command, "--json", "pipe")
    listener.join()
    assert code == 0, message
    assert isinstance(json.loads(heard[0]), dict)
    assert is_stream(Path("pipe"))


def test_nothing_takes_the_place_of_a_device() -> None:
    os.mkfifo("pipe.png")
    refused(ValueError, "pipe.png", lambda: replacing(Path("pipe.png")).__enter__())
    write_atomically(Path("/dev/null"), ["a line"])
    assert is_stream(Path("/dev/null"))
    assert is_stream(Path("pipe.png"))
    code, message = run(*RANK, "--plot", "pipe.png")
    assert (code, "pipe.png" in message) == (2, True), message


def test_a_stopped_gate_leaves_no_verdict_of_an_earlier_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever stops it, an interrupt or nothing that anybody could handle."""
    files = {"--junit": Path("gate.xml"), "--markdown": Path("gate.md"), "--json": Path("gate.json")}
    asked = [*GATE, *(text for option, path in files.items() for text in (option, str(path)))]
    assert run(*asked)[0] == 0
    assert json.loads(files["--json"].read_text())["passed"] is True
    seen: list[str] = []

    def stopped(*_: Any, **__: Any) -> None:
        seen.extend(path.read_text("utf-8") for path in files.values())
        raise KeyboardInterrupt

    monkeypatch.setattr(dialeval.systems, "gate", stopped)
    assert run(*asked)[0] == 130
    # So they stood while it was at work, and so they stay.
    assert seen == [path.read_text("utf-8") for path in files.values()]
    assert json.loads(seen[2]) == {"passed": False, "error": json.loads(seen[2])["error"]}
    assert "not finished" in json.loads(seen[2])["error"]
    assert "error" in seen[1]
    assert ElementTree.fromstring(seen[0]).get("errors") == "1"


SCORE = ["score", "-m", "bleu1", "-i", "rows.jsonl", "-o", "out.jsonl", "--overwrite"]
AGREEMENT = ["agreement", "-m", "bleu1", "-b", "rows.jsonl", "--out", "."]
ROBUSTNESS = ["robustness", "-m", "bleu1", "-i", "rows.jsonl", "--out", "."]


@pytest.mark.parametrize("as_link", [False, "hard", "soft"])
@pytest.mark.parametrize(
    ("command", "place"),
    [(SCORE, f"out.jsonl{end}") for end in (".partial", ".rejects.jsonl", ".summary.json", "")]
    + [(AGREEMENT, f"{name}.jsonl") for name in ("agreement", "excluded", "tests", "aspects", "filters")]
    + [(ROBUSTNESS, "robustness.jsonl")],
)
def test_nothing_that_a_run_leaves_is_what_it_reads(command: list[str], place: str, as_link: Any) -> None:
    """Also what was not named: files beside the output, and those in a folder of results."""
    given = Path("rows.jsonl" if as_link else place)
    if not as_link:
        Path("rows.jsonl").rename(place)
    elif as_link == "hard":
        Path(place).hardlink_to("rows.jsonl")
    else:
        Path(place).symlink_to("rows.jsonl")
    before = listing()
    code, message = run(*[str(given) if one == "rows.jsonl" else one for one in command])
    named = place in message or str(given) in message
    assert (code, named, "input" in message) == (2, True, True), message
    assert listing() == before


@pytest.mark.parametrize(
    ("command", "options"),
    [(RANK, options) for options in (("--json", "--markdown"), ("--html", "--plot"), ("--markdown", "--html"))]
    + [(GATE, ("--json", "--junit"))],
)
def test_two_reports_are_not_one_file(command: list[str], options: tuple[str, str]) -> None:
    Path("link.png").symlink_to("one.png")
    code, message = run(*command, options[0], "one.png", options[1], "link.png")
    assert (code, options[0] in message, options[1] in message) == (2, True, True), message
    assert not Path("one.png").exists()


@pytest.mark.parametrize("options", [["new.jsonl", "--input", "scores_new.png"], ["new.png"]])
def test_a_picture_is_not_drawn_over_what_it_shows(options: list[str]) -> None:
    """Before anything is read: these files hold no scores."""
    Path("rows.jsonl").rename("new.png")
    Path("scores_new.png").symlink_to("new.png")
    before = listing()
    code, message = run("plot", "scores", *options, "--out", ".")
    assert (code, "scores_new.png is both png of --out and an input" in message) == (2, True), message
    assert listing() == before


@pytest.mark.parametrize(
    "command", [["export", "judge", "--to"], ["score-ray", "-m", "bleu1", "-i", "rows.jsonl", "-o"]]
)
def test_a_folder_that_holds_something_is_not_added_to(command: list[str]) -> None:
    Path("kept").mkdir()
    Path("kept", "thesis.txt").write_text("years of work")
    code, message = run(*command, "kept")
    assert (code, "kept is not empty" in message) == (2, True), message
    assert [path.name for path in Path("kept").iterdir()] == ["thesis.txt"]


def test_scores_are_not_written_among_the_rows() -> None:
    Path("data").mkdir()
    Path("rows.jsonl").rename("data/rows.jsonl")
    code, message = run("score-ray", "-m", "bleu1", "-i", "data", "-o", "data/scores")
    assert (code, "data/scores lies in data, which is an input" in message) == (2, True), message
    assert not Path("data/scores").exists()


@pytest.mark.parametrize("end", [".rejects.jsonl", ".summary.json"])
def test_what_stands_beside_an_output_is_kept(end: str) -> None:
    place = Path(f"out.jsonl{end}")
    place.write_text("precious")
    score = [*SCORE[:-1], "--skip-bad"]
    assert run(*score)[0] == 2
    assert place.read_text() == "precious"
    assert not Path("out.jsonl").exists()
    assert run(*score, "--overwrite")[0] == 0


@pytest.mark.parametrize(
    ("command", "names"),
    [(AGREEMENT, ("run.json", "agreement.jsonl", "leaderboard.html")), (ROBUSTNESS, ("run.json", "robustness.png"))],
)
def test_what_no_run_has_written_is_kept_in_a_folder_of_results(command: list[str], names: tuple[str, ...]) -> None:
    for name in names:
        Path(name).write_text('{"precious": true}')
        before = listing()
        code, message = run(*command)
        assert (code, f"{name} is not of an earlier run" in message) == (2, True), message
        assert listing() == before
        Path(name).unlink()


def test_nothing_of_a_former_run_stays_beside_the_results_of_another() -> None:
    """It would be read as of this one."""
    command = ["robustness", "-m", "python:toy_benchmark:count_words", "-i", "rows.jsonl", "-a", "repetition"]
    assert run(*command, "--plots", "svg", "--out", "results", "--quiet")[0] == 0
    Path("results/mine.png").write_text("precious")
    assert run(*command, "--out", "results", "--quiet")[0] == 0
    assert {path.name for path in Path("results").glob("*.*g")} == {"robustness.png", "mine.png"}


@pytest.mark.parametrize("command", [AGREEMENT[:-1], ROBUSTNESS[:-1]])
@pytest.mark.parametrize("place", ["rows.jsonl", "new.jsonl/deep/er"])
def test_results_do_not_go_into_a_file(command: list[str], place: str) -> None:
    code, message = run(*command, place)
    assert (code, "jsonl is no folder" in message) == (2, True), message


@pytest.mark.parametrize(
    ("command", "option"),
    [(SCORE[:-3], "-o"), (AGREEMENT[:-2], "--out"), (ROBUSTNESS[:-2], "--out"), (["tune", "rows.jsonl"], "--out")]
    + [(RANK, option) for option in ("--markdown", "--json", "--html", "--plot")]
    + [(GATE, option) for option in ("--junit", "--markdown", "--json")]
    + [(["plot", "scores", "rows.jsonl"], "--out"), (["export", "judge"], "--to")]
    + [(["score-ray", "-m", "bleu1", "-i", "rows.jsonl"], "-o")],
)
@pytest.mark.parametrize("place", ["loop.jsonl", "loop.jsonl/mine"])
def test_a_link_that_leads_to_itself_is_told(command: list[str], option: str, place: str) -> None:
    Path("loop.jsonl").symlink_to("loop.jsonl")
    code, message = run(*command, option, place)
    assert (code, "loop.jsonl" in message, message.count("\n")) == (2, True, 1), message
    assert Path("loop.jsonl").is_symlink()


def test_options_of_a_metric_are_no_report() -> None:
    Path("judge.yaml").write_text("model: small\n")
    code, message = run("rank", "rows.jsonl", "-m", "llm:judge.yaml", "--json", "judge.yaml")
    assert (code, "judge.yaml is both --json and an input" in message) == (2, True), message


def test_reports_are_what_their_endings_say_whatever_rows_hold() -> None:
    pytest.importorskip("matplotlib")
    odd = "$x^{$ \x1b[2J\x85\u2028\u202e <b> ]]> -->"
    names = {"new": "new.jsonl", f"old{odd}": os.fsdecode(b"old\xff.jsonl")}
    for system, file in names.items():
        rows = [
            {"context": [f"{at}{odd}"], "response": f"{odd} {system}", "reference": odd, "id": f"{at}{odd}"}
            for at in range(30)
        ]
        Path(file).write_text("".join(json.dumps({**row, "system": system}) + "\n" for row in rows))
    new, old = names.values()
    reports = ["--json", "a.json", "--markdown", "a.md"]
    assert run("gate", old, *GATE[2:3], new, *GATE[4:], *reports, "--junit", "a.xml")[0] in (0, 1)
    assert run("rank", new, old, *RANK[2:], "--json", "b.json", "--html", "b.html", "--plot", "b.svg")[0] == 0
    for path in map(Path, ("a.json", "b.json")):
        assert json.loads(path.read_text("utf-8"))
    for path in map(Path, ("a.xml", "b.svg")):
        ElementTree.parse(path)
    for path in map(Path, ("a.md", "a.xml", "b.svg", "b.html")):
        assert path.read_text("utf-8").replace("\n", "").isprintable()


def test_what_no_picture_can_be_and_no_metric_takes_is_refused_before_anything_is_scored() -> None:
    code, told = run(*RANK, "--plot", "a.exe")
    assert (code, "not a picture file" in told) == (2, True)
    code, told = run(*GATE, "--checkpoint", "somewhere")
    assert (code, "bleu1 has no weights" in told) == (2, True)
    if os.path.exists("/dev/full"):
        assert "/dev/full" in run(*RANK, "--markdown", "/dev/full")[1]
