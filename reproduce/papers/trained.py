"""The trained baselines of all papers on one page: their rows of the papers' tables, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from reproduce.papers.tables import Paper, Table

#: What is called a trained baseline; `docs/baselines.md` says how each is made.
NAMES = ("ruber", "bert_ruber", "bert_dnn", "adem", "maude", "usr_retrieval", "usr_mlm", "usl_h", "bert_regressor")


def trained_baselines(papers: Sequence[Paper]) -> Paper:
    """A page made of other pages' rows."""
    tables: list[Table] = []
    for paper in papers:
        for table in paper.tables:
            rows = [row for row in table.rows if row.ours is not None and row.ours.partition("?")[0] in NAMES]
            if rows:
                tables.append(replace(table, title=f"{paper.title}: {table.title}", rows=rows))
    return Paper(
        "baselines",
        "The trained baselines",
        tables,
        (
            "GRADE runs by its released scores; BLEURT, FlowScore, DynaEval and MDD-Eval do not run: "
            "[docs/baselines.md](../../docs/baselines.md).",
        ),
    )
