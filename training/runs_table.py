"""The table of docs/training.md: every run that shipped, from its log."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dialeval.io.files import read_json_lines
from dialeval.io.tables import markdown_table
from history import kept_line, stage_in

BEGIN = "<!-- runs: written by `python training/cards.py` from results/training -->"
END = "<!-- /runs -->"
#: What is told of a run's held-out data, by the names in its log.
_FIGURES = {
    "r1": "R@1",
    "mrr": "MRR",
    "accuracy_random": "right on positive and random replies",
    "accuracy_adversarial": "on positive and adversarial ones",
    "calibration_error_after": "calibration error",
    "auc_full": "AUC",
    "auc_without_nsp": "of mutual information alone",
    "auc_without_mi": "of NSP alone",
    "levels_in_order": "levels in order",
    "spearman": "Spearman with ratings",
}
#: The same of runs that train several heads: a figure's name ends in that of its head.
_OF_HEADS = {
    "auc_random_": "AUC against random replies",
    "auc_damaged_": "against damaged ones",
    "spearman_": "Spearman with ratings",
}


def runs_table(logs: Path, recipes: Path) -> str:
    """A row per log, the earliest stages wherever their names put them."""
    rows = []
    for log in sorted(logs.glob("*.jsonl")):
        stage = stage_in(log, log.stem)
        recipe = recipes / f"{log.stem}.yaml"
        name = f"[{log.stem}](../training/recipes/{recipe.name})" if recipe.is_file() else log.stem
        figures = figures_of(log)
        parts = [f"{name} {figures[key]:.3f}" for key, name in _FIGURES.items() if key in figures]
        parts = parts or [
            f"{figure} {figures[key]:.3f} ({key.removeprefix(start)})"
            for start, figure in _OF_HEADS.items()
            for key in figures
            if key.startswith(start)
        ]
        reached = ", ".join(parts)
        if "rated_replies" in figures:
            reached += f" ({figures['rated_replies']:.0f} replies)"
        contexts = f"{figures['contexts']:.0f}" if "contexts" in figures else "not logged"
        rows.append([name, stage.summary, f"{stage.hours:g}", reached, contexts])
    header = ["run", "shipped", "hours of the run", "on held-out data", "contexts"]
    return "\n".join(markdown_table(header, rows, left=(0, 1, 3)))


def figures_of(log: Path) -> Mapping[str, Any]:
    """What the shipped weights reached on held-out data: at the run's end, else at the validation that kept them."""
    lines = read_json_lines(log)
    final = [line for line in lines if line["kind"] == "final"]
    return {**kept_line(lines), **(final[-1] if final else {})}


def write_runs_table(page: Path, logs: Path, recipes: Path) -> None:
    """Renew the marked block of a page; the prose around it stays."""
    text = page.read_text("utf-8")
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{page} has no block between {BEGIN} and {END}; put these two lines where the table belongs")
    page.write_text(f"{before}{BEGIN}\n{runs_table(logs, recipes)}\n{END}{after}", "utf-8")
