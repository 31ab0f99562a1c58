"""What the trust tab says first: which metric to use, in a sentence and a picture, from the committed results."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import charts
from markup import note, text
from models import info_of, ready

from dialeval.metric import Level


@cache
def standings(folder: Path) -> tuple[dict[str, Any], ...]:
    """Each metric's mean correlation over the benchmarks, best first; nothing where that was not kept."""
    path = folder / "overall.jsonl"
    if not path.is_file():
        return ()
    lines = path.read_text(encoding="utf-8").splitlines()
    return tuple(sorted((json.loads(line) for line in lines if line.strip()), key=lambda row: -row["mean"]))


def opening(folder: Path | None) -> str:
    """The sentence and the picture."""
    rows = standings(folder) if folder else ()
    if not rows:
        return note("There are no results beside this page that say how far the metrics agree with people.")
    best = rows[0]
    close = [row["metric"] for row in rows[1:] if row["p_adjusted"] is not None and row["p_adjusted"] >= 0.05]
    names = ready(Level.TURN)
    name = info_of(best["metric"]).title if best["metric"] in names else best["metric"]
    beside = f", and {' and '.join(close)} as no test tells them apart" if close else ""
    sentence = (
        f"Use {name} for single replies{beside}: over {len(best['over'])} benchmarks its scores agree most with what "
        f"people said (mean rank correlation {best['mean']:.2f}, where 1 is perfect and 0 is chance; "
        "blue bars are metrics of this page). "
    )
    sets = "To compare whole systems without judging replies one by one, use FBD or PRD."
    picture = charts.agreement({row["metric"]: row["mean"] for row in rows}, set(names))
    return f'<p class="answer">{text(sentence + sets, 600)}</p>{picture}'
