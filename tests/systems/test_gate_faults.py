"""What a mean hides: rare faults, aspects that fell, and whether there are rows enough to see a loss."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dialeval
from dialeval.pytest_plugin import assert_not_worse
from dialeval.systems import gate
from number_metrics import Manners, Number, noisy, rows, said
from refusals import refused
from shell import invoke, write_rows

OLD = noisy(3, 150)


def few(count: int) -> Any:
    return np.where(np.arange(len(OLD)) < count, 0.01, 1.0)


def test_faults_are_told_on_a_pass_and_counted_beside_those_before() -> None:
    new = said(OLD, civil=few(4))
    outcome = gate(new, said(OLD), Manners(), margin=0.1)
    assert (outcome.verdict, outcome.value_verdict) == ("passed", "passed")
    assert "4 replies are rude (0 before)" in outcome.losses
    assert outcome.losses in outcome.sentence
    assert (outcome.faults[0].n_new, outcome.faults[0].n_baseline, outcome.faults[0].n_newly) == (4, 0, 4)
    for report in (str(outcome), outcome.to_markdown(), outcome.to_junit(), outcome.report):
        assert "4 replies are rude" in report
    with pytest.warns(UserWarning, match="4 replies are rude"):
        assert_not_worse(new, said(OLD), Manners(), margin=0.1)
    assert "1 reply is rude (0 before)" in gate(said(OLD, civil=few(1)), said(OLD), Manners(), margin=0.1).losses


@pytest.mark.parametrize(("before", "now", "told"), [(4, 4, False), (4, 5, False), (4, 3, False), (4, 14, True)])
def test_as_many_faults_as_before_are_not_told(before: int, now: int, told: bool) -> None:
    both = [said(OLD, civil=np.roll(few(count), 20 * index)) for index, count in enumerate((now, before))]
    outcome = gate(*both, Manners(), margin=0.1)
    assert outcome.faults[0].told is told
    assert ("rude" in outcome.sentence) is told
    assert f"| {now} | {before} |" in outcome.to_markdown()


@pytest.mark.parametrize(
    ("limit", "rude", "verdict"),
    [(0, 1, "worse"), (0, 0, "passed"), (4, 4, "passed"), (3, 4, "worse"), ("2%", 3, "passed"), ("2%", 4, "worse"),
     (0.02, 3, "passed"), (0.02, 4, "worse"), ("3", 4, "worse"), ("0.02", 4, "worse"), (1.0, 4, "worse"),
     (1, 1, "passed")],
)  # fmt: skip
def test_rows_below_a_threshold_are_limited(limit: Any, rude: int, verdict: str) -> None:
    outcome = gate(said(OLD, civil=few(rude)), said(OLD), Manners(), margin=0.1, max_rows={"civil<0.2": limit})
    assert outcome.verdict == verdict
    assert (outcome.row_counts[0].n_new, outcome.row_counts[0].n_rows_new) == (rude, 150)
    assert (f"{rude} of 150 rows" in outcome.sentence) is (verdict == "worse")
    assert outcome.value_verdict == "passed"


def test_a_limit_counts_rows_without_a_partner_and_holds_where_the_rest_is_undecided() -> None:
    new = said(OLD, civil=few(2))
    for row in new[:3]:
        row["id"] = f"other {row['id']}"
    limit = {"civil<0.2": 1}
    assert gate(new, said(OLD), Manners(), margin=0.1, max_rows=limit).verdict == "worse"
    short = gate(new[:10], said(OLD)[:10], Manners(), margin=0.1, max_rows=limit)
    assert (short.verdict, short.value_verdict) == ("worse", "undecided")
    assert gate(new[:10], said(OLD)[:10], Manners(), margin=0.1, max_rows={"civil<0.2": 2}).verdict == "undecided"
    assert gate(new, said(OLD), Manners(), margin=0.1, max_rows={"number<-99": 0, "dry<1": 0}).verdict == "passed"


@pytest.mark.parametrize(
    ("fall", "spread", "margin", "verdict"),
    [(0.65, 0.1, 0.05, "worse"), (0.0, 0.05, 0.05, "passed"), (0.04, 0.2, 0.05, "not shown"), (0.0, 0.0, 0, "passed")],
)
def test_an_aspect_has_a_margin_of_its_own(fall: float, spread: float, margin: float, verdict: str) -> None:
    steady = 0.9 - fall + spread * np.array(noisy(0, 150, 9))
    outcome = gate(said(OLD, steady=steady), said(OLD), Manners(), margin=0.1, min_aspects={"steady": -margin})
    assert (outcome.verdict, outcome.value_verdict) == (verdict, "passed")
    (steady_one,) = [change for change in outcome.aspects if change.aspect == "steady"]
    assert steady_one.verdict == verdict
    assert ("steady" in outcome.sentence) is (verdict != "passed")
    assert outcome.sentence.startswith(verdict)


def test_an_aspect_with_a_margin_that_no_row_has_is_not_shown() -> None:
    outcome = gate(said(OLD), said(OLD), Manners(), margin=0.1, min_aspects={"dry": -0.1})
    assert outcome.verdict == "not shown"
    assert "dry" in outcome.sentence
    json.dumps(outcome.to_dict(), allow_nan=False)


def test_aspects_that_fell_are_told_and_noise_is_not() -> None:
    fell = gate(said(OLD, steady=0.25), said(OLD), Manners(), margin=0.1)
    assert fell.losses == "But steady fell by 0.65."
    assert not gate(said(OLD, steady=0.9 - 2.8e-6), said(OLD), Manners(), margin=0.1).losses
    told = 0
    for seed in range(100):
        both = [said(OLD, civil=0.5 + 0.1 * np.array(noisy(0, 150, 2 * seed + side)),
                     steady=0.5 + 0.1 * np.array(noisy(0, 150, 300 + 2 * seed + side))) for side in (0, 1)]  # fmt: skip
        told += bool(gate(*both, Manners(), margin=0.1, resamples=400).losses)
    assert told <= 8  # five in a hundred, both directions taken together


def test_the_weakest_aspects_are_the_worst_ones_whichever_way_is_better() -> None:
    class Harms(Manners):
        info = replace(Manners.info, higher_is_better=False)

    for metric, weakest in ((Manners(), "steady 0.90, civil 1.00"), (Harms(), "civil 1.00, steady 0.90")):
        turned = 1 if metric.info.higher_is_better else -1
        outcome = gate(said([value - turned for value in OLD]), said(OLD), metric, margin=0.1, resamples=200)
        assert weakest in outcome.to_markdown()


def test_how_many_contexts_a_margin_needs() -> None:
    """With as many as the gate asks for, equal systems pass about four times in five."""
    draws = np.random.default_rng(0)

    def equal(count: int) -> Any:
        both = [rows(draws.normal(3, 1, count).tolist()) for _ in "ab"]
        return gate(*both, Number(), margin=0.25, resamples=400)

    unsure = next(outcome for outcome in (equal(60) for _ in range(20)) if outcome.verdict == "not shown")
    spread = math.sqrt(2 / 60)
    expected = 60 * ((1.645 + 0.842) * spread / 0.25) ** 2
    assert unsure.contexts_needed == pytest.approx(expected, rel=0.4)
    assert f"about {unsure.contexts_needed} contexts; you have 60" in unsure.sentence
    assert unsure.margin_shown == pytest.approx(2.487 * spread, rel=0.2)
    assert 0.65 < np.mean([equal(round(expected)).passed for _ in range(60)]) < 0.95
    assert gate(rows(OLD), rows(noisy(3, 150, 8)), Number(), margin=0, resamples=400).contexts_needed is None


def test_limits_that_cannot_be_asked_are_refused() -> None:
    def ask(**limits: Any) -> Any:
        return lambda: gate(said(OLD), said(OLD), Manners(), margin=0.1, **limits)

    for limit in (-1, 1.5, "x", "3.5", "200%", float("nan")):
        refused(ValueError, "civil<0.2", ask(max_rows={"civil<0.2": limit}))
    refused(ValueError, "kind", ask(max_rows={"kind<0.2": 0}))
    refused(ValueError, "kind", ask(min_aspects={"kind": -0.1}))
    for least in (0.1, float("nan"), "x"):
        refused(ValueError, "civil", ask(min_aspects={"civil": least}))


@pytest.mark.parametrize(
    ("given", "code"),
    [("--max=letters<3=0", 1), ("--max=letters<3=1", 0), ("--max=letters<3=none", 2), ("--max=letters=0", 2),
     ("--min-aspect=x=-1", 2), ("--min-aspect=x", 2)],
)  # fmt: skip
def test_the_command_takes_limits(tmp_path: Path, given: str, code: int) -> None:
    old = [{"context": [f"{n}"], "response": "oooooooooo", "id": f"{n}"} for n in range(40)]
    new = [{**row, "response": "o"} if row["id"] == "5" else row for row in old]
    files = [write_rows(tmp_path / f"{name}.jsonl", side) for name, side in (("new", new), ("old", old))]
    invoke("gate", files[0], "-b", files[1], "--margin", 1, "-m", "python:number_metrics:letters", given, code=code)


def test_a_gate_that_cannot_tell_has_another_exit_code_than_one_that_is_worse(tmp_path: Path) -> None:
    values = {"old": noisy(3, 40), "same": noisy(3, 40, 1), "bad": noisy(0, 40, 1), "few": noisy(3, 9)}
    files = [str(write_rows(tmp_path / f"{name}.jsonl", rows(made))) for name, made in values.items()]
    for new, code in zip(files, (0, 5, 1, 4), strict=True):
        invoke("gate", new, "-b", files[0], "-m", "python:number_metrics:value", "--margin", "0.1", code=code)


@pytest.mark.slow
@pytest.mark.encoder
def test_insults_in_a_good_system_do_not_pass_without_a_word() -> None:
    ask = [f"How was your {what} in {place}?" for what in ("trip", "exam", "dinner", "party", "job", "dog", "new flat",
           "concert", "weekend", "book") for place in ("Rome", "Oslo", "Ghent")]  # fmt: skip
    civil = [{"context": [text], "response": "It was great, thanks for asking!", "id": text} for text in ask]
    new = [{**row, "response": "You are such an idiot."} if index < 4 else row for index, row in enumerate(civil)]
    judge = dialeval.load("judge")
    outcome = gate(new, civil, judge, margin=0.3, resamples=400)
    assert outcome.value_verdict == "passed"
    assert "4 replies are rude (0 before)" in outcome.sentence
    assert gate(new, civil, judge, margin=0.3, resamples=400, max_rows={"respectful<0.5": 0}).verdict == "worse"
    talks = [[{"dialogue": [row["id"], row["response"]], "id": row["id"]} for row in side] for side in (new, civil)]
    whole = gate(*talks, judge, margin=0.9, resamples=400, level="dialogue")
    assert "4 conversations have a rude reply (0 before)" in whole.sentence
    shares = gate(new, civil, judge, margin=0.9, resamples=400, scale="human_percentile")
    assert "4 replies are rude (0 before)" in shares.sentence
