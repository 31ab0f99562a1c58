"""Normality and curves of FBD and PRD as a page, a table and a picture; the paper's Table 4 beside ours."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from dialeval.io.files import write_atomically
from dialeval.io.tables import markdown_table
from dialeval.reports.plots.figures import COLOURS, new_grid, save
from reproduce.distances import SHARES, SPOILT, Curve, Normal

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Table 4 of Xiang et al. 2021: mean and standard deviation, by benchmark.
PRINTED = {
    "BERT": {
        "fbd_personam": (0.57, 0.44),
        "fbd_dailyh": (0.65, 0.39),
        "fbd_convai2": (0.60, 0.42),
        "fbd_empathetic": (0.65, 0.39),
        "fbd_dailyz": (0.67, 0.38),
        "fbd_personaz": (0.65, 0.38),
    },
    "RoBERTa": {
        "fbd_personam": (0.71, 0.38),
        "fbd_dailyh": (0.68, 0.37),
        "fbd_convai2": (0.73, 0.34),
        "fbd_empathetic": (0.68, 0.37),
        "fbd_dailyz": (0.68, 0.37),
        "fbd_personaz": (0.71, 0.33),
    },
}
_PAGE = """# What FBD and PRD stand on

Made by:

```
{command}
```

## Normality of the features of people's replies

FBD takes the features for normal. Shapiro-Wilk's test of each dimension, averaged over the dimensions. The paper's
Table 4 averages statistics W and p-values thrown together; exactly normal features would have about 0.74 ± 0.32 there.
The last two blocks are what the test itself says: W, and the share of dimensions that are not normal at 0.05.
"""
_CURVES = """
## Replies that get worse

Replies of people against themselves, a growing share of them spoilt as the authors' code does it: words put in (noise),
replies to other contexts (mismatch), words in another order (permutation), replies that fit anywhere (repetition).
From none spoilt to all in four steps; *as it should* counts the steps at which FBD grows and PRD falls.
"""


def write_distances(tested: Sequence[Normal], found: Sequence[Curve], out: Path, *, command: str) -> list[Path]:
    """distances.json, distances.md and distances.png."""
    record = {
        "normality": [asdict(one) for one in tested],
        "shares": SHARES,
        "curves": [asdict(one) for one in found],
        "command": command,
    }
    write_atomically(out / "distances.json", [json.dumps(record, ensure_ascii=False, indent=1)])
    write_atomically(out / "distances.md", page(tested, found, command))
    drawn = save(picture(found), out / "distances") if found else []
    return [out / "distances.json", out / "distances.md", *drawn]


def page(tested: Sequence[Normal], found: Sequence[Curve], command: str) -> Iterable[str]:
    """The lines of the page."""
    yield from _PAGE.format(command=command).splitlines()
    corpora = list(dict.fromkeys(one.corpus for one in tested))
    cells = {(one.encoder, one.corpus): one for one in tested}
    encoders = list(dict.fromkeys(one.encoder for one in tested))
    shown: dict[str, Callable[[Normal], str]] = {
        "": lambda one: _spread((one.pooled_mean, one.pooled_std)),
        ": W": lambda one: f"{one.w_mean:.3f} ± {one.w_std:.3f}",
        ": not normal": lambda one: f"{one.share_p_below_05:.0%}",
    }
    rows = [
        [f"{name}, paper", *(_spread(known.get(corpus.partition("@")[0])) for corpus in corpora)]
        for name, known in PRINTED.items()
    ]
    for suffix, cell in shown.items():
        rows += [[f"{name}{suffix}", *(cell(cells[name, corpus]) for corpus in corpora)] for name in encoders]
    rows.append(["n of ours", *(str(cells[encoders[0], corpus].n) for corpus in corpora)])
    yield ""
    yield from markdown_table(["features", *corpora], rows)
    if found:
        yield from _CURVES.splitlines()
        yield ""
        header = ["metric", "encoder", "replies", "change", "spoilt", *(f"{share:.0%}" for share in SHARES)]
        yield from markdown_table([*header, "as it should"], map(_curve_row, found))
        yield "\n![FBD and PRD of replies that get worse](distances.png)"


def _spread(pair: tuple[float, float] | None) -> str:
    return "" if pair is None else f"{pair[0]:.2f} ± {pair[1]:.2f}"


def _curve_row(one: Curve) -> list[str]:
    values = [f"{value:.3f}" for value in one.values]
    spoilt = f"{one.spoilt} of {one.n}"
    return [one.metric, one.encoder, one.corpus, one.change, spoilt, *values, f"{one.worse_steps} of {len(SHARES) - 1}"]


def picture(found: Sequence[Curve]) -> Figure:
    """A panel per metric, encoder and corpus with a line per change."""
    panels = list(dict.fromkeys((one.metric, one.encoder, one.corpus) for one in found))
    figure, axes = new_grid(len(panels), 2.9, 2.6)
    for place, key in zip(axes, panels, strict=True):
        for one in (one for one in found if (one.metric, one.encoder, one.corpus) == key):
            colour = COLOURS[list(SPOILT).index(one.change) % len(COLOURS)]
            place.plot(
                [100 * share for share in SHARES], one.values, "o-", color=colour, markersize=3, label=one.change
            )
        place.set_title(f"{key[0]}, {key[1]}\n{key[2]}", fontsize="small")
        place.set_xlabel("% of replies spoilt", fontsize="small")
    axes[0].legend(frameon=False, fontsize="x-small")
    return figure
