"""docs/baselines.md names every metric of the papers' tables, and what runs here is in the registry."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dialeval.registry import available
from reproduce.papers.catalogue import PAPERS
from reproduce.papers.tables import Table

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "baselines.md").read_text("utf-8")
#: The last page is made of rows of the others.
THE_FIVE = PAPERS[:-1]
STATES = {"runs here", "by score file", "needs weights", "needs data"}


def rows_of(heading: str) -> list[list[str]]:
    """The cells of the table that begins with this column."""
    lines = PAGE.splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith(f"| {heading} |"))
    rows = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


METRICS = {row[0]: row for row in rows_of("metric")}
VARIANTS = {row[0] for row in rows_of("tables of variants")}


def metric_of(label: str) -> str:
    """What a row is a row of: without the references' aggregation, the training data or a remark in brackets."""
    return re.split(r",| \(", label)[0]


@pytest.mark.parametrize(
    ("paper", "table"),
    [
        pytest.param(paper.title, table, id=f"{paper.name}-{table.title}")
        for paper in THE_FIVE
        for table in paper.tables
    ],
)
def test_every_row_of_the_papers_tables_is_named(paper: str, table: Table) -> None:
    if table.title not in VARIANTS:
        for row in table.rows:
            papers = METRICS[metric_of(row.label)][1]
            assert "(not in the paper)" in row.label or paper.split()[0] in papers or papers == "all", row.label


def test_variants_are_tables_of_a_paper() -> None:
    assert {table.title for paper in THE_FIVE for table in paper.tables} >= VARIANTS


@pytest.mark.parametrize("metric", METRICS)
def test_a_state_is_one_of_four_and_what_runs_here_is_registered(metric: str) -> None:
    _, papers, state, name, remark = METRICS[metric]
    assert state in STATES
    assert papers
    assert state == "runs here" or remark or not name
    if name:
        assert name.strip("`").partition("?")[0] in available()
    assert name or state != "runs here"


def test_rows_of_ours_carry_the_name_of_the_page() -> None:
    """Whoever follows the page gets the metric that the papers' tables measure."""
    for paper in THE_FIVE:
        for table in paper.tables:
            for row in table.rows:
                if row.ours is None or table.title in VARIANTS or "runs/ablations" in row.ours:
                    continue
                own = row.ours.partition("?")[0]
                named = METRICS[metric_of(row.label)][3].strip("`").partition("?")[0]
                assert own == named or (own[:4], named[:4]) == ("bleu", "bleu"), row.label


def test_what_needs_weights_or_data_says_so_in_its_cells_too() -> None:
    """An empty cell and this page give the same reason."""
    for paper in THE_FIVE:
        for table in paper.tables:
            for row in table.rows:
                if row.ours is None and metric_of(row.label) in METRICS and "released scores" not in row.label:
                    state = METRICS[metric_of(row.label)][2]
                    assert state == "by score file" or row.lacks, row.label
                    assert not state.startswith("needs") or state == f"needs {row.lacks}", row.label
