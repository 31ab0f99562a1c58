"""Aspects of metrics in the harness, and what metrics are given: facts, speakers, what was said next."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import overlap_metric
from dialeval.agreement.results import Report
from dialeval.agreement.runs import run
from dialeval.agreement.settings import Settings
from dialeval.core.exchange import Exchange
from dialeval.registry.interface import Judged, Level, MetricInfo
from dialeval.statistics.correlation import spearman
from shell import write_rows
from toy_benchmark import rated_rows

#: Every other row says what the user said next.
ROWS = [{**row, "following": f"so {'so ' * (n % 7)}" if n % 2 else None} for n, row in enumerate(rated_rows(12))]


class Noting(overlap_metric.Faceted):
    """Faceted, with a note of what it was given."""

    def __init__(self) -> None:
        super().__init__()
        self.given: list[Exchange] = []

    def judge(self, exchanges: Sequence[Exchange], *, progress: bool = False) -> Judged:
        self.given += exchanges
        judged = super().judge(exchanges)
        return replace(judged, values=judged.aspects["words"] / 2)


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    return write_rows(tmp_path / "toy.jsonl", ROWS)


def measured(path: Path | str, metric: Any, values: Path | None = None, **settings: Any) -> Report:
    return run([metric], [path], settings=Settings(resamples=200, **settings), values=values)


def table(report: Report) -> dict[tuple[str, str], Any]:
    return {(result.aspect, result.metric_aspect): result for result in report.aspects}


def test_every_aspect_of_both_sides(toy: Path, tmp_path: Path) -> None:
    report = measured(toy, Noting(), tmp_path / "values", following=True)
    cells = table(report)
    # All aspects of the benchmark, though only its main one is asked for on the leaderboard.
    assert list(cells) == [(own, result) for own in ("overall", "grammar") for result in ("", "words", "reaction")]
    words = np.array([len(str(row["response"]).split()) for row in ROWS], dtype=float)
    people = {name: np.array([np.mean(row["ratings"][name]) for row in ROWS]) for name in ("overall", "grammar")}
    for name, scores in people.items():
        assert cells[name, "words"].value == pytest.approx(spearman(words, scores).value)
        assert cells[name, ""].value == pytest.approx(cells[name, "words"].value)
    said = np.array([n % 2 == 1 for n in range(len(ROWS))])
    after = np.array([1.0 + n % 7 for n in range(len(ROWS))])
    reaction = cells["overall", "reaction"]
    assert reaction.value == pytest.approx(spearman(after[said], people["overall"][said]).value)
    assert (reaction.n, reaction.n_excluded) == (36, 36)
    assert reaction.low < reaction.value < reaction.high
    assert reaction.signature.endswith("|metric_aspect:reaction")
    assert "|inputs:following|" in reaction.signature
    leaders = [result for result in report.results if result.level == "turn" and result.statistic == "spearman"]
    assert [(result.aspect, result.metric_aspect, result.value) for result in leaders] == [
        ("overall", "", cells["overall", ""].value)
    ]

    again = measured(toy, Unwilling(), tmp_path / "values", following=True)
    assert {key: result.value for key, result in table(again).items()} == {
        key: result.value for key, result in cells.items()
    }


def test_an_aspect_has_the_direction_of_its_metric(toy: Path) -> None:
    class Turned(Noting):
        info = replace(Noting.info, higher_is_better=False)

    plain, turned = (table(measured(toy, metric())) for metric in (Noting, Turned))
    for question, result in plain.items():
        assert turned[question].value == pytest.approx(-result.value, nan_ok=True)
        assert (result.higher_is_better, turned[question].higher_is_better) == (True, False)


class Unwilling(Noting):
    """A metric that must not be asked: everything is kept."""

    def judge(self, exchanges: Sequence[Exchange], *, progress: bool = False) -> Judged:
        raise AssertionError


def test_what_was_said_next_is_given_only_on_request(toy: Path, tmp_path: Path) -> None:
    metric = Noting()
    report = measured(toy, metric, tmp_path / "values")
    assert {exchange.following for exchange in metric.given} == {None}
    assert math.isnan(table(report)["overall", "reaction"].value)
    assert "inputs" not in report.results[0].signature
    # Values with and without it are kept apart.
    metric = Noting()
    measured(toy, metric, tmp_path / "values", following=True)
    assert [exchange.following for exchange in metric.given[:3]] == [None, "so so ", None]


class Halves(overlap_metric.Overlap):
    """Aspects of whole dialogues: words of each of two speakers."""

    info = MetricInfo("halves", "Halves", Level.TURN, True, (0, 99), "", dialogue_aspects=("user", "system"))

    def judge_dialogues(self, dialogues: Any, *, progress: bool = False) -> Judged:
        def words(dialogue: Any, speaker: str) -> float:
            said = zip(dialogue.speakers, dialogue.turns, strict=True)
            return float(sum(len(turn.split()) for who, turn in said if who == speaker))

        columns = {name.lower(): np.array([words(result, name) for result in dialogues]) for name in ("User", "System")}
        return Judged(columns["user"] + columns["system"], aspects=columns)


def test_dialogues_come_with_their_speakers(tmp_path: Path) -> None:
    turns = [["hm " * (number + 1), "yes " * (9 - number), "ok"] for number in range(8)]
    rows = [
        {"id": str(n), "dialogue": talk, "speakers": ["User", "System", "User"], "scores": {"overall": n}}
        for n, talk in enumerate(turns)
    ]
    report = measured(write_rows(tmp_path / "toy.jsonl", rows), Halves())
    cells = {aspect: result.value for (_, aspect), result in table(report).items()}
    assert cells == {"": pytest.approx(math.nan, nan_ok=True), "user": pytest.approx(1), "system": pytest.approx(-1)}
