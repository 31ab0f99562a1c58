"""Gate and ranking: pairs, verdicts, files, exit codes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import yaml

import dialeval
from dialeval.core.exchange import Exchange
from dialeval.core.scores import Signature
from dialeval.pytest_plugin import assert_not_worse
from dialeval.readers.pairing import ItemLevel, pair, pair_by_context, read_items
from dialeval.registry.interface import Judged
from dialeval.systems import gate, rank
from number_metrics import Distance, Number, letters, noisy, rows
from refusals import refused
from shell import invoke, write_rows

ROOT = Path(__file__).resolve().parents[2]


# --- pairs -----------------------------------------------------------------------------------------


def test_rows_belong_together_by_id_whatever_their_order() -> None:
    first = read_items(rows([1, 2, 3]))
    second = read_items(list(reversed(rows([10, 20, 30])))[:2])
    pairs = pair(first, second, ("new", "old"))
    replies = [(a, float(second[b].response)) for a, b in zip(pairs.first, pairs.second, strict=True)]
    assert replies == [(1, 20), (2, 30)]
    assert (pairs.by, pairs.alone, pairs.n_groups) == ("id", 1, 2)


def test_without_ids_length_and_contexts_must_be_equal() -> None:
    plain = read_items(rows([1, 2, 3], ids=False))
    assert pair(plain, read_items(rows([4, 5, 6], ids=False)), ("a", "b")).by == "position"
    refused(ValueError, "3 rows", pair, plain, plain[:2], ("a", "b"))
    refused(ValueError, "row 0", pair, plain, plain[::-1], ("a", "b"))


def test_ids_that_cannot_be_trusted_are_refused() -> None:
    first = read_items(rows([1, 2]))
    other = [Exchange(context=("something else",), response="1", id="row-0"), first[1]]
    refused(ValueError, "row-0", pair, first, other, ("a", "b"))
    refused(ValueError, "rows 0 and 1", pair, [first[0], first[0]], first, ("a", "b"))
    renamed = [replace(row, id=f"x{row.id}") for row in first]
    refused(ValueError, "id", pair, first, renamed, ("a", "b"))


def test_replies_of_one_file_belong_together_by_context() -> None:
    first, second = read_items(rows([1, 2, 3, 4], per_context=2)), read_items(rows([5, 6, 7], per_context=2)[::-1])
    pairs = pair_by_context(first, second, ("a", "b"))
    lines = [(first[a].response[0], second[b].response[0]) for a, b in zip(pairs.first, pairs.second, strict=True)]
    assert lines == [("1", "6"), ("2", "5"), ("3", "7")]
    assert (pairs.groups.tolist(), pairs.alone) == ([0, 0, 1], 1)


# --- gate ------------------------------------------------------------------------------------------


def test_the_gate_opens_on_evidence_only() -> None:
    old = noisy(3)
    same = gate(rows(old), rows(old), Number(), margin=0.0)
    assert (same.passed, same.gain, "same values" in same.sentence) == (True, 0, True)
    better = gate(rows([value + 1 for value in old]), rows(old), Number(), margin=0.1)
    assert (better.gain, better.at_least) == (pytest.approx(1), pytest.approx(1))
    worse = gate(rows([value - 1 for value in old]), rows(old), Number(), margin=0.1)
    assert (worse.p, "more than 0.1" in worse.sentence) == (1, True)
    assert better
    assert not worse  # `if dialeval.gate(...)` asks whether it passed
    # Noise of 1 on ten contexts: a loss of 0.1 cannot be ruled out, one of 3 can.
    new, baseline = rows(noisy(3, 10, 1)), rows(noisy(3, 10, 2))
    unsure = gate(new, baseline, Number(), margin=0.1, min_contexts=10)
    assert unsure.verdict == "not shown"
    assert unsure.warnings
    assert gate(new, baseline, Number(), margin=3, min_contexts=10).passed


@pytest.mark.parametrize("size", [10, 30, 80, 200])
@pytest.mark.parametrize("coverage", [0.05, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("loss", [0.0, 1.0])
def test_a_gate_decides_only_on_enough_rows(size: int, coverage: float, loss: float) -> None:
    old = noisy(3, size)
    shared = max(1, round(coverage * size))
    new = rows([value - loss for value in old])
    for row in new[shared:]:
        row["id"] = f"other-{row['id']}"
    outcome = gate(new, rows(old), Number(), margin=0.1, resamples=200)
    enough = shared >= 30 and coverage >= 0.9
    assert outcome.verdict == (("worse" if loss else "passed") if enough else "undecided")
    assert bool(outcome) is (outcome.verdict == "passed")
    assert (outcome.n_rows, outcome.n_total) == (shared, size)


def test_rows_without_a_value_are_not_taken_for_rows_without_a_partner() -> None:
    old = rows(noisy(3, 60))
    silent = [{**row, "response": ""} if index % 4 == 0 else row for index, row in enumerate(old)]
    outcome = gate(silent[:59], old, Number(), margin=0.1, resamples=200)
    assert (outcome.verdict, outcome.n_alone, outcome.n_without_value) == ("undecided", 1, 15)
    assert [warning.split()[0] for warning in outcome.warnings[:2]] == ["1", "15"]


def test_a_loss_that_may_be_chance_is_not_called_sure() -> None:
    old = np.array(noisy(3, 40, 1))
    gaps = np.array(noisy(0, 40, 2))
    gaps += -0.3 - gaps.mean()
    unsure = gate(rows(old + gaps), rows(old), Number(), margin=0.25)
    assert unsure.gain < -0.25 < unsure.at_most
    assert unsure.verdict == "not shown"


def test_the_bound_is_that_of_the_mean_over_contexts() -> None:
    new, old = np.array(noisy(3.2, 400, 1)), np.array(noisy(3, 400, 2))
    outcome = gate(rows(new), rows(old), Number(), margin=0.1, seed=5)
    spread = (new - old).std() / np.sqrt(400)
    assert outcome.at_least == pytest.approx((new - old).mean() - 1.645 * spread, abs=0.02)
    # Four replies to a context that all moved alike are one observation: the bound lies lower.
    gaps = np.repeat(np.array(noisy(0.2, 100, 3)), 4)
    grouped = gate(rows(old + gaps, per_context=4), rows(old, per_context=4), Number(), margin=0.1)
    assert grouped.n_contexts == 100
    apart = gate(rows(old + gaps), rows(old), Number(), margin=0.1)
    assert apart.n_contexts == 400
    assert outcome.at_most == pytest.approx((new - old).mean() + 1.645 * spread, abs=0.02)
    assert grouped.at_least < apart.at_least - 0.05


class Length(Number):
    """How long a reply is, from nothing to a hundred characters."""

    info = replace(Number.info, name="length", range=(0.0, 100.0))

    def judge(self, exchanges: Sequence[Exchange], *, progress: bool = False) -> Judged:
        return Judged(np.array(letters(exchanges), dtype=np.float64))


@pytest.mark.parametrize("level", ["turn", "dialogue"])
@pytest.mark.parametrize("side", [0, 1])
def test_the_gate_warns_of_either_side_by_name(side: int, level: ItemLevel) -> None:
    texts = ["That is a good question and I like it."] * 2
    texts[side] = "Das ist eine gute Frage und ich mag sie."
    both: list[list[dict[str, Any]]] = [
        [{"context": [f"{n}"], "response": text, "dialogue": [f"{n}", text], "id": f"{n}"} for n in range(40)]
        for text in texts
    ]
    outcome = gate(*both, Length(), margin=5, level=level, resamples=200, names=("new.jsonl", "old.jsonl"))
    told = [message.partition(": ") for message in outcome.warnings if "not English" in message]
    assert [name for name, _, _ in told] == [("new.jsonl", "old.jsonl")[side]]
    assert outcome.passed


def test_bad_questions_are_refused() -> None:
    old = rows(noisy(3))
    for wrong in (-0.1, float("nan")):
        refused(ValueError, "margin", gate, old, old, Number(), margin=wrong)
    refused(ValueError, "system", gate, old, old, "fbd", margin=0.1)
    for margin, scale in ((100, "native"), (250, "native"), (1, "human_percentile"), (5, "human_percentile")):
        refused(ValueError, f"margin is {margin}", gate, old, old, Length(), margin=margin, scale=scale)
    assert gate(old, old, Length(), margin=99).passed


@pytest.mark.parametrize(
    ("name", "wrong"),
    [("confidence", 1.0), ("confidence", 0), ("confidence", "x"), ("confidence", float("nan")), ("resamples", 0),
     ("resamples", True), ("resamples", 1e5), ("seed", -1), ("seed", "x")],
)  # fmt: skip
def test_what_no_interval_has_is_refused(name: str, wrong: Any) -> None:
    asked: dict[str, Any] = {name: wrong}
    refused(ValueError, name, lambda: gate(rows([1, 2]), rows([1, 2]), Number(), margin=0.1, **asked))
    refused(ValueError, name, lambda: rank({"a": rows([1, 2]), "b": rows([1, 2])}, Number(), **asked))


@pytest.mark.slow
def test_assert_not_worse(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        def rows(count):
            texts = [f"the cat has seen a {chr(97 + at % 26) * (2 + at // 26)} on the mat" for at in range(count)]
            return [{"context": [f"hi {at}"], "response": text, "reference": text, "id": str(at)}
                    for at, text in enumerate(texts)]

        def test_warnings(assert_not_worse):
            with pytest.warns(UserWarning, match="contexts"):
                assert assert_not_worse(rows(2), rows(2), "bleu2", margin=0.1, min_contexts=2).metric == "bleu2"

        def test_failure(assert_not_worse):
            bad = [{**row, "response": row["response"][-12:]} for row in rows(40)]
            assert_not_worse(bad, rows(40), "bleu2", margin=0.1)
        """
    )
    # pytest finds the plugin by the entry point of the installed package; whoever forbids warnings can use it, too.
    # In a process of its own: within this one pytest would load extension modules a second time.
    run = pytester.runpytest_subprocess("-W", "error")
    run.assert_outcomes(passed=1, failed=1)
    run.stdout.fnmatch_lines(["*worse: bleu2 is worse by more than 0.1*"])
    assert "raise AssertionError" not in run.stdout.str()  # the line of the test is shown, not ours


# --- ranking ---------------------------------------------------------------------------------------


def three_bots(count: int = 80) -> list[dict[str, Any]]:
    base = np.array(noisy(3, count, 1))
    good = rows(base + 1 + 0.1 * np.array(noisy(0, count, 2)), ids=False, system="good")
    also = rows(base + 1 + 0.1 * np.array(noisy(0, count, 3)), ids=False, system="also")
    return good + also + rows(base, ids=False, system="bad")


def test_systems_are_ranked_and_those_that_cannot_be_told_apart_share_a_cluster() -> None:
    ranking = rank(three_bots(), [Number()])
    assert ranking.to_pandas()["system"].tolist() == [standing.system for standing in ranking.standings]
    assert [standing.cluster for standing in ranking.of("number")] == [1, 1, 2]
    assert ranking.of("number")[2].system == "bad"
    assert {standing.system for standing in ranking.of("number")[:2]} == {"good", "also"}
    assert [name in ranking.sentence("number") for name in ("good", "also", "bad")] == [True, True, False]
    of = {standing.system: standing for standing in ranking.of("number")}
    assert of["bad"].win_rate == 0
    assert of["good"].win_rate + of["also"].win_rate == pytest.approx(1.5)  # they split their pairs and beat the third
    for standing in of.values():
        assert standing.low < standing.mean < standing.high
        assert (standing.n_rows, standing.n_contexts, standing.human_percentile) == (80, 80, None)
    tests = {frozenset((test.first, test.second)): test for test in ranking.pair_tests}
    assert len(tests) == 3
    assert tests[frozenset(("good", "also"))].p_adjusted > 0.05
    shown = tests[frozenset(("good", "bad"))]
    assert (shown.first, shown.difference) == ("good", pytest.approx(of["good"].mean - of["bad"].mean))
    assert shown.p <= shown.p_adjusted < 0.01


def test_the_direction_of_a_metric_turns_the_order() -> None:
    ranking = rank(three_bots(), [Distance()])
    first = ranking.of("distance")[0]
    assert (first.system, first.cluster, first.win_rate) == ("bad", 1, 1.0)
    assert {test.first for test in ranking.pair_tests if test.p_adjusted < 0.01} == {"bad"}
    assert ranking.sentence("distance") == "distance: bad is best; good cannot be told from also."


def test_what_cannot_be_ranked_is_refused() -> None:
    refused(ValueError, "row 0", rank, rows([1, 2]), [Number()])
    refused(ValueError, "systems", rank, rows([1, 2], system="only"), [Number()])
    apart = [*rows([1], system="a"), {**rows([2], system="b")[0], "context": ["other"]}]
    refused(ValueError, "context", rank, apart, [Number()])


@pytest.mark.parametrize("shared", [60, 55, 53, 30])
def test_rows_that_are_left_out_are_counted_and_many_are_refused(tmp_path: Path, shared: int) -> None:
    base = noisy(3)
    sides = []
    for name in ("a", "b"):
        side = rows(base, per_context=4)
        for row in side[shared:]:
            row["id"] = f"{name}-{row['id']}"
        sides.append(side)
    old, new = (Number().score(side) for side in sides)
    asked: list[Any] = [
        lambda **more: dialeval.compare(old, new, resamples=100, **more)[0],
        lambda **more: rank(dict(zip("ab", sides, strict=True)), Number(), resamples=100, **more).pair_tests[0],
    ]
    for ask in asked:
        if shared < 54:
            refused(ValueError, f"{60 - shared} of 60", ask)
        test = ask(allow_missing=True)
        assert (test.n_rows, test.n_contexts) == (shared, -(-shared // 4))
    ranking = rank(dict(zip("ab", sides, strict=True)), Number(), resamples=100, allow_missing=True)
    told = (dialeval.compare(old, new, resamples=100, allow_missing=True)[0].left_out, "".join(ranking.warnings))
    assert all((f" {60 - shared} of 60" in text) is (shared < 60) for text in told)


@pytest.mark.parametrize("without", [0, 6, 7])
@pytest.mark.parametrize("how", ["compare", "turn", "dialogue"])
def test_rows_without_a_value_are_told_and_many_are_refused(how: Any, without: int) -> None:
    sides = {name: [{**row, "dialogue": ["0", row["response"]]} for row in rows(noisy(3))] for name in "ab"}
    for row in sides["b"][:without]:
        row |= {"response": "", "dialogue": ["0", ""], "id": None if how == "dialogue" else row["id"]}

    def ask(**more: Any) -> str:
        if how != "compare":
            return "".join(rank(sides, Number(), level=how, resamples=100, **more).warnings)
        scored = (Number().score(side, empty="score") for side in sides.values())
        return dialeval.compare(*scored, resamples=100, **more)[0].left_out

    if without > 6:
        refused(ValueError, f"{without} of 60", ask)
    assert (f" {without} of 60" in ask(allow_missing=without > 6)) is (without > 0)


def test_an_aspect_that_no_reply_has_is_nothing_lost() -> None:
    scored = replace(Number().score(rows(noisy(3))), aspects={"facts": np.array([np.nan] * 20 + [1.0] * 40)})
    value, aspect = dialeval.compare(scored, scored)
    assert (value.n_rows, value.left_out, aspect.n_rows, aspect.left_out) == (60, "", 40, "")


@pytest.mark.parametrize(("covered", "contexts"), [(60, 15), (54, 14 + 6), (30, 8 + 30), (0, 60)])
def test_rows_without_a_context_are_told_and_many_are_refused(tmp_path: Path, covered: int, contexts: int) -> None:
    known = [*rows(noisy(3), per_context=4)[:covered], {"id": "other", "context": "Hi", "response": "Hi"}]
    scored, file = Number().score(rows(noisy(3))), write_rows(tmp_path / "rows.jsonl", known)
    ask: Any = partial(dialeval.compare, scored, scored, rows=[file])
    if covered < 54:
        refused(ValueError, f"{60 - covered} of 60", ask)
    (comparison,) = ask(allow_missing=covered < 54)
    assert (f"{60 - covered} of 60" in comparison.left_out, comparison.n_contexts) == (covered < 60, contexts)
    refused(ValueError, "resamples", partial(ask, resamples=0))


def test_compare_says_that_contexts_are_not_known(tmp_path: Path) -> None:
    rows = [{"id": str(index), "context": ["Hi"], "response": "a"} for index in range(8)]
    for name, key, values in (("rows", None, rows), ("old", 0.0, rows), ("new", 0.1, rows)):
        lines = [row if key is None else {"id": row["id"], "judge": key + index} for index, row in enumerate(values)]
        write_rows(tmp_path / f"{name}.jsonl", lines)
    words = ["compare", tmp_path / "old.jsonl", tmp_path / "new.jsonl", "--resamples", 100]
    assert "--rows" in invoke(*words).output
    assert "not known" not in invoke(*words, "--rows", tmp_path / "rows.jsonl").output


class Aspects(Number):
    """The number, with aspects and reasons of its own."""

    info = replace(Number.info, aspects=("steady", "on_topic"), explains=True)

    def judge(self, exchanges: Sequence[Exchange], *, progress: bool = False) -> Judged:
        values = super().judge(exchanges).values
        aspects = {"steady": np.ones(len(values)), "on_topic": values / 2}
        reasons = tuple(f"it is {value:.1f}" for value in values)
        return Judged(values, aspects=aspects, reasons=reasons, interval=np.stack([values, values], axis=1))


def test_the_gate_names_the_rows_that_pulled_it_down() -> None:
    old = noisy(3)
    new = [value - (index in (7, 20)) * (index + 1) for index, value in enumerate(old)]
    outcome = gate(rows(new), rows(old), Aspects(), margin=0.1)
    assert outcome.aspects[0].aspect == "on_topic"
    assert [reply.id for reply in outcome.worst] == ["row-20", "row-7"]
    assert outcome.worst[0].aspects["on_topic"] == pytest.approx(new[20] / 2, abs=1e-5)
    assert outcome.worst[0].reason == f"it is {new[20]:.1f}"
    for report in (outcome.to_markdown(), outcome.to_junit()):
        assert report.index("row-20") < report.index("row-7")
        assert outcome.worst[1].reason in report
    assert [row["id"] for row in json.loads(json.dumps(outcome.to_dict()))["worst"]] == ["row-20", "row-7"]
    assert not gate(rows(old), rows(old), Aspects(), margin=0.1).worst
    told = refused(AssertionError, "gain", lambda: assert_not_worse(rows(new), rows(old), Aspects(), margin=0.1))
    assert told.index("row-20") < told.index("row-7")
    unnamed = gate(rows(new, ids=False), rows(old, ids=False), Aspects(), margin=0.1).to_markdown()
    assert unnamed.index("| 20 |") < unnamed.index("| 7 |")


@pytest.mark.parametrize(("name", "value"), [("margin", "0.1"), ("baseline", 5), ("confidnce", 0.9)])
def test_wrong_arguments_of_assert_not_worse_end_in_one_sentence(name: str, value: Any) -> None:
    asked = {"new": rows([3]), "baseline": rows([3]), "metric": Number(), "margin": 0.1, name: value}
    refused(pytest.fail.Exception, name.replace("baseline", "int"), lambda: assert_not_worse(**asked))


def test_rank_and_gate_read_what_score_reads(tmp_path: Path) -> None:
    new = [{"frage": f"tell me {n}", "antwort": f"the cat sat {n}", "soll": f"the cat sat {n}"} for n in range(40)]
    old = [{"q": row["frage"], "a": "a dog", "r": row["soll"]} for row in new]
    files = [str(write_rows(tmp_path / name, side)) for name, side in (("new.jsonl", new), ("old.jsonl", old))]
    named = ["--columns", "context=frage,response=antwort,references=soll"]
    gated = ["gate", files[0], "-b", files[1], "-m", "bleu2", "--margin", "0.1", *named]
    scores = [{"row": n, "value": n % 3} for n in range(40)]
    scored = [str(write_rows(tmp_path / name, scores)) for name in ("a_scores.jsonl", "b_scores.jsonl")]
    compared = ["compare", *scored, "--rows", files[0], "--rows", files[1], "--resamples", "100", *named]
    for asked in (gated, ["rank", *files, "-m", "bleu2", *named], compared):
        invoke(*asked, code=2)
        invoke(*asked, "--columns-b", "context=q,response=a,references=r")
    logs = []
    for name in ("a", "b"):
        turns = [("user", "hello there"), ("guide", f"hi from {name}")]
        messages = [{"role": role, "content": text} for role, text in turns]
        log = [{"id": str(n), "messages": messages} for n in range(5)]
        logs.append(str(write_rows(tmp_path / f"{name}.jsonl", log)))
    for command in (["rank", *logs], ["gate", logs[0], "-b", logs[1], "--margin", "1", "--min-contexts", "1"]):
        asked = [*command, "-m", "python:number_metrics:letters"]
        invoke(*asked, code=2)
        invoke(*asked, "--judge-role", "guide")


# --- commands --------------------------------------------------------------------------------------


def replies(good: bool, system: str | None = None, count: int = 40) -> list[dict[str, Any]]:
    text = "the cat sat on the mat"
    return [
        {"id": f"{n}", "context": [f"tell me {n}"], "reference": f"{text} {n}", "system": system,
         "response": f"{text} {n}" if good else f"{text} and more"} for n in range(count)
    ]  # fmt: skip


def test_the_gate_writes_reports_and_an_error_replaces_them(tmp_path: Path) -> None:
    good, bad = write_rows(tmp_path / "good.jsonl", replies(True)), write_rows(tmp_path / "bad.jsonl", replies(False))
    files = {name: tmp_path / f"gate.{name}" for name in ("xml", "md", "json")}
    reports = ["--junit", files["xml"], "--markdown", files["md"], "--json", files["json"]]
    asked = ["-b", bad, "-m", "bleu2", "--margin", "0.02", *reports]
    printed = invoke("gate", good, *asked)
    assert printed.output.strip().splitlines()[-1].startswith("passed: bleu2")
    assert ElementTree.parse(files["xml"]).getroot().get("failures") == "0"
    assert json.loads(files["json"].read_text())["n_contexts"] == 40
    assert "✅" in files["md"].read_text("utf-8")
    invoke("gate", tmp_path / "none & <none>.jsonl", *asked, code=2)
    suite = ElementTree.parse(files["xml"]).getroot()
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("1", "0", "1")
    error = suite.find("testcase/error")
    assert error is not None
    assert "none & <none>.jsonl" in error.get("message", "")
    assert "jsonl" in files["md"].read_text("utf-8")
    assert "✅" not in files["md"].read_text("utf-8")
    assert json.loads(files["json"].read_text())["passed"] is False


def test_rank_prints_tables_and_writes_files(tmp_path: Path) -> None:
    file = write_rows(tmp_path / "all.jsonl", replies(True, "new") + replies(False, "old"))
    outputs = {name: tmp_path / f"ranking.{name}" for name in ("md", "json", "html", "png")}
    reports = ["--markdown", outputs["md"], "--json", outputs["json"], "--html", outputs["html"]]
    printed = invoke("rank", file, "-m", "bleu2,rougeL", *reports, "--plot", outputs["png"])
    kept = json.loads(outputs["json"].read_text())
    assert {row["metric"] for row in kept["standings"]} == {"bleu2", "rougeL"}
    assert "| 1 | new |" in outputs["md"].read_text("utf-8")
    assert outputs["png"].read_bytes()[:4] == b"\x89PNG"
    for told_in in (outputs["md"].read_text("utf-8"), outputs["html"].read_text("utf-8"), printed.output):
        assert re.search("bleu2: new ", told_in)
        assert "< .001" in told_in.replace("&lt;", "<")
    new, old = write_rows(tmp_path / "new.jsonl", replies(True)), write_rows(tmp_path / "old.jsonl", replies(False))
    assert "bleu2: fresh " in invoke("rank", f"fresh={new}", old, "-m", "bleu2").output
    assert "the same name" in invoke("rank", new, new, "-m", "bleu2", code=2).output


def test_scores_are_compared_as_their_files_are(tmp_path: Path) -> None:
    base = noisy(3)
    for metric, better in ((Number(), "second"), (Distance(), "first")):
        for ids in (True, False):
            old, new = (metric.score(rows([value + more for value in base], ids)) for more in (0, 1))
            (comparison,) = dialeval.compare(old, new, resamples=500)
            assert (comparison.n_rows, comparison.n_contexts, comparison.verdict) == (60, 60, f"{better} is better")
            assert comparison.difference == pytest.approx(-1, abs=1e-5)
    files = []
    for name, more in (("old", 0), ("new", 1)):
        scores = [{"id": f"row-{index}", "number": round(value + more, 6)} for index, value in enumerate(base)]
        files.append(write_rows(tmp_path / f"{name}.jsonl", scores))
    (kept,) = dialeval.compare(*files, resamples=500)
    assert (kept.verdict, kept.higher_is_better) == ("new.jsonl is higher", None)
    assert kept.difference == pytest.approx(-1)
    other = Number().score([{**row, "context": ["else"]} for row in rows(base, ids=False)])
    refused(ValueError, "context", lambda: dialeval.compare(Number().score(rows(base, ids=False)), other))
    refused(ValueError, "Scores", dialeval.compare, old, files[0])
    shares = replace(new, signature=Signature({**new.signature, "scale": "human_percentile@1234"}))
    refused(ValueError, "human_percentile and native", dialeval.compare, old, shares)


def test_the_ends_of_intervals_are_not_compared(tmp_path: Path) -> None:
    columns = {"judge": 0.5, "judge.relevant": 0.4, "judge.low": 0.1, "judge.high": 0.9}
    scores = [{"id": f"row-{n}", **{name: value + n / 100 for name, value in columns.items()}} for n in range(9)]
    file = write_rows(tmp_path / "scores.jsonl", scores)
    value, aspect = dialeval.compare(file, file, resamples=100)
    assert (value.metric, aspect.metric) == ("judge", "judge.relevant")
    (chosen,) = dialeval.compare(f"{file}#judge.low", f"{file}#judge.low", resamples=100)
    assert chosen.metric == "judge.low"


@pytest.mark.slow
@pytest.mark.encoder
def test_the_example_workflow_runs_as_it_stands(tmp_path: Path) -> None:
    steps = yaml.safe_load((ROOT / "examples" / "ci" / "dialeval-gate.yml").read_text())["jobs"]["gate"]["steps"]
    script = {step["name"]: step["run"] for step in steps if "run" in step}
    (tmp_path / "tests").mkdir()
    write_rows(tmp_path / "tests" / "baseline.jsonl", replies(True, count=30))
    write_rows(tmp_path / "new.jsonl", replies(True, count=30))
    # The command of the environment that runs these tests; the metric needs no network.
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md")}
    for name in ("gate", "tell"):
        done = subprocess.run(
            ["bash", "-euc", script[name]], cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
    assert "dialeval gate: judge" in (tmp_path / "summary.md").read_text("utf-8")
    assert (tmp_path / "gate.xml").is_file()
