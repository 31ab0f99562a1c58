"""Robustness runs: from inputs to files, past failures, and again from what was kept."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dialeval.agreement.runs import Reporter
from dialeval.baselines.overlap import Bleu1
from dialeval.cli import build_app
from dialeval.core.exchange import Exchange
from dialeval.core.scores import Signature
from dialeval.registry.metric import Judged, Level, Metric, MetricInfo
from dialeval.robustness.inputs import gather
from dialeval.robustness.trial import run
from overlap_metric import Variety
from refusals import refused
from resources import MIRROR
from toy_benchmark import write_rows

QUICK = ("reverse", "repetition", "generic_reply", "no_punctuation")


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    replies = [(f"Do you like number {at}?", f"Yes, {at} is my favourite.") for at in range(8)]
    rows = [{"context": [said], "response": reply, "id": str(at)} for at, (said, reply) in enumerate(replies)]
    return write_rows(tmp_path / "plain.jsonl", rows)


@pytest.fixture
def adversarial(tmp_path: Path) -> Path:
    base = {"context": ["How are you?"], "scores": {}}
    dull = {"response": "Fine, thanks a lot.", "reference": "Fine, thanks a lot.", "adversarial_response": "No."}
    repeat = {"response": "I am well.", "adversarial_response": "I am I am well."}
    paraphrase = {"response": "I am quite well.", "adversarial_response": "I am fairly well."}
    rows = [
        base | dull | {"attack": "dull", "harmful": True, "domain": "one"},
        base | repeat | {"attack": "repeat", "harmful": True, "domain": "two", "adversarial_context": ["Who are you?"]},
        base | paraphrase | {"attack": "paraphrase", "harmful": False, "domain": "one"},
    ]
    return write_rows(tmp_path / "adversarial.jsonl", rows)


def n_words(rows: Sequence[Exchange]) -> list[float]:
    """Longer replies are better."""
    return [float(len(row.response.split())) for row in rows]


def test_a_plain_file_is_attacked_row_by_row(plain: Path) -> None:
    material = gather(plain, QUICK)
    assert (material.name, len(material.pairs)) == ("plain.jsonl", 32)
    found = run([n_words], material, tolerance=0.5)
    by_attack = {one.attack: one for one in found.verdicts}
    assert list(by_attack) == list(QUICK)
    assert by_attack["reverse"].ties == 1
    assert by_attack["reverse"].preferred.value == 0.5
    assert by_attack["repetition"].preferred.value == 0
    assert by_attack["no_punctuation"].share.value == 1
    assert all(one.n == 8 and one.metric == "n_words" for one in found.verdicts)
    refused(ValueError, "tolerance", run, [n_words], material, tolerance=math.nan)


def test_a_set_with_attacks_of_its_own(adversarial: Path) -> None:
    material = gather(adversarial)
    assert [pair.attack for pair in material.pairs] == ["dull", "repeat", "paraphrase"]
    assert material.pairs[1].attacked.context == ("Who are you?",)
    assert material.pairs[0].true.references == ()
    found = run([n_words], material)
    shares = {(one.attack, one.harmful): one.share.value for one in found.verdicts}
    assert shares == {("dull", True): 1, ("repeat", True): 0, ("paraphrase", False): 1}
    assert len(gather(adversarial, ["dull", "repeat"]).pairs) == 2
    refused(ValueError, "jumble", gather, adversarial, ["jumble"])


def test_metrics_that_compare_with_the_true_reply_itself_are_left_out(adversarial: Path) -> None:
    found = run([Bleu1(), n_words], gather(adversarial))
    assert [metric for metric, _ in found.skipped] == ["bleu1"]
    assert "by construction" in found.skipped[0][1]
    assert {one.metric for one in found.verdicts} == {"n_words"}


def test_rated_benchmarks_give_the_replies_of_people(tmp_path: Path) -> None:
    rated = [
        {"context": ["Hi"], "response": "a machine's", "references": ["a person's", "another's"], "scores": {"q": 1}},
        {"context": ["Hi"], "response": "another machine's", "references": ["a person's"], "scores": {"q": 2}},
    ]
    (pair,) = gather(write_rows(tmp_path / "rated.jsonl", rated), ["reverse"]).pairs
    assert (pair.true.response, pair.true.references) == ("a person's", ("another's",))
    human = [row | {"system": system} for row, system in zip(rated, ["human", "bot"], strict=True)]
    (pair,) = gather(write_rows(tmp_path / "human.jsonl", human), ["reverse"]).pairs
    assert pair.true.response == "a machine's"
    labelled = [{"context": ["Hi"], "response": f"reply {label}", "label": label} for label in (0, 1)]
    (pair,) = gather(write_rows(tmp_path / "labelled.jsonl", labelled), ["reverse"]).pairs
    assert pair.true.response == "reply 1"
    nobody = [{"context": ["Hi"], "response": "a b", "scores": {"q": 1}}]
    refused(ValueError, "nobody", lambda: gather(write_rows(tmp_path / "nobody.jsonl", nobody)))


class Broken(Metric):
    """Fails on replies that begin with a capital letter; NaN on some others."""

    info = MetricInfo("broken", "Broken", Level.TURN, True, (0, 1), "fails")

    def judge(self, exchanges: Sequence[Exchange], *, progress: bool = False) -> Judged:
        import numpy as np

        if any(row.response.startswith("Yes, 3") for row in exchanges):
            raise RuntimeError("no threes")
        return Judged(np.array([np.nan if row.response.startswith("Yes, 4") else 0.5 for row in exchanges]))

    def signature(self) -> Signature:
        return Signature({"metric": "broken"})


class Hears(Reporter):
    def __init__(self) -> None:
        self.told: list[str] = []

    def say(self, text: str) -> None:
        self.told.append(text)


def test_rows_that_fail_are_told_and_sink_nothing(plain: Path) -> None:
    hears = Hears()
    found = run([Broken(), n_words], gather(plain, ["reverse"]), reporter=hears)
    verdict = found.verdicts[0]
    assert (verdict.n, verdict.n_unscored) == (6, 2)
    assert any(re.search("broken.* 2 ", text) for text in hears.told)
    assert found.verdicts[1].n == 8


def test_metrics_of_systems_are_left_out(plain: Path) -> None:
    found = run([Variety(), n_words], gather(plain, ["reverse"]))
    assert [name for name, _ in found.skipped] == ["variety"]
    assert {one.metric for one in found.verdicts} == {"n_words"}


def invoke(*arguments: object) -> Any:
    return CliRunner().invoke(build_app(), ["robustness", *map(str, arguments)])


def test_the_command_writes_rows_page_and_plot(plain: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    spec = "python:test_robustness_run:n_words?name=words"
    done = invoke("-m", spec, "-i", plain, "-o", out, "--attacks", "reverse,repetition,no_punctuation")
    assert done.exit_code == 0, done.output
    rows = [json.loads(line) for line in (out / "robustness.jsonl").read_text().splitlines()]
    assert [(row["metric"], row["attack"], row["n"]) for row in rows] == [
        ("words", "reverse", 8),
        ("words", "repetition", 8),
        ("words", "no_punctuation", 8),
    ]
    page = (out / "robustness.md").read_text()
    assert "| repetition | 0.000 [0.000, 0.324] |" in page
    assert "| no_punctuation ○ | 1.000 [0.676, 1.000] |" in page
    assert (out / "robustness.png").read_bytes().startswith(b"\x89PNG")
    assert json.loads((out / "run.json").read_text())["rules"] == {"tolerance": 0.1}
    assert "# Robustness on plain.jsonl" in done.output


def test_attacks_without_a_name_have_one_on_the_page(tmp_path: Path) -> None:
    rows = [{"context": [f"c{at}"], "response": f"reply {at} to it", "adversarial_response": "no"} for at in range(9)]
    plain = write_rows(tmp_path / "unnamed.jsonl", rows)
    done = invoke("-m", "python:test_robustness_run:n_words", "-i", plain, "-o", tmp_path / "out")
    assert done.exit_code == 0, done.output
    assert "| adversarial | 1.000" in (tmp_path / "out" / "robustness.md").read_text()


def test_an_attack_that_is_named_twice_counts_once(plain: Path, tmp_path: Path) -> None:
    assert len(gather(plain, ["repetition", "repetition"]).pairs) == 8
    done = invoke("-m", "python:test_robustness_run:n_words", "-i", plain, "-o", tmp_path / "out", "--attacks", "")
    assert (done.exit_code, "choose others" in done.output) == (2, True), done.output


def test_a_run_without_any_number_fails(plain: Path, tmp_path: Path) -> None:
    done = invoke("-m", "bleu1", "-i", plain, "-o", tmp_path / "out")
    assert done.exit_code == 1
    assert "by construction" in done.output


@pytest.mark.slow
@pytest.mark.data
def test_the_adversarial_pairs_of_the_study() -> None:
    if not (MIRROR.parent / "benchmarks" / "adversarial_khalid.jsonl").is_file():
        pytest.skip("the rows of adversarial_khalid do not lie beside the folder that DIALEVAL_MIRROR names")
    material = gather("adversarial_khalid", mirror=MIRROR)
    assert len(material.pairs) == 4744
    assert sum(not pair.harmful for pair in material.pairs) == 400 + 344
    assert sum(pair.true.context != pair.attacked.context for pair in material.pairs) <= 18
    assert not any(pair.true.references for pair in material.pairs)
    found = run([n_words], material)
    over_all = {one.attack: one for one in found.verdicts if one.domain == "all"}
    assert len(over_all) == 12
    # A set made by repeating words cannot have fewer of them.
    assert over_all["repetitiveness"].preferred.value < 0.05
    assert over_all["repetitiveness"].n == 400
