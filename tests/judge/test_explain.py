"""Aspects, reasons and intervals of a metric, from its judgement to every place where scores are written."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dialeval
import overlap_metric
from dialeval import registry
from dialeval.core.exchange import Dialogue, Exchange
from dialeval.registry.interface import Judged, Level, MetricInfo
from dialeval.scoring import task
from refusals import refused
from shell import invoke, read_rows, write_rows

#: Overlap is 2 of 5 words, none of 2, all 4; words are 2, 1, 4; of the following turns only one is there.
RESPONSES = ["the bus", "=nobody", "long ago it is"]
CONTEXTS = [["the bus is late", "again"], ["who"], ["it is long ago"]]
FOLLOWING = ["oh no not again", None, "  "]
VALUES = [0.4, 0.0, 1.0]
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


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    overlap_metric.register()
    monkeypatch.setitem(registry.REGISTRY, "telling", registry.RegisteredMetric("test_explain:Telling"))
    monkeypatch.chdir(tmp_path)


def test_a_missing_input_is_a_missing_aspect() -> None:
    metric = dialeval.load("faceted")
    scores = metric.score(RESPONSES, CONTEXTS, following=FOLLOWING)
    assert scores.values.tolist() == VALUES
    assert scores.aspects["words"].tolist() == [2.0, 1.0, 4.0]
    assert scores.aspects["reaction"] == pytest.approx([4.0, math.nan, math.nan], nan_ok=True)
    assert scores.to_dict()["aspects"] == {"words": [2.0, 1.0, 4.0], "reaction": [4.0, None, None]}
    without = metric.score(RESPONSES, CONTEXTS)
    assert without.to_dict()["aspects"] == {"words": [2.0, 1.0, 4.0], "reaction": [None, None, None]}
    plain = dialeval.load("overlap").score(RESPONSES, CONTEXTS)
    assert plain.aspects == {}
    assert not {"aspects", "reasons", "intervals"} & plain.to_dict().keys()


def test_what_a_metric_must_keep_to() -> None:
    def gives(metric: str, named: str, **beside: Any) -> None:
        loaded = dialeval.load(metric)
        loaded.judge = lambda rows, **_: Judged(np.zeros(3), **beside)
        refused(RuntimeError, named, loaded.score, RESPONSES, CONTEXTS)

    gives("faceted", "wit", aspects={"wit": np.zeros(3)})
    gives("faceted", "words", aspects={"words": np.zeros(2)})
    gives("telling", "telling")  # declares reasons
    for named, declared in (("aspects", {"aspects": ("a",)}), ("reason", {"explains": True})):
        refused(ValueError, named, MetricInfo, "x", "X", Level.SYSTEM, True, (0, 1), "", **declared)


class Sided(overlap_metric.Overlap):
    """Reads dialogues as a whole: words of the first speaker, in all."""

    info = MetricInfo("sided", "Sided", Level.TURN, True, (0, 1), "", aspects=("a",), dialogue_aspects=("first",))

    def judge_dialogues(self, dialogues: Any, *, progress: bool = False) -> Judged:
        def words(dialogue: Dialogue) -> float:
            said = zip(dialogue.speakers, dialogue.turns, strict=True)
            return float(sum(len(turn.split()) for who, turn in said if who == dialogue.speakers[0]))

        first = np.array([words(one) if one.speakers else math.nan for one in dialogues])
        return Judged(np.array([len(one.turns) for one in dialogues], dtype=np.float64), aspects={"first": first})


def test_dialogues() -> None:
    dialogues = [["the bus", "the late bus", "bus"], ["who", "nobody"]]
    metric = dialeval.load("faceted")
    refused(ValueError, "DataFrame", metric.score_dialogues, pd.DataFrame({"dialogue": dialogues}))
    assert metric.score_dialogues(pd.Series(dialogues)).values == pytest.approx([0.5, 0.0])
    scores = metric.score_dialogues(dialogues)
    # 2 of 3 words and 1 of 3; then none of 2. Words 3 and 1 of the judged turns; then 1.
    assert scores.values == pytest.approx([0.5, 0.0])
    assert scores.aspects["words"].tolist() == [2.0, 1.0]
    assert np.isnan(scores.aspects["reaction"]).all()
    sided = Sided().score_dialogues(dialogues, speakers=[["A", "B", "A"], []])
    assert sided.values.tolist() == [3.0, 2.0]
    assert sided.to_dict()["aspects"] == {"first": [3.0, None]}


def test_a_row_is_explained() -> None:
    scores = dialeval.load("telling").score(RESPONSES, CONTEXTS)
    assert [scores.explain(row) for row in range(3)] == WHY
    refused(IndexError, "row 3", scores.explain, 3)
    refused(ValueError, "overlap", lambda: dialeval.load("overlap").score(RESPONSES, CONTEXTS).explain(0))
    shown = scores.to_dict()
    assert (shown["reasons"], shown["intervals"]) == (WHY, [[0.3, 0.6], [-0.1, 0.2], [0.9, 1.2]])


def write(following: bool = False) -> None:
    rows = [{"context": c, "response": r} for c, r in zip(CONTEXTS, RESPONSES, strict=True)]
    beside = [{"following": after, "id": str(at)} for at, after in enumerate(FOLLOWING)] if following else [{}] * 3
    write_rows("rows.jsonl", [row | more for row, more in zip(rows, beside, strict=True)])


def run(output: str, *options: str, metric: str = "telling", code: int = 0) -> str:
    return invoke("score", "-m", metric, "-i", "rows.jsonl", "-o", output, *options, code=code).stderr


def test_the_command_writes_a_column_for_every_aspect() -> None:
    write(following=True)
    printed = run("scores.jsonl", metric="overlap,faceted")
    first = read_rows("scores.jsonl")[0]
    wanted = {"overlap": 0.4, "faceted": 0.4, "faceted.words": 2.0, "faceted.reaction": 4.0}
    assert list(first.items())[-4:] == list(wanted.items())
    assert [line.split()[:2] for line in printed.splitlines()[3:5]] == [["words", "2.33333"], ["reaction", "4"]]
    run("scores.csv", "--texts", "none", metric="faceted")
    assert Path("scores.csv").read_text().splitlines() == [
        "row,id,system,language,faceted,faceted.words,faceted.reaction",
        "0,0,,,0.4,2.0,4.0",
        "1,1,,,0.0,1.0,",
        "2,2,,en,1.0,4.0,",
    ]
    run("scores.parquet", metric="faceted")
    frame = pd.read_parquet("scores.parquet")
    assert frame["faceted.words"].tolist() == [2.0, 1.0, 4.0]
    assert frame["faceted.reaction"].dtype == np.float64


def test_the_command_adds_columns_when_asked() -> None:
    write()
    run("plain.jsonl", "--texts", "none")
    assert read_rows("plain.jsonl")[0] == {key: TOLD[key] for key in ("row", "id", "system", "language", "telling")}
    run("why.jsonl", "--explain", "short", metric="overlap,telling")
    assert read_rows("why.jsonl")[0] == {**TOLD, "response": RESPONSES[0], "overlap": 0.4, "telling.why": WHY[0]}
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
    first = read_rows("percent.jsonl")[0]
    assert (first["telling.low"], first["telling.why"]) == (None, WHY[0])


def test_a_run_goes_on_with_its_reasons(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task, "FIRST_PAIRS", 1)
    monkeypatch.setattr(task, "CHUNK_PAIRS", 1)
    write()
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
