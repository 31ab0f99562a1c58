"""Which papers there are, and the page of the trained baselines of all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dialeval.core.specs import did_you_mean
from reproduce.papers import cmn, dailydialogpp, density, fbd_prd, quantidce
from reproduce.papers.tables import Paper, Table

#: What is called a trained baseline; `docs/baselines.md` says how each is made.
TRAINED = ("ruber", "bert_ruber", "bert_dnn", "adem", "maude", "usr_retrieval", "usr_mlm", "usl_h", "bert_regressor")


def trained_baselines(papers: Sequence[Paper]) -> Paper:
    """Their rows of the papers' tables, and nothing else."""
    tables: list[Table] = []
    for paper in papers:
        for table in paper.tables:
            rows = [row for row in table.rows if row.ours is not None and row.ours.partition("?")[0] in TRAINED]
            if rows:
                tables.append(replace(table, title=f"{paper.title}: {table.title}", rows=rows))
    elsewhere = (
        "GRADE runs by its released scores; BLEURT, FlowScore, DynaEval and MDD-Eval do not run: "
        "[docs/baselines.md](../../docs/baselines.md)."
    )
    return Paper("baselines", "The trained baselines", tables, (elsewhere,))


_EACH = (density.PAPER, fbd_prd.PAPER, cmn.PAPER, dailydialogpp.PAPER, quantidce.PAPER)
PAPERS: tuple[Paper, ...] = (*_EACH, trained_baselines(_EACH))


def chosen_papers(names: Sequence[str]) -> list[Paper]:
    """The papers of these names; all of them where none is named."""
    known = {paper.name: paper for paper in PAPERS}
    for name in names:
        if name not in known:
            raise ValueError(f"there is no paper {name!r}; {did_you_mean(name, known)}")
    return [known[name] for name in names] or list(PAPERS)
