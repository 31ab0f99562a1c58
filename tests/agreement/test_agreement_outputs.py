"""What a run leaves behind: tables, leaderboards, plots, and the commands that make them."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from dialeval import benchmarks
from dialeval.agreement.results import Report, read_results
from dialeval.agreement.runs import run
from dialeval.agreement.score_comparison import compare
from dialeval.agreement.sections import sections
from dialeval.agreement.settings import Settings
from dialeval.reports.leaderboard import render_page
from dialeval.reports.output import write_outputs
from notebooks import Page
from shell import invoke, read_rows, write_rows
from toy_benchmark import Length, labelled_rows, noise, picky, rated_rows

QUICK = Settings(resamples=200, slow_resamples=100)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rows")
    return {
        "toy": write_rows(folder / "toy.jsonl", rated_rows(contexts=12)),
        "good_or_bad": write_rows(folder / "good_or_bad.jsonl", labelled_rows("good_or_bad", contexts=15)),
    }


@pytest.fixture(scope="module")
def report(files):
    loaded = [benchmarks.load(path) for path in files.values()]
    share = "python:toy_benchmark:word_share?range=0:1&name=<share|>"
    metrics = [Length(), share, picky, noise]
    found = run(metrics, ["no_such_benchmark", *loaded], settings=QUICK, validation=loaded[1])
    found.command = "dialeval agreement --metrics '<b>'"
    return found


def test_the_table_is_read_back(report, tmp_path):
    report.write(tmp_path)
    lines = read_rows(tmp_path / "agreement.jsonl")
    assert lines == [{key: one for key, one in row.items() if one is not None} for row in report.to_rows()]
    assert [one.value for one in read_results(tmp_path)] == [one.value for one in report.results]
    first = lines[0]
    assert (first["metric"], first["benchmark"], first["contaminated"]) == ("length", "toy", True)
    assert "threshold" not in first
    excluded = read_rows(tmp_path / "excluded.jsonl")
    assert {row["id"] for row in excluded if row["benchmark"] == "toy"} == {
        f"toy-{number}-{system}" for number in (3, 4) for system in range(6)
    }
    about = json.loads((tmp_path / "run.json").read_text())
    assert about["settings"]["resamples"] == 200
    assert about["skipped"][0]["benchmark"] == "no_such_benchmark"
    tests = read_rows(tmp_path / "tests.jsonl")
    ranked = [{row["first"], row["second"]} for row in tests if row["benchmark"] == "toy" and row["level"] == "turn"]
    assert len(ranked) == 2
    assert set.union(*ranked) == {"<share|>", "picky", "noise"}


def test_an_empty_report_can_be_written(tmp_path):
    write_outputs(Report(QUICK), tmp_path)
    assert (tmp_path / "agreement.jsonl").read_text() == ""
    assert "Agreement with people" in (tmp_path / "leaderboard.html").read_text()


def test_the_page_is_well_formed_and_self_contained(report):
    text = render_page(report)
    page = Page(text)
    assert "<script" not in text
    assert {name for name, _ in page.attributes} & {"src", "onclick", "style"} == set()
    links = [value for name, value in page.attributes if name == "href"]
    assert links
    assert all(value.startswith("#") and value[1:] in page.ids for value in links)
    assert len(page.ids) == len(set(page.ids))
    assert "url(" not in text
    assert "&lt;share|&gt;" in text
    assert "<share" not in text
    assert "<b>" not in text
    assert 'class="contaminated"' in text
    assert text.count("<svg") == sum(len(section.entries) for section in sections(report))


@pytest.mark.slow
def test_every_plot_is_written(report, tmp_path):
    written = write_outputs(report, tmp_path)
    names = {path.stem for path in written if path.parent.name == "plots"}
    protocol = "" if (shown := report.results[0].protocol) == "standard" else f"_{shown}"
    assert {f"scatter_toy{protocol}_overall", f"violin_toy{protocol}", f"heatmap_toy{protocol}"} <= names
    assert not any(name.startswith("scatter_good_or_bad") for name in names)


def test_the_agreement_command(files, tmp_path):
    out = tmp_path / "out"
    arguments = ["agreement", "-m", "python:toy_benchmark:count_words,python:toy_benchmark:picky", "-b", files["toy"]]
    done = invoke(*arguments, "--out", out, "--resamples", 100, "--plots", "none")
    assert re.search("picky.* 12 ", done.output)
    for text in (done.output, *((out / f"leaderboard.{kind}").read_text() for kind in ("md", "html"))):
        assert "worst rows" in text
        assert "kappa" in text
    assert sorted(path.name for path in out.iterdir()) == [
        "agreement.jsonl", "excluded.jsonl", "filters.jsonl", "leaderboard.html", "leaderboard.md", "run.json",
        "tests.jsonl", "values",
    ]  # fmt: skip
    before = (out / "agreement.jsonl").read_bytes()
    assert invoke(*arguments, "--out", out, "--resamples", 100, "--plots", "none", "--quiet").output == ""
    assert (out / "agreement.jsonl").read_bytes() == before


def test_files_without_ids_are_paired_only_where_their_contexts_are_the_same(tmp_path):
    files, rows = [], []
    for name, shift in (("old", 0), ("new", 1)):
        scores = ({"row": row, "density": row % 5 + shift * (row % 2)} for row in range(40))
        files.append(write_rows(tmp_path / f"{name}.jsonl", scores))
        shown = ({"context": [f"question {row // 4}"], "response": name} for row in range(40))
        rows.append(write_rows(tmp_path / f"{name}_rows.jsonl", shown))
    invoke("compare", *files, code=2)
    (found,) = compare(*files, rows=rows)
    # Four rows to a context: contexts are what chance draws.
    assert (found.n_rows, found.n_contexts, found.difference) == (40, 10, -0.5)
    lines = rows[1].read_text().splitlines()
    rows[1].write_text("\n".join([*lines[:-1], lines[-1].replace("question 9", "something else")]))
    assert "row 39" in invoke("compare", *files, "--rows", rows[0], "--rows", rows[1], code=2).output
    files[1].write_text("".join(files[1].read_text().splitlines(keepends=True)[:-1]))
    assert "40" in invoke("compare", *files, "--rows", rows[0], code=2).output


def test_nothing_of_a_former_run_stays_beside_the_results_of_another(report, tmp_path):
    former = "halves.jsonl overall.jsonl filters.jsonl aspects.jsonl plots/scatter_x.png plots/heatmap_x.svg".split()
    (tmp_path / "plots").mkdir()
    for name in (*former, "mine.jsonl", "plots/mine.png"):
        (tmp_path / name).write_text("former")
    written = write_outputs(replace(report, halves=[], overall=[], filters=[], aspects=[]), tmp_path, ())
    there = {path for path in tmp_path.rglob("*") if path.is_file()}
    assert there == {*written, tmp_path / "mine.jsonl", tmp_path / "plots/mine.png"}
