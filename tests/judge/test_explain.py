"""Reasons and intervals from the metric to every place where scores are written."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import dialeval
import overlap_metric
from dialeval import registry
from dialeval.cli import build_app
from dialeval.core.exchange import Exchange
from dialeval.registry.interface import Judged, Level, MetricInfo
from refusals import refused

#: Overlap is 2 of 5 words, none of 2, all 4.
RESPONSES = ["the bus", "=nobody", "long ago it is"]
CONTEXTS = [["the bus is late", "again"], ["who"], ["it is long ago"]]
WHY = ["Shares 2 words.", "=shares nothing.", "Shares 4 words."]
TOLD = {"row": 0, "id": None, "system": None, "language": "", "telling": 0.4, "telling.low": 0.3, "telling.high": 0.6}


class Telling(overlap_metric.Overlap):
    """Overlap with a reason, 0.1 below and 0.2 above."""

    info = MetricInfo("telling", "Telling", Level.TURN, True, (0, 1), "", explains=True, of_dialogues="every reply")

    def judge(self, exchanges: Sequence[Exchange], *, progress: bool = False) -> Judged:
        values = super().judge(exchanges).values
        shared = [len(set(one.response.split()) & set(" ".join(one.context).split())) for one in exchanges]
        reasons = tuple(f"Shares {count} words." if count else "=shares nothing." for count in shared)
        return Judged(values, reasons=reasons, interval=np.round(np.stack([values - 0.1, values + 0.2], axis=1), 6))

    def judge_dialogues(self, dialogues: Any, *, progress: bool = False) -> Judged:
        return self.judge([list(one.exchanges())[-1] for one in dialogues])


class Silent(Telling):
    """Declares reasons and gives none."""

    def judge(self, exchanges: Sequence[Exchange], *, progress: bool = False) -> Judged:
        return overlap_metric.Overlap.judge(self, exchanges)


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    overlap_metric.register()
    monkeypatch.setitem(registry.REGISTRY, "telling", registry.RegisteredMetric("test_explain:Telling"))
    monkeypatch.chdir(tmp_path)


def test_a_row_is_explained() -> None:
    scores = dialeval.load("telling").score(RESPONSES, CONTEXTS)
    assert [scores.explain(row) for row in range(3)] == WHY
    refused(IndexError, "row 3", scores.explain, 3)
    refused(ValueError, "overlap", lambda: dialeval.load("overlap").score(RESPONSES, CONTEXTS).explain(0))
    shown = scores.to_dict()
    assert shown["reasons"] == WHY
    assert shown["intervals"] == [[0.3, 0.6], [-0.1, 0.2], [0.9, 1.2]]
    assert not {"reasons", "intervals"} & dialeval.load("overlap").score(RESPONSES, CONTEXTS).to_dict().keys()


def test_what_is_declared_must_be_given() -> None:
    refused(RuntimeError, "telling", lambda: Silent().score(RESPONSES, CONTEXTS))
    refused(ValueError, "reason", MetricInfo, "x", "X", Level.SYSTEM, True, (0, 1), "", explains=True)


def write_rows(name: str = "rows.jsonl") -> None:
    rows = [{"context": c, "response": r} for c, r in zip(CONTEXTS, RESPONSES, strict=True)]
    Path(name).write_text("".join(json.dumps(row) + "\n" for row in rows))


def run(output: str, *options: str, metric: str = "telling", code: int = 0) -> str:
    result = CliRunner().invoke(build_app(), ["score", "-m", metric, "-i", "rows.jsonl", "-o", output, *options])
    assert result.exit_code == code, result.output
    return result.stderr


def lines(path: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


def test_the_command_adds_columns_when_asked() -> None:
    write_rows()
    run("plain.jsonl", "--texts", "none")
    assert lines("plain.jsonl")[0] == {key: TOLD[key] for key in ("row", "id", "system", "language", "telling")}
    run("why.jsonl", "--explain", "short", metric="overlap,telling")
    assert lines("why.jsonl")[0] == {**TOLD, "response": RESPONSES[0], "overlap": 0.4, "telling.why": WHY[0]}
    run("why.csv", "--explain", "short", "--texts", "none")
    assert Path("why.csv").read_text().splitlines() == [
        "row,id,system,language,telling,telling.low,telling.high,telling.why",
        "0,,,,0.4,0.3,0.6,Shares 2 words.",
        "1,,,,0.0,-0.1,0.2,'=shares nothing.",  # no formula for a spreadsheet
        "2,,,en,1.0,0.9,1.2,Shares 4 words.",
    ]
    run("why.parquet", "--explain", "short")
    frame = pd.read_parquet("why.parquet")
    assert frame["telling.why"].tolist() == WHY
    assert frame["telling.low"].dtype == np.float64
    run("percent.jsonl", "--explain", "short", "--scale", "human_percentile")
    first = lines("percent.jsonl")[0]
    assert (first["telling.low"], first["telling.why"]) == (None, WHY[0])


def test_nothing_to_explain_is_refused_before_anything_is_read() -> None:
    printed = run("why.jsonl", "--explain", "short", metric="overlap", code=2)
    assert "overlap" in printed


def test_a_run_goes_on_with_its_reasons(monkeypatch: pytest.MonkeyPatch) -> None:
    from dialeval.scoring import task

    monkeypatch.setattr(task, "FIRST_PAIRS", 1)
    monkeypatch.setattr(task, "CHUNK_PAIRS", 1)
    write_rows()
    run("whole.jsonl", "--explain", "short")
    judged = Telling.judge
    seen: list[int] = []

    def fails_at_the_third(self: Telling, exchanges: Sequence[Exchange], *, progress: bool = False) -> Judged:
        seen.append(len(exchanges))
        if len(seen) == 3:
            raise KeyboardInterrupt
        return judged(self, exchanges)

    monkeypatch.setattr(Telling, "judge", fails_at_the_third)
    run("why.jsonl", "--explain", "short", code=130)
    assert Path("why.jsonl.partial").is_file()
    printed = run("why.jsonl", code=2)  # rows without reasons cannot be added to rows with them
    assert "partial" in printed
    printed = run("why.jsonl", "--explain", "short")
    assert "2 from the interrupted run" in printed
    assert Path("why.jsonl").read_bytes() == Path("whole.jsonl").read_bytes()
