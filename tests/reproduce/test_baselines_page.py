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


@pytest.mark.parametrize("metric", METRICS)
def test_a_state_is_one_of_four_and_what_runs_here_is_registered(metric: str) -> None:
    _, papers, state, name, remark = METRICS[metric]
    assert state in STATES
    assert papers
    assert state == "runs here" or remark or not name
    if name:
        assert name.strip("`").partition("?")[0] in available()
    assert name or state != "runs here"
