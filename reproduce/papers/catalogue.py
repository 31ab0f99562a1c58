"""Which papers there are."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from reproduce.papers import cmn, dailydialogpp, density, fbd_prd, quantidce
from reproduce.papers.tables import Paper
from reproduce.papers.trained import trained_baselines

_ONE_EACH = (density.PAPER, fbd_prd.PAPER, cmn.PAPER, dailydialogpp.PAPER, quantidce.PAPER)
PAPERS: tuple[Paper, ...] = (*_ONE_EACH, trained_baselines(_ONE_EACH))


def chosen_papers(names: Sequence[str]) -> list[Paper]:
    """The papers of these names; all of them where none is named."""
    known = {paper.name: paper for paper in PAPERS}
    for name in names:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else f"; there are {', '.join(known)}"
            raise ValueError(f"there is no paper {name!r}{hint}")
    return [known[name] for name in names] or list(PAPERS)
