"""What a run leaves behind: tables, leaderboards, plots, and the commands that make them."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from typer.testing import CliRunner

from dialeval import benchmarks
from dialeval.agreement.leaderboard import sections
from dialeval.agreement.results import Report, read_results
from dialeval.agreement.runs import run
from dialeval.agreement.score_comparison import compare_scores
from dialeval.agreement.settings import Settings
from dialeval.cli import build_app
from dialeval.plots.agreement import agreement_table, heat_map, scatter
from dialeval.plots.distributions import distributions
from dialeval.plots.figures import save
from dialeval.readers import Source
from dialeval.reports.leaderboard import render_markdown, render_page
from dialeval.reports.outputs import write_outputs
from dialeval.reports.pictures import with_people
from dialeval.weights.config import CheckpointConfig
from dialeval.weights.find import weights_digest
from reproduce.leaderboard import read_report, with_present_marks
from toy_benchmark import Length, labelled_rows, noise, picky, rated_rows, write_rows

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


def invoke(*arguments):
    return CliRunner().invoke(build_app(), [str(argument) for argument in arguments])


def test_the_table_is_the_same_in_both_formats(report, tmp_path):
    import pyarrow.parquet

    report.write(tmp_path)
    lines = [json.loads(line) for line in (tmp_path / "agreement.jsonl").read_text().splitlines()]
    assert lines == report.to_rows()
    assert pyarrow.parquet.read_table(tmp_path / "agreement.parquet").to_pylist() == lines
    assert [one.value for one in read_results(tmp_path)] == [one.value for one in report.results]
    first = lines[0]
    assert (first["metric"], first["benchmark"], first["contaminated"]) == ("length", "toy", True)
    assert first["threshold"] is None
    excluded = [json.loads(line) for line in (tmp_path / "excluded.jsonl").read_text().splitlines()]
    assert {row["id"] for row in excluded if row["benchmark"] == "toy"} == {
        f"toy-{number}-{system}" for number in (3, 4) for system in range(6)
    }
    about = json.loads((tmp_path / "run.json").read_text())
    assert about["settings"]["resamples"] == 200
    assert about["skipped"][0]["benchmark"] == "no_such_benchmark"
    tests = [json.loads(line) for line in (tmp_path / "tests.jsonl").read_text().splitlines()]
    ranked = [{row["first"], row["second"]} for row in tests if row["benchmark"] == "toy" and row["level"] == "turn"]
    assert len(ranked) == 2
    assert set.union(*ranked) == {"<share|>", "picky", "noise"}


def test_an_empty_report_can_be_written(tmp_path):
    write_outputs(Report(QUICK), tmp_path)
    assert (tmp_path / "agreement.jsonl").read_text() == ""
    assert "Agreement with people" in (tmp_path / "leaderboard.html").read_text()


def test_markdown_never_shows_a_number_bare(report):
    text = render_markdown(report)
    section = text[text.index("## toy, turn level, overall") :].split("\n## ")[0]
    assert "72 rows in 12 contexts; 6 systems" in section
    assert "one person against the others Pearson 0." in section
    length = next(one for one in report.results if one.metric == "length" and one.statistic == "spearman")
    shown = f"{length.value:.3f} [{length.low:.3f}, {length.high:.3f}] †"
    assert f"| {shown} |" in section
    assert f"**{shown}**" not in section
    rows = {line.split(" ")[1]: line for line in section.splitlines() if line.startswith("| ")}
    assert "| 72 | 0 |" in rows["<share\\|>"]
    assert "| 60 | 12 |" in rows["picky"]
    best = {name for name in ("<share\\|>", "picky", "noise", "length") if "**0." in rows[name]}
    assert best
    assert not best & {"noise", "length"}
    assert "0.5 (fixed)" in text
    assert "- every metric on no_such_benchmark: there is no benchmark" in text
    for table in re.findall(r"(?:^\|.*\n)+", text, re.M):
        assert len({re.sub(r"\\\|", "", line).count("|") for line in table.splitlines()}) == 1


class Page(HTMLParser):
    """Checks that tags close, and collects what a page asks for."""

    VOID = frozenset({"meta", "br", "line", "circle"})

    def __init__(self):
        super().__init__()
        self.open: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.attributes += attrs
        self.ids += [value for name, value in attrs if name == "id"]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_is_well_formed_and_self_contained(report):
    text = render_page(report)
    page = Page()
    page.feed(text)
    assert page.open == []
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


def test_sections_are_ordered_by_their_statistic(report):
    for section in sections(report):
        values = [entry.results[section.ranked_by].value for entry in section.entries]
        assert values == sorted(values, reverse=True)
    assert {section.ranked_by for section in sections(report)} == {"spearman", "point_biserial"}


@pytest.mark.slow
def test_every_plot_is_written(report, tmp_path):
    written = write_outputs(report, tmp_path)
    names = {path.stem for path in written if path.parent.name == "plots"}
    protocol = "" if (shown := report.results[0].protocol) == "standard" else f"_{shown}"
    assert {
        f"forest_toy{protocol}_turn_overall",
        f"forest_toy{protocol}_system_overall",
        f"scatter_toy{protocol}_overall",
        f"violin_toy{protocol}",
        f"heatmap_toy{protocol}",
        f"forest_good_or_bad{protocol}_turn_positive_random",
    } <= names
    assert not any(name.startswith("scatter_good_or_bad") for name in names)


def test_a_scatter_shows_scaled_columns_and_their_line():
    human, metric = np.array([1.0, 2, 3, 5]), np.array([10.0, 30, 20, math.nan])
    (axes,) = scatter({"m": metric}, human, seed=1).axes
    points, line = axes.lines
    assert points.get_ydata().tolist() == [0, 1, 0.5]
    noise = np.random.default_rng(1).normal(0, 0.03, 3)
    assert points.get_xdata() == pytest.approx(np.array([0, 0.5, 1]) + noise)
    slope, start = np.polyfit([0, 0.5, 1], [0, 1, 0.5], 1)
    assert line.get_ydata() == pytest.approx([start, start + slope])
    assert "n 3" in axes.get_title()


def test_the_heat_map_is_spearman_on_shared_rows(report):
    panel = report.panels[0]
    columns = with_people(panel)
    table = agreement_table(columns)
    from scipy import stats

    both = np.isfinite(panel.columns["picky"])
    expected = stats.spearmanr(columns["people"][both], panel.columns["picky"][both]).statistic
    assert table[0, list(columns).index("picky")] == pytest.approx(expected)
    assert list(columns) == ["people", "length †", "<share|>", "picky", "noise"]
    assert np.array_equal(table, table.T)
    assert heat_map(columns).axes[0].get_xticklabels()[0].get_text() == "people"


@pytest.mark.parametrize("kind", ["box", "violin", "histogram"])
@pytest.mark.slow
def test_distributions_cope_with_gaps_and_constants(kind, tmp_path):
    columns = {"a": [1.0, 1.0, math.nan, math.nan], "b": [math.nan] * 4, "c": [1.0, 2.0, 3.0, 4.0]}
    figure = distributions(columns, ["x", "x", "y", "z"], kind=kind)
    assert [axes.get_title() for axes in figure.axes] == ["a (n 2)", "b (n 0)", "c (n 4)"]
    assert save(figure, tmp_path / kind)[0].stat().st_size > 1000


def test_the_agreement_command(files, tmp_path):
    out = tmp_path / "out"
    arguments = ["agreement", "-m", "python:toy_benchmark:count_words,python:toy_benchmark:picky", "-b", files["toy"]]
    done = invoke(*arguments, "--out", out, "--resamples", 100, "--plots", "none")
    assert done.exit_code == 0, done.output
    assert "toy, turn level, overall" in done.output
    assert "picky on toy: 12 rows left out" in done.output
    assert sorted(path.name for path in out.iterdir()) == [
        "agreement.jsonl", "agreement.parquet", "excluded.jsonl", "leaderboard.html", "leaderboard.md", "run.json",
        "tests.jsonl", "values",
    ]  # fmt: skip
    before = (out / "agreement.jsonl").read_bytes()
    assert invoke(*arguments, "--out", out, "--resamples", 100, "--plots", "none", "--quiet").output == ""
    assert (out / "agreement.jsonl").read_bytes() == before


def test_the_agreement_command_refuses_what_it_cannot_do(files, tmp_path):
    nothing = invoke("agreement", "-m", "python:toy_benchmark:count_words", "-b", "nonsense", "-o", tmp_path / "out")
    assert nothing.exit_code == 1
    assert "nonsense" in nothing.output
    for metric, option, value in (
        ("densty", "--threshold", "auto"),
        ("bleu2", "--threshold", "half"),
        ("bleu2", "--plots", "pdf"),
        ("bleu2", "--lower-is-better", "bleu2"),
    ):
        failed = invoke("agreement", "-m", metric, "-b", files["toy"], option, value, "--out", tmp_path / "out")
        assert (failed.exit_code, "Traceback" in failed.output) == (2, False)
        assert metric in failed.output or value in failed.output or option in failed.output


@pytest.mark.slow
def test_the_compare_command_on_a_benchmark(files):
    done = invoke(
        "compare", "python:toy_benchmark:count_words", "python:toy_benchmark:word_share?range=0:1",
        "-b", f"{files['toy']},{files['good_or_bad']}", "--resamples", 100, "--threshold", 0.4,
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    for shown in ("permutation", "Williams", "McNemar", "chi-square", "toy, system level, overall", "Accuracy"):
        assert shown in done.output
    assert "†" not in done.output
    system = done.output[done.output.index("toy, system level, overall") :].split("good_or_bad")[0]
    assert [line.split("│")[-3].strip() for line in system.splitlines() if line.startswith("│")] == ["6", "6", "6"]
    assert "agrees more" in system or "cannot be told apart" in system
    marked = invoke("compare", "python:toy_benchmark:Length", "python:toy_benchmark:noise", "-b", files["toy"])
    assert "toy, turn level, overall († length trained on it)" in marked.output


def scores_of_two_bots(tmp_path, ids):
    for name, shift in (("old", 0), ("new", 1)):
        rows = ({"row": at, "id": f"r{at}" if ids else None, "density": at % 5 + shift * (at % 2)} for at in range(40))
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        shown = ({"context": [f"question {at // 4}"], "response": name} for at in range(40))
        (tmp_path / f"{name}_rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in shown))
    return [tmp_path / "old.jsonl", tmp_path / "new.jsonl"]


def test_the_compare_command_on_two_files_says_what_it_compares(tmp_path):
    files = scores_of_two_bots(tmp_path, ids=True)
    done = invoke("compare", *files)
    assert done.exit_code == 0, done.output
    for shown in ("-0.500", "40", "old.jsonl", "new.jsonl", "higher is better", "is better"):
        assert shown in done.output
    assert [one.verdict for one in compare_scores(*map(str, files), Settings())] == ["new.jsonl is better"]
    (turned,) = compare_scores(*map(str, files), Settings(), lower_is_better=["density"])
    assert (turned.direction, turned.verdict) == ("lower is better", "old.jsonl is better")
    (tmp_path / "other.jsonl").write_text('{"id": "x", "density": 1}\n')
    failed = invoke("compare", files[0], tmp_path / "other.jsonl")
    assert failed.exit_code == 2


def test_files_without_ids_are_paired_only_where_their_contexts_are_the_same(tmp_path):
    files = scores_of_two_bots(tmp_path, ids=False)
    rows = [tmp_path / "old_rows.jsonl", tmp_path / "new_rows.jsonl"]
    refused = invoke("compare", *files)
    assert refused.exit_code == 2
    (found,) = compare_scores(*map(str, files), Settings(), rows=[Source(row) for row in rows])
    # Four rows to a context: contexts are what chance draws.
    assert (found.n_rows, found.n_contexts, found.difference) == (40, 10, -0.5)
    lines = rows[1].read_text().splitlines()
    rows[1].write_text("\n".join([*lines[:-1], lines[-1].replace("question 9", "something else")]))
    different = invoke("compare", *files, "--rows", rows[0], "--rows", rows[1])
    assert (different.exit_code, "row 39" in different.output) == (2, True)
    files[1].write_text("".join(files[1].read_text().splitlines(keepends=True)[:-1]))
    shorter = invoke("compare", *files, "--rows", rows[0])
    assert (shorter.exit_code, "40" in shorter.output) == (2, True)


@pytest.mark.slow
def test_the_plot_commands(files, report, tmp_path):
    results = tmp_path / "results"
    report.write(results)
    metric = ["-m", "python:toy_benchmark:count_words", "-b", files["toy"]]
    for name, arguments in {
        "forest": ["--results", results],
        "scatter": metric,
        "box": metric,
        "violin": ["-m", "python:toy_benchmark:count_words", "-b", files["good_or_bad"]],
        "histogram": metric,
        "heatmap": metric,
    }.items():
        done = invoke("plot", name, *arguments, "--out", tmp_path / name)
        assert done.exit_code == 0, done.output
        assert list((tmp_path / name).glob("*.png"))
    failed = invoke("plot", "forest", "--results", tmp_path / "nowhere", "--out", tmp_path)
    assert failed.exit_code == 2
    assert "dialeval agreement" in failed.output


def test_an_earlier_run_is_read_back_and_marked_by_what_checkpoints_now_say(report, tmp_path):
    write_outputs(report, tmp_path / "run", ())
    back = read_report(tmp_path / "run")
    assert (back.command, back.settings, back.skipped) == (report.command, report.settings, report.skipped)
    for name, page in (("leaderboard.md", render_markdown(back)), ("leaderboard.html", render_page(back))):
        assert (tmp_path / "run" / name).read_text() == page.rstrip("\n") + "\n"

    weights = tmp_path / "weights" / "mine"
    weights.mkdir(parents=True)
    (weights / "model.safetensors").write_bytes(b"x")
    (weights / "config.json").write_text(CheckpointConfig("deb", name="mine", contaminated_by=("toy",)).to_json())
    own = f"metric:deb|checkpoint:mine@{weights_digest(weights)[:12]}|dtype:float32"
    best = next(one for one in back.results if one.in_best_group and one.level == "turn")
    signed = [replace(one, metric_signature=own) if one.metric == best.metric else one for one in back.results]
    marked = with_present_marks(signed, tmp_path / "weights")
    of_best = [one for one in marked if one.metric == best.metric]
    assert {(one.benchmark, one.contaminated) for one in of_best} == {("toy", True), ("good_or_bad", False)}
    toys = [one for one in marked if one.question == best.question]
    assert [one.metric for one in toys if one.in_best_group] == [({"picky", "<share|>"} - {best.metric}).pop()]
