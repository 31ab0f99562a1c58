"""The papers' tables: printed numbers as the specs have them, ours from kept values, gaps told."""

import math
from pathlib import Path

import pytest
from scipy import stats
from typer.testing import CliRunner

from dialeval import benchmarks
from dialeval.agreement.runs import run
from dialeval.agreement.settings import Settings
from dialeval.core.specs import split_options
from dialeval.io.files import safe_name
from dialeval.registry import available, load
from reproduce.__main__ import build_app
from reproduce.papers.listing import PAPERS, TRAINED
from reproduce.papers.measured import NOT_MEASURED, answers
from reproduce.papers.render import render
from reproduce.papers.tables import CellQuery, Column, Paper, Row, Table
from shell import write_rows
from toy_benchmark import rated_rows

WORDS = "python:toy_benchmark:count_words"
LABELS = "python:toy_benchmark:noise?name=never_run"


def all_tables():
    return [(paper.name, table) for paper in PAPERS for table in paper.tables]


@pytest.mark.parametrize(("paper", "table"), all_tables(), ids=lambda one: getattr(one, "title", one))
def test_every_printed_number_has_its_column_and_every_question_can_be_asked(paper, table):
    titles = [column.title for column in table.columns]
    assert len(set(titles)) == len(titles)
    assert len({row.label for row in table.rows}) == len(table.rows)
    for row in table.rows:
        assert set(row.published) <= set(titles), row.label
        assert row.ours is None or split_options(row.ours)[0] in (*available(), *TRAINED), row.label
        assert row.ours or row.published, row.label
    for column in table.columns:
        if (question := column.question) is not None:
            name, _, protocol = question.benchmark.partition("@")
            info = benchmarks.info(name, protocol or None)
            assert question.level in ("system", info.level)
            assert question.settings.subset is None or question.settings.subset in info.subsets
            assert question.aspect == "" or question.aspect in info.aspects or info.kind == "labels"


def options_of_ours():
    rows = [row for _, table in all_tables() for row in table.rows]
    asked = set()
    for row in rows:
        name, options = split_options(row.ours or "")
        # Checkpoints are runs that are not here; the embedded one stands for them.
        options = {key: value for key, value in options.items() if key not in ("checkpoint", "model", "name")}
        if options:
            asked.add((name, *options.items()))
    return sorted(asked, key=str)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        pytest.param(name, dict(options), marks=pytest.mark.wordnet if name == "meteor" else pytest.mark.encoder)
        for name, *options in options_of_ours()
    ],
)
@pytest.mark.slow
def test_every_option_of_ours_is_one_that_the_metric_takes(name, options):
    if name in TRAINED:
        pytest.importorskip("dialeval_baselines")
    assert takes(name, options)


def takes(name, options) -> bool:
    """Whether a metric knows the options, even if its embedded checkpoint was not fitted for one of its rules."""
    try:
        load(name, **options)
    except ValueError as error:
        return "was fitted on human pairs only" in str(error)
    return True


def printed(paper, title, label, column):
    (found,) = [one for one in PAPERS if one.name == paper]
    table = next(one for one in found.tables if one.title.startswith(title))
    return next(row for row in table.rows if row.label == label).published[column]


def test_printed_numbers_stand_in_the_right_cells():
    assert printed("density", "Table 1", "DENSITY, ConvAI2", "USR ρ") == 62.97
    assert printed("density", "Table 1", "GPT2-Coherency", "GRADE-C2 r") == 43.34
    assert printed("density", "Table 2, with and without", "Without: classifier", "Zhao ρ") == 53.66
    assert printed("quantidce", "Table 1", "QuantiDCE", "Empathetic Kendall") == 0.274
    assert printed("quantidce", "Table 2", "Vanilla MLR", "Empathetic Pearson") == 0.403
    assert printed("quantidce", "Table 4", "Ordering loss", "ConvAI2 Kendall") == -0.371
    assert printed("dailydialogpp", "Tables 6", "DEB, adversarial", "random") == 86.24
    assert printed("fbd_prd", "Table 3", "FBD-R", "Persona(Z) ρ") == 1.0
    assert printed("fbd_prd", "Table 3", "PRD-B", "Daily(H) r") == 0.409
    assert printed("fbd_prd", "Table 5", "FBD-R", "content r") == 0.839
    assert printed("dailydialogpp", "Table 3", "Greedy, maximum", "accuracy") == 65.56
    assert printed("dailydialogpp", "Tables 5", "DEB, random and adversarial", "adversarial") == 92.65
    assert printed("cmn", "Tables 1", "CMN without NSP", "diverse ρ") == 0.5555


@pytest.fixture
def toy(tmp_path: Path):
    """A benchmark as a file, a table about it, and a folder in which one of two metrics left its values."""
    file = str(write_rows(tmp_path / "toy.jsonl", rated_rows()))
    settings = Settings(("spearman",), levels="own")
    columns = (Column("printed only"), Column("toy", CellQuery(file, "spearman", settings), scale=100))
    rows = (
        Row("Words", {"printed only": 0.5, "toy": 12.5}, WORDS, "another counter."),
        Row("Never run", {"toy": 7}, LABELS, "another counter"),
        Row("Theirs", {"toy": -3.25}),
    )
    values = tmp_path / "values"
    run([WORDS], [file], settings=Settings(resamples=0), values=values)
    # Kept under the benchmark's own name; a file's question names its path.
    (values / safe_name(file)).symlink_to(values / "toy")
    (values / "toy" / f"{safe_name(WORDS)}-1.jsonl").touch()
    return Paper("toy", "Toy", (Table("Table 1", columns, rows, "A note."),), ("Fig. 9.",)), values, file


def test_ours_are_the_plain_correlations_of_kept_values(toy):
    paper, values, file = toy
    found = answers(paper.tables, values, resamples=200)
    question = paper.tables[0].columns[1].question
    rows = benchmarks.load(file).dataset
    words = [len(row["response"].split()) for row in rows]
    people = [row["scores"]["overall"] for row in rows]
    result = found[WORDS, question].result
    assert result.value == pytest.approx(stats.spearmanr(words, people).statistic)
    assert result.low < result.value < result.high
    assert result.resamples == 200
    assert found[LABELS, question].result is None
    assert found[LABELS, question].reason == NOT_MEASURED


def test_a_page_shows_both_numbers_and_tells_what_is_missing(toy):
    paper, values, file = toy
    found = answers(paper.tables, values, resamples=200)
    result = found[WORDS, paper.tables[0].columns[1].question].result
    shown = f"**{100 * result.value:.1f}** [{100 * result.low:.1f}, {100 * result.high:.1f}]"
    lines = render(paper, found, values="kept")
    assert f"| Words (a) | 0.5 | 12.5<br>{shown} |" in lines
    assert "| Never run (a) |  | 7<br>not measured |" in lines
    assert "| Theirs |  | -3.25 |" in lines
    assert "| n of ours |  | 180 |" in lines
    assert "(a) another counter." in lines
    assert (
        f"dialeval agreement --metrics '{LABELS}' --benchmarks {file} --values kept --plots none --out runs/papers"
        in lines
    )
    assert "- Fig. 9." in lines


def test_an_average_is_that_of_the_numbers_beside_it(toy):
    """Of the released scores the authors printed .501; where a part is not measured, there is no average of ours."""
    paper, values, _ = toy
    (table,) = paper.tables
    question = table.columns[1].question
    columns = (Column("toy", question), Column("again", question), Column("average", average_of=("toy", "again")))
    rows = (Row("Words", {"average": 0.501}, WORDS), Row("Never run", {"average": 0.1}, LABELS))
    paper = Paper("toy", "Toy", (Table("Table 1", columns, rows),))
    found = answers(paper.tables, values, resamples=0)
    lines = render(paper, found, values="kept")
    value = f"{found[WORDS, question].result.value:.3f}"
    assert f"| Words | **{value}** | **{value}** | 0.501<br>**{value}** |" in lines
    assert "| Never run | not measured | not measured | 0.1 |" in lines


def test_what_is_missing_is_measured_and_kept_when_asked(toy, tmp_path):
    paper, _, _ = toy
    rows = [row for row in paper.tables[0].rows if row.ours == WORDS]
    tables = [Table("T", paper.tables[0].columns, rows)]
    question = paper.tables[0].columns[1].question
    measured = answers(tables, tmp_path / "new", resamples=0, measure=True)[WORDS, question]
    assert measured.result is not None
    assert any((tmp_path / "new").rglob("*.jsonl"))


def test_without_files_nothing_is_loaded(toy, monkeypatch):
    paper, values, _ = toy
    monkeypatch.setattr("reproduce.papers.measured.find_sources", lambda specs: pytest.fail("a metric was loaded"))
    found = answers(paper.tables, values.parent)
    assert {answer.reason for answer in found.values()} == {NOT_MEASURED}


def test_a_metric_that_cannot_be_loaded_is_told_and_stops_nothing(toy):
    paper, values, _ = toy
    broken = Row("Broken", ours="python:toy_benchmark:there_is_none")
    (values / "toy" / f"{safe_name(broken.ours)}-1.jsonl").touch()
    (table,) = paper.tables
    found = answers([Table("T", table.columns, (*table.rows, broken))], values, resamples=0)
    question = table.columns[1].question
    assert found[WORDS, question].result is not None
    assert math.isnan(found[WORDS, question].result.low)
    assert found[broken.ours, question].reason.startswith("cannot be loaded here")


def test_the_command_writes_a_page_for_each_paper(tmp_path):
    (tmp_path / "values").mkdir()
    options = ["papers", "--values", str(tmp_path / "values"), "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(build_app(), options)
    assert done.exit_code == 0, done.output
    assert {path.stem for path in (tmp_path / "out").iterdir()} == {paper.name for paper in PAPERS}
    page = (tmp_path / "out/density.md").read_text()
    assert "62.97<br>not measured" in page
    assert str(tmp_path) not in page
