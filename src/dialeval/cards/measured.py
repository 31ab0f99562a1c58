"""Which numbers of `results/` belong to a checkpoint, and how its card and the Hub tell them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from huggingface_hub import EvalResult

    from dialeval.agreement.results import Result

#: What a card shows, under which name, and what the Hub calls it.
SHOWN = {
    "pearson": ("Pearson", "pearsonr"),
    "spearman": ("Spearman", "spearmanr"),
    "auc": ("AUC", "roc_auc"),
    "accuracy": ("accuracy", "accuracy"),
}
RESULTS_FOLDER = ".eval_results/"
SOURCE = "https://github.com/dialeval/dialeval/tree/main/results"


def results_of(approach: str, checkpoint: str, folder: Path) -> list[Result]:
    """The rows of all tables below `folder` that exactly these weights gave, in the metric's default variant.

    `checkpoint` is `name@digest` as in a score's signature, so numbers of earlier weights do not pass.
    The same question asked in several runs is answered once, by the table nearest to `folder`.
    """
    from dialeval.agreement.results import read_results

    tables = sorted(folder.rglob("agreement.jsonl"), key=lambda path: (len(path.parts), path))
    found: dict[tuple[str, ...], Result] = {}
    for table in tables:
        for row in read_results(table.parent):
            signature = parts_of(row.metric_signature)
            is_ours = signature.get("metric") == approach and signature.get("checkpoint") == checkpoint
            if is_ours and row.metric == approach and row.statistic in SHOWN and row.value == row.value:
                found.setdefault(row.question, row)
    return sorted(found.values(), key=lambda row: (row.benchmark, row.protocol, row.level, row.aspect))


def parts_of(signature: str) -> dict[str, str]:
    """A signature's text, taken apart again."""
    pairs = (part.partition(":") for part in signature.split("|"))
    return {key: value for key, _, value in pairs}


def table(results: Sequence[Result]) -> list[list[str]]:
    """Header and one line per question, statistics beside each other, each with its interval."""
    from dialeval.agreement.leaderboard import with_interval

    statistics = [name for name in SHOWN if any(row.statistic == name for row in results)]
    lines: dict[tuple[str, ...], dict[str, Result]] = {}
    for row in results:
        lines.setdefault(row.question[:-1], {})[row.statistic] = row
    header = ["benchmark", "aspect", "level", "n", *(SHOWN[name][0] for name in statistics), ""]
    body = []
    for (benchmark, protocol, level, aspect), cells in lines.items():
        first = next(iter(cells.values()))
        shown = [with_interval(cells[name]) if name in cells else "" for name in statistics]
        name = benchmark if protocol == "standard" else f"{benchmark} ({protocol})"
        size = f"{first.n} systems" if level == "system" else str(first.n)
        body.append([name, aspect, level, size, *shown, "contaminated" if first.contaminated else ""])
    return [header, *body]


def model_index(results: Sequence[Result], org: str) -> list[EvalResult]:
    """The rows as the `model-index` of a card."""
    from huggingface_hub import EvalResult

    return [
        EvalResult(
            task_type="text-classification",
            task_name="Agreement with human judgement",
            dataset_type=f"{org}/{row.benchmark}",
            dataset_name=row.benchmark,
            dataset_config=f"{row.aspect}, {row.level}, {row.protocol}",
            dataset_revision=row.revision,
            metric_type=SHOWN[row.statistic][1],
            metric_value=round(row.value, 4),
            metric_name=f"{SHOWN[row.statistic][0]} ({_note(row)})",
            source_name="dialeval results",
            source_url=SOURCE,
        )
        for row in results
    ]


def eval_results(results: Sequence[Result], org: str) -> dict[str, str]:
    """The rows as the Hub's `.eval_results/BENCHMARK.yaml` files: path and text.

    Each question appears once, with the rank correlation, or the accuracy where answers are labels.
    """
    import yaml
    from huggingface_hub import EvalResultEntry, eval_result_entries_to_yaml

    files: dict[str, list[EvalResultEntry]] = {}
    for row in results:
        if row.statistic in ("spearman", "accuracy"):
            entry = EvalResultEntry(
                dataset_id=f"{org}/{row.benchmark}",
                task_id="-".join([row.protocol, row.level, row.aspect, row.statistic]),
                value=round(row.value, 4),
                source_url=SOURCE,
                source_name="dialeval results",
                notes=_note(row),
            )
            files.setdefault(f"{RESULTS_FOLDER}{row.benchmark}.yaml", []).append(entry)
    options: Mapping[str, Any] = {"sort_keys": False, "allow_unicode": True}
    return {path: yaml.safe_dump(eval_result_entries_to_yaml(entries), **options) for path, entries in files.items()}


def confidence(row: Result) -> str:
    """The level of a row's interval, as the row's own signature tells it."""
    level = parts_of(row.signature).get("interval", "").split(" ")[0]
    return f"{float(level):.0%}" if level else ""


def _note(row: Result) -> str:
    interval = f", {confidence(row)} interval {row.low:.3f} to {row.high:.3f}" if row.low == row.low else ""
    mark = ", contaminated: trained on this benchmark" if row.contaminated else ""
    return f"{row.aspect}, {row.level} level, n = {row.n}{interval}{mark}"
