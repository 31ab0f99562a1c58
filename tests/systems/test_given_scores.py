"""Statistics for anybody's scores, aspects of systems, and files with a column per bot."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dialeval
from dialeval.systems import rank
from number_metrics import Distance, Manners, Number, noisy, rows, said
from refusals import refused
from shell import invoke, write_rows

BASE = np.array(noisy(3, 80, 1))
SCORES = {"good": BASE + 1 + 0.1 * np.array(noisy(0, 80, 2)), "also": BASE + 1 + 0.1 * np.array(noisy(0, 80, 3)),
          "bad": BASE}  # fmt: skip


def judged(per_context: int = 1) -> list[dict[str, Any]]:
    return [
        {"question": f"question {index // per_context}", "bot": name, "gpt": value, "length": 3}
        for name, values in SCORES.items()
        for index, value in enumerate(values)
    ]


NAMED = {"context": "question", "system": "bot"}


@pytest.mark.parametrize("per_context", [1, 4])
def test_scores_of_another_judge_are_ranked_as_replies_are(per_context: int) -> None:
    replies = [
        row for name, values in SCORES.items()
        for row in rows(values.tolist(), ids=False, system=name, per_context=per_context)
    ]  # fmt: skip
    expected = rank(replies, Number(), resamples=500)
    ranking = rank(pd.DataFrame(judged(per_context)), values="gpt", columns=NAMED, resamples=500)
    for mine, theirs in zip(ranking.standings, expected.standings, strict=True):
        assert (mine.system, mine.cluster, mine.n_contexts) == (theirs.system, theirs.cluster, theirs.n_contexts)
        assert mine.low == pytest.approx(theirs.low, abs=1e-4)
    for test, other in zip(ranking.pair_tests, expected.pair_tests, strict=True):
        assert (test.first, test.p, test.p_adjusted) == (other.first, other.p, other.p_adjusted)
    assert not ranking.warnings
    turned = rank(judged(per_context), values="gpt", columns=NAMED, lower_is_better=["gpt"], resamples=500)
    assert turned.of("gpt")[0].system == "bad"
    assert turned.of("gpt")[0].cluster == 1


def test_scores_in_files_and_frames_of_their_own(tmp_path: Path) -> None:
    ranking = rank(files_of_scores(tmp_path), values=[], resamples=500)
    assert [standing.cluster for standing in ranking.of("gpt")] == [1, 1, 2]
    assert "contexts are not known" in ranking.warnings[0]
    contexts = [f"{n}" for n in range(80)]
    frames = {name: pd.DataFrame({"context": contexts, "gpt": values}) for name, values in SCORES.items()}
    assert rank(frames, values="gpt", resamples=500).of("gpt")[2].system == "bad"


def test_how_large_a_difference_could_be_seen() -> None:
    """With differences of the size that is named, about four tests in five find it."""
    draws = np.random.default_rng(0)

    def frame(gap: float) -> list[dict[str, Any]]:
        return [{"id": index, "system": name, "v": value} for name, mean in (("a", gap), ("b", 0.0))
                for index, value in enumerate(draws.normal(mean, 1, 100))]  # fmt: skip

    (test,) = rank(frame(0.0), values="v", resamples=200).pair_tests
    expected = (1.96 + 0.84) * np.sqrt(2 / 100)
    assert test.seen_from == pytest.approx(expected, rel=0.2)
    seen = [rank(frame(expected), values="v", resamples=400).pair_tests[0].p < 0.05 for _ in range(100)]
    assert 0.68 < np.mean(seen) < 0.92


def test_scores_that_cannot_be_ranked_are_refused() -> None:
    table = judged()
    refused(ValueError, "question", rank, table, values="gpt", columns={"system": "bot", "context": "nowhere"})
    refused(ValueError, "system", rank, table, values="gpt", columns={"context": "question"})
    refused(ValueError, "(values)", rank, table, columns=NAMED, resamples=100)
    refused(ValueError, "gtp", rank, table, values="gtp", columns=NAMED)
    refused(ValueError, "gtp", rank, table, values="gpt", columns=NAMED, lower_is_better=["gtp"])
    refused(ValueError, "response", rank, table, values="gpt", columns={**NAMED, "response": "x"})
    refused(ValueError, "41 of 80", rank, table[41:], values="gpt", columns=NAMED)
    assert rank(table[41:], values="gpt", columns=NAMED, allow_missing=True, resamples=100).warnings


def test_frames_of_scores_are_compared() -> None:
    new, old = ([{"question": row["question"], "gpt": row["gpt"]} for row in judged() if row["bot"] == name]
                for name in ("good", "bad"))  # fmt: skip
    (comparison,) = dialeval.compare(pd.DataFrame(new), old[::-1], columns={"context": "question"}, resamples=500)
    assert (comparison.n_rows, comparison.n_contexts, comparison.verdict) == (80, 80, "first is higher")
    assert comparison.difference == pytest.approx((SCORES["good"] - SCORES["bad"]).mean())
    assert "first is higher" in str(comparison)
    turned = dialeval.compare(new, old, columns={"context": "question"}, lower_is_better=["gpt"], resamples=500)
    assert turned[0].verdict == "second is better"


def test_columns_of_scores_that_are_not_there_are_refused() -> None:
    table = pd.DataFrame({"key": ["a", "b"], "mine": [1.0, 2.0]})
    refused(ValueError, "'kye'", dialeval.compare, table, table, columns={"id": "kye"}, resamples=100)
    refused(ValueError, "'value'", dialeval.compare, table, table, columns={"value": "mine"}, resamples=100)
    scores = Number().score(rows([1.0, 2.0]))
    refused(ValueError, "leave it out", dialeval.compare, scores, scores, columns={"id": "key"}, resamples=100)


@pytest.mark.parametrize("cell", ["0,{}", "1.000,{}", "-1,{}"])
def test_a_decimal_comma_is_told(cell: str, tmp_path: Path) -> None:
    table = tmp_path / "scores.csv"
    table.write_text("id,mine,other\n" + "".join(f'{n},"{cell.format(n)}",{n}\n' for n in range(20)))
    refused(ValueError, "line 2", dialeval.compare, table, table, resamples=100)
    refused(ValueError, "point", dialeval.compare, table, table, resamples=100)


def test_exact_decimals_are_scores() -> None:
    table = [{"id": n, "mine": Decimal(n)} for n in range(20)]
    assert dialeval.compare(table, table, resamples=100)[0].mean_first == 9.5


def files_of_scores(folder: Path) -> list[Path]:
    return [
        write_rows(folder / f"{name}.jsonl", [{"id": str(index), "gpt": value} for index, value in enumerate(values)])
        for name, values in SCORES.items()
    ]


def test_the_command_ranks_scores(tmp_path: Path) -> None:
    pd.DataFrame(judged()).to_csv(tmp_path / "judged.csv", index=False)
    file, named = f"scores:{tmp_path / 'judged.csv'}", ["--columns", "context=question,system=bot"]
    invoke("rank", file, *named, "--resamples", 200, "--json", tmp_path / "out.json")
    standings = json.loads((tmp_path / "out.json").read_text())["standings"]
    assert {standing["metric"] for standing in standings} == {"gpt", "length"}
    chosen = invoke("rank", f"{file}#gpt", *named, "--resamples", 200, "--lower-is-better", "gpt")
    assert "gpt: bad is best" in chosen.output
    assert "length" not in chosen.output
    files = [f"scores:{file}" for file in files_of_scores(tmp_path) if "also" not in file.name]
    assert "gpt: good is best" in invoke("rank", *files).output
    assert "gpt: x is best" in invoke("rank", f"x={files[0]}", files[1]).output
    invoke("rank", files[0], tmp_path / "bad.jsonl", code=2)
    invoke("rank", files[0], "scores:none.jsonl", code=2)
    invoke("rank", *files, "--json", tmp_path / "bad.jsonl", code=2)


@pytest.mark.parametrize("metric", [Number(), Distance()])
def test_a_file_with_a_column_for_each_bot_is_ranked(tmp_path: Path, metric: Number) -> None:
    replies = {name: [f"{value:.6f}" for value in values] for name, values in SCORES.items()}
    table = pd.DataFrame({"question": [f"question {n}" for n in range(80)], **replies}).to_dict("records")
    pd.DataFrame(table).to_csv(tmp_path / "bots.csv", index=False)
    tables: list[Any] = [tmp_path / "bots.csv", pd.read_csv(tmp_path / "bots.csv", dtype=str), table]
    for kind in tables:
        ranking = rank(kind, metric, reply_columns=list(SCORES), columns={"context": "question"}, resamples=200)
        assert {standing.system for standing in ranking.standings} == set(SCORES)
        assert ranking.pair_tests[0].n_contexts == 80
        assert (ranking.standings[0].system == "bad") is isinstance(metric, Distance)
    refused(ValueError, "reply_columns", rank, {"a": table}, metric, reply_columns=["good", "bad"])


def test_the_command_ranks_the_columns_of_a_file(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    table = [{"question": f"What is {n}?", "bot_a": "a long reply", "bot_b": "short", "bot_x": "?"} for n in range(40)]
    pd.DataFrame(table).to_csv(tmp_path / "bots.csv", index=False)
    asked = ["rank", tmp_path / "bots.csv", "--systems", "bot_a,bot_b", "-m", "python:number_metrics:letters"]
    assert "letters: bot_a is best." in invoke(*asked).output
    assert [message.message for message in caplog.records] == [f"{tmp_path / 'bots.csv'}: ignored columns: bot_x"]
    invoke(*asked, "--systems", "bot_c", code=2)


def test_systems_are_shown_by_aspect() -> None:
    old = noisy(3, 80)
    systems = {"plain": said(old), "rude": said(old, civil=0.4, steady=0.9 - 1e-6)}
    ranking = rank(systems, Manners(), resamples=200)
    of = {standing.system: standing for standing in ranking.standings}
    assert of["rude"].aspects == pytest.approx({"civil": 0.4, "steady": 0.9}, abs=1e-4)
    assert (of["rude"].lower, of["plain"].lower) == (("civil",), ())
    for report in (ranking.to_markdown(), ranking.to_html(), ranking._repr_html_()):
        assert "0.400 ↓" in report
    assert not [block for block in ranking.tables("number") if "civil" in str(block)]
    assert [block for block in ranking.tables("number", aspects=True) if "civil" in str(block)]
    printed = str(ranking)
    assert printed.startswith("number: plain and rude cannot be told apart.")
    assert "│" in printed
