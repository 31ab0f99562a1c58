"""The last tab: how far the judge agrees with people, beside others; what it cannot see; whose weights these are."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import gradio as gr
from parts import HERE, html, share

from dialeval.io.files import read_json_lines

#: Metrics that stand beside the judge, as people call them.
BESIDE = {"judge": "this judge", "bertscore": "BERTScore", "bleu2": "BLEU"}


@cache
def folder() -> Path | None:
    """Beside the page, where publishing puts results, or in the checkout around it."""
    places = (HERE / "results", HERE.parents[1] / "results")
    needed = ("agreement.jsonl", "overall.jsonl", "published.json")
    return next((place for place in places if all((place / name).is_file() for name in needed)), None)


def benchmarks() -> list[dict[str, Any]]:
    """Of each benchmark a bar per metric, with interval; one person, and a language model as published."""
    place = folder()
    if place is None:
        return []
    published = json.loads((place / "published.json").read_text("utf-8"))["spearman"]
    by_benchmark: dict[str, dict[str, Any]] = {}
    for row in read_json_lines(place / "agreement.jsonl"):
        if row["level"] == "system" or row["statistic"] != "spearman" or row["protocol"] != "standard":
            continue
        if row["metric"] not in BESIDE or row["contaminated"] or row["value"] is None:
            continue
        entry = by_benchmark.setdefault(row["benchmark"], {"name": row["benchmark"], "rows": row["n"], "bars": {}})
        entry["bars"].setdefault(row["metric"], _bar(BESIDE[row["metric"]], row["value"], row["low"], row["high"]))
        if row["ceiling"] is not None:
            entry["bars"].setdefault("person", _bar("one person", row["ceiling"]))
        if ends := published.get(row["benchmark"]):
            middle = sum(ends) / 2
            entry["bars"].setdefault("llm", _bar("a language model (published)", middle, *ends))
    for entry in by_benchmark.values():
        bars = entry["bars"]
        entry["bars"] = [bars[key] for key in ("judge", "llm", "person", "bertscore", "bleu2") if key in bars]
    return list(by_benchmark.values())


def _bar(name: str, value: float, low: float | None = None, high: float | None = None) -> dict[str, Any]:
    shown = {"name": name, "value": f"{value:.2f}", "width": share(value), "ends": None}
    if low is not None and high is not None:
        shown["ends"] = (share(low), max(1, share(high) - share(low)), f"{low:.2f} to {high:.2f}")
    return shown


def means() -> dict[str, str]:
    """The mean over benchmarks of the metrics shown."""
    place = folder()
    rows = read_json_lines(place / "overall.jsonl") if place else []
    return {BESIDE[row["metric"]]: f"{row['mean']:.2f}" for row in rows if row["metric"] in BESIDE}


def build() -> None:
    """Lay the tab out."""
    gr.HTML(html("trust", benchmarks=benchmarks(), means=means()), elem_id="trust")
