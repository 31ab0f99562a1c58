"""Further named columns of a metric, from its judgement to every place where scores are written."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import dialeval
import overlap_metric
from dialeval.cli import build_app
from dialeval.core.exchange import Dialogue
from dialeval.registry.interface import Judged, Level, MetricInfo
from refusals import refused

#: Overlap is 2 of 5 words, none of 2, all 4; words are 2, 1, 4; of the following turns only one is there.
RESPONSES = ["the bus", "nobody", "long ago it is"]
CONTEXTS = [["the bus is late", "again"], ["who"], ["it is long ago"]]
FOLLOWING = ["oh no not again", None, "  "]
VALUES = [0.4, 0.0, 1.0]


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    overlap_metric.register()
    monkeypatch.chdir(tmp_path)


def faceted() -> dialeval.registry.interface.Metric:
    return dialeval.load("faceted")


def test_a_missing_input_is_a_missing_aspect() -> None:
    scores = faceted().score(RESPONSES, CONTEXTS, following=FOLLOWING)
    assert scores.values.tolist() == VALUES
    assert scores.aspects["words"].tolist() == [2.0, 1.0, 4.0]
    assert scores.aspects["reaction"] == pytest.approx([4.0, math.nan, math.nan], nan_ok=True)
    assert scores.to_dict()["aspects"] == {"words": [2.0, 1.0, 4.0], "reaction": [4.0, None, None]}
    without = faceted().score(RESPONSES, CONTEXTS)
    assert without.to_dict()["aspects"] == {"words": [2.0, 1.0, 4.0], "reaction": [None, None, None]}
    assert dialeval.load("overlap").score(RESPONSES, CONTEXTS).aspects == {}
    assert "aspects" not in dialeval.load("overlap").score(RESPONSES, CONTEXTS).to_dict()


def test_what_a_metric_must_keep_to() -> None:
    class Talkative(overlap_metric.Faceted):
        def __init__(self, given: dict[str, Any]) -> None:
            super().__init__()
            self.given = given

        def judge(self, exchanges: Any, *, progress: bool = False) -> Judged:
            return replace(super().judge(exchanges), aspects=self.given)

    refused(RuntimeError, "wit", lambda: Talkative({"wit": np.zeros(3)}).score(RESPONSES, CONTEXTS))
    refused(RuntimeError, "words", lambda: Talkative({"words": np.zeros(2)}).score(RESPONSES, CONTEXTS))
    refused(ValueError, "aspects", MetricInfo, "x", "X", Level.SYSTEM, True, (0, 1), "", aspects=("a",))


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
    refused(ValueError, "DataFrame", faceted().score_dialogues, pd.DataFrame({"dialogue": dialogues}))
    assert faceted().score_dialogues(pd.Series(dialogues)).values == pytest.approx([0.5, 0.0])  # type: ignore[arg-type]
    scores = faceted().score_dialogues(dialogues)
    # 2 of 3 words and 1 of 3; then none of 2. Words 3 and 1 of the judged turns; then 1.
    assert scores.values == pytest.approx([0.5, 0.0])
    assert scores.aspects["words"].tolist() == [2.0, 1.0]
    assert np.isnan(scores.aspects["reaction"]).all()
    sided = Sided().score_dialogues(dialogues, speakers=[["A", "B", "A"], []])
    assert sided.values.tolist() == [3.0, 2.0]
    assert sided.to_dict()["aspects"] == {"first": [3.0, None]}


def write_rows() -> list[dict[str, Any]]:
    rows = [
        {"context": context, "response": response, "following": after, "id": str(number)}
        for number, (context, response, after) in enumerate(zip(CONTEXTS, RESPONSES, FOLLOWING, strict=True))
    ]
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return rows


def score(output: str, *options: str, metric: str = "faceted") -> str:
    result = CliRunner().invoke(build_app(), ["score", "-m", metric, "-i", "rows.jsonl", "-o", output, *options])
    assert result.exit_code == 0, result.output
    return result.stderr


def test_the_command_writes_a_column_for_every_aspect() -> None:
    write_rows()
    printed = score("scores.jsonl", metric="overlap,faceted")
    first = json.loads(Path("scores.jsonl").read_text(encoding="utf-8").splitlines()[0])
    wanted = {"overlap": 0.4, "faceted": 0.4, "faceted.words": 2.0, "faceted.reaction": 4.0}
    assert list(first.items())[-4:] == list(wanted.items())
    assert [line.split()[:2] for line in printed.splitlines()[3:5]] == [["words", "2.33333"], ["reaction", "4"]]
    score("scores.csv", "--texts", "none")
    assert Path("scores.csv").read_text().splitlines() == [
        "row,id,system,language,faceted,faceted.words,faceted.reaction",
        "0,0,,,0.4,2.0,4.0",
        "1,1,,,0.0,1.0,",
        "2,2,,en,1.0,4.0,",
    ]
    score("scores.parquet")
    frame = pd.read_parquet("scores.parquet")
    assert frame["faceted.words"].tolist() == [2.0, 1.0, 4.0]
    assert frame["faceted.reaction"].dtype == np.float64
