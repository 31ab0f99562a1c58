"""Gate, ranking and scores of whole conversations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dialeval.readers import Source
from dialeval.statistics.paired_tests import unpaired_mean_test
from dialeval.systems import gate, rank
from number_metrics import Distance, Number
from shell import invoke, read_rows, write_rows


def talks(
    mean: float, count: int = 60, *, spread: float = 1.0, ids: bool = False, **beside: Any
) -> list[dict[str, Any]]:
    """Conversations of four turns; a metric that reads numbers gives each turn after the first what it says."""
    rows = []
    random = np.random.default_rng([count, len(beside)])
    for index, value in enumerate(mean + spread * random.standard_normal(count)):
        row = {"dialogue": ["0", *(f"{value + shift:.6f}" for shift in (-0.5, 0.0, 0.5))], **beside}
        rows.append({**row, "id": f"talk {index}"} if ids else row)
    return rows


@pytest.mark.parametrize(
    ("new", "baseline", "verdict"), [(1.0, 0.0, "passed"), (-2.0, 0.0, "worse"), (0.0, 0.1, "not shown")]
)
def test_other_conversations_are_compared_as_groups(new: float, baseline: float, verdict: str) -> None:
    outcome = gate(talks(new), talks(baseline, 80), Number(), margin=0.1, level="dialogue")
    assert (outcome.verdict, outcome.paired_by, outcome.n_contexts) == (verdict, "nothing", 60)
    assert outcome.at_least < outcome.gain < outcome.at_most
    assert outcome.gain == pytest.approx(new - baseline, abs=0.6)
    assert "conversations" in outcome.sentence
    json.dumps(outcome.to_dict(), allow_nan=False)
    assert outcome.worst
    assert all(np.isnan(row.baseline) for row in outcome.worst)


def test_conversations_that_share_their_ids_are_paired() -> None:
    old = talks(0.0, 40, spread=5.0, ids=True)
    new = [{**row, "dialogue": ["0", *(f"{float(turn) + 0.2:.6f}" for turn in row["dialogue"][1:])]} for row in old]
    paired = gate(new, list(reversed(old)), Number(), margin=0.0, level="dialogue")
    assert (paired.verdict, paired.paired_by, paired.n_rows) == ("passed", "id", 40)
    assert paired.gain == pytest.approx(0.2)
    # The same without ids: the spread between conversations hides the gain.
    without = [[{**row, "id": None} for row in side] for side in (new, old)]
    assert gate(*without, Number(), margin=0.0, level="dialogue").verdict == "not shown"
    assert gate(new, old, Distance(), margin=0.0, level="dialogue").verdict == "worse"


def test_a_gate_is_undecided_where_conversations_are_missing() -> None:
    old = talks(0.0, 60, ids=True)
    for shared, verdict in ((60, "passed"), (48, "undecided"), (19, "undecided"), (0, "passed")):
        other = [{**row, "id": f"other {row['id']}"} for row in talks(9.0, 60 - shared, ids=True)]
        new = [*old[:shared], *other]
        outcome = gate(new, old, Number(), margin=0.5, level="dialogue", resamples=200)
        assert (outcome.verdict, outcome.paired_by) == (verdict, "id" if shared else "nothing")
        assert (f"{shared} of 60" in outcome.sentence) is (verdict == "undecided")
    silent = [{**row, "dialogue": ["0", ""]} if index < 7 else row for index, row in enumerate(talks(1.0, 60))]
    assert gate(silent, talks(0.0, 60), Number(), margin=0.1, level="dialogue", resamples=200).verdict == "undecided"


@pytest.mark.parametrize("ids", [True, False])
@pytest.mark.parametrize("german", [0, 9, 60])
@pytest.mark.parametrize("side", [0, 1])
def test_rows_that_were_skipped_for_their_language_count_as_not_compared(side: int, german: int, ids: bool) -> None:
    reply = "Ich bin heute nicht zu Hause und das ist schade."
    sides = [[{"dialogue": ["0", str(index % 7)], **({"id": f"{index}"} if ids else {})} for index in range(100)]] * 2
    sides[side] = [{**row, "dialogue": [reply, reply]} for row in sides[side][:german]] + sides[side][german:]
    read = [Source(rows, other_languages="skip") for rows in sides]
    outcome = gate(*read, Number(), margin=0.9, level="dialogue", resamples=200)
    assert (outcome.verdict, outcome.n_total) == ("undecided" if german > 10 else "passed", 100)
    told = [message for message in outcome.warnings if f"{german} rows in other languages left out" in message]
    assert [message.split(":")[0] for message in told] == ([("the new rows", "the baseline")[side]] if german else [])


@pytest.mark.parametrize("metric", [Number(), Distance()])
def test_the_gate_names_the_weakest_turn_of_conversations_that_fell(metric: Number) -> None:
    turned = 1 if metric.info.higher_is_better else -1
    old = [{"id": f"talk {index}", "dialogue": ["0", "1", "1", "1"]} for index in range(40)]
    new = [*old[:7], {**old[7], "dialogue": ["0", f"{1 - 8 * turned}", "", "1"]}, *old[8:]]
    outcome = gate(new, old, metric, margin=9, level="dialogue", resamples=200)
    (worst,) = json.loads(json.dumps(outcome.to_dict(), allow_nan=False))["worst"]
    assert (worst["row"], worst["weakest_turn"], worst["response"]) == (7, 2, f"{1 - 8 * turned}")
    assert worst["turns"] == [None, 1 - 8 * turned, None, 1]
    assert "turn 2" in outcome.to_markdown()


def test_conversations_of_logs_without_ids_are_not_paired_by_their_place() -> None:
    logs = [[{"messages": [{"role": "user", "content": "0"}, {"role": "assistant", "content": row["dialogue"][2]}]}
             for row in talks(mean, 40)] for mean in (1.0, 0.0)]  # fmt: skip
    assert gate(*logs, Number(), margin=0.5, level="dialogue", resamples=200).paired_by == "nothing"


def test_systems_are_ranked_by_their_conversations(tmp_path: Path) -> None:
    both = [*talks(0.0, system="old"), *talks(0.05, system="same"), *talks(3.0, 30, system="new")]
    ranking = rank(both, Number(), level="dialogue")
    assert {standing.system: standing.cluster for standing in ranking.standings} == {"new": 1, "same": 2, "old": 2}
    assert ranking.standings[0].win_rate > 0.9
    assert (ranking.standings[0].n_rows, ranking.standings[0].n_contexts) == (30, 30)
    frame = pd.DataFrame(both)
    assert rank(frame, Number(), level="dialogue").to_dict() == ranking.to_dict()


def test_the_unpaired_test_keeps_its_level() -> None:
    draws = np.random.default_rng(1).standard_normal((300, 50))
    p = [unpaired_mean_test(values[:20], values[20:], resamples=200).p for values in draws]
    assert 0.02 < np.mean(np.array(p) < 0.05) < 0.09
    assert unpaired_mean_test(draws[0] + 3, draws[1], resamples=200).p < 0.02


@pytest.mark.slow
@pytest.mark.encoder
def test_the_commands_read_conversations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    good = ("Yes, I have a small dog.", "In a village by the sea.")
    bad = ("The library closes at six on Fridays.",) * 2
    for name, (first, second) in (("good", good), ("bad", bad)):
        replies = (("user", "Do you have a pet?"), ("assistant", first), ("user", "And where?"), ("assistant", second))
        messages = [{"role": role, "content": text} for role, text in replies]
        write_rows(f"{name}.jsonl", [{"messages": messages}] * 30)
    level = ["--level", "dialogue"]
    invoke("rank", "good.jsonl", "bad.jsonl", *level, "--resamples", 200, "--json", "ranking.json")
    assert json.loads(Path("ranking.json").read_text())["standings"][0]["system"] == "good"
    for new, old, code in (("good", "bad", 0), ("bad", "good", 1)):
        invoke("gate", f"{new}.jsonl", "-b", f"{old}.jsonl", "--margin", "0.01", *level, "--resamples", 200, code=code)
    score = ["score", "-m", "judge,deb", "-i", write_rows("few.jsonl", read_rows("bad.jsonl")[:3]), "--per-turn"]
    invoke(*score, "-o", "turns.jsonl", code=2)
    for kind in ("jsonl", "csv", "parquet"):
        invoke(*score, "-o", f"turns.{kind}", *level, "--explain", "short")
    first = read_rows("turns.jsonl")[0]
    assert [value is not None for value in first["judge.turns"]] == [False, True, False, True]
    assert [value is not None for value in first["deb.turns"]] == [False, True, True, True]
    low = int(np.nanargmin(np.array(first["judge.turns"], dtype=float)))
    assert f"turn {low + 1}" in first["judge.why"]
    assert json.loads(pd.read_csv("turns.csv")["judge.turns"][0]) == first["judge.turns"]
    assert pd.read_parquet("turns.parquet")["judge.turns"][0][1] == pytest.approx(first["judge.turns"][1])
