"""Attacks by hand, preferences and their intervals, and runs of both."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialeval.agreement.runs import Reporter
from dialeval.baselines.overlap import Bleu1
from dialeval.core.exchange import Exchange
from dialeval.core.scores import Signature
from dialeval.registry.interface import Judged, Level, Metric, MetricInfo
from dialeval.robustness.attacks import ATTACKS, Pool, choose_attacks, missing_resource
from dialeval.robustness.inputs import Pair, gather, key_of
from dialeval.robustness.preference import AttackOutcome, share_of, verdicts
from dialeval.robustness.trial import run
from overlap_metric import Variety
from refusals import refused
from resources import MIRROR
from shell import invoke, read_rows, write_rows
from small_resources import write_wordnet

TEA = Exchange(("Hi!", "What do you like?"), "I really don't like the well-known tea, but coffee is fine.", id="tea")
CAR = Exchange(("Where have you been?",), "We bought a car .")
YES = Exchange(("Are you happy?",), "Yes")
ROWS = [TEA, CAR, YES]
POOL = Pool(ROWS)


def attacked(name: str, exchange: Exchange = TEA, seed: int = 0) -> str | None:
    outcome = ATTACKS[name].apply(exchange, POOL, seed=seed)
    return None if outcome is None else outcome.response


@pytest.fixture
def wordnet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WNSEARCHDIR", str(write_wordnet(tmp_path / "wordnet")))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("reverse", "fine. is coffee but tea, well-known the like don't really I"),
        ("no_stopwords", "really don't like well-known tea, coffee fine."),
        ("no_punctuation", "I really don't like the well-known tea but coffee is fine"),
        ("repetition", "I really don't like the well-known tea, but coffee is fine. coffee is fine."),
        ("speaker_echo", "What do you like? I really don't like the well-known tea, but coffee is fine."),
        ("truncation", "I really don't like the"),
    ],
)
def test_attacks_without_chance(name: str, expected: str) -> None:
    assert attacked(name) == expected


def test_stopwords_of_tokenised_text_take_their_apostrophe_along() -> None:
    assert attacked("no_stopwords", Exchange(("a",), "I ' m at the station , it ' s late")) == "station , late"


def test_jumble_keeps_the_words_in_another_order() -> None:
    for seed in range(20):
        jumbled = attacked("jumble", seed=seed)
        assert jumbled is not None
        assert Counter(jumbled.split()) == Counter(TEA.response.split())
        assert jumbled.split() != TEA.response.split()
    assert len({attacked("jumble", seed=seed) for seed in range(20)}) > 10


@pytest.mark.parametrize("name", ["reverse", "jumble", "no_punctuation", "truncation"])
def test_attacks_that_change_nothing_or_leave_nothing_give_no_pair(name: str) -> None:
    assert attacked(name, YES) is None


@pytest.mark.parametrize("name", ["reverse", "jumble"])
def test_equal_words_cannot_be_put_in_another_order(name: str) -> None:
    assert attacked(name, Exchange(("Hi",), "  yes  yes ")) is None


def test_random_reply_comes_from_another_context_and_is_no_reference() -> None:
    for seed in range(10):
        assert attacked("random_reply", CAR, seed) in {TEA.response, YES.response}
    with_reference = Exchange(CAR.context, CAR.response, references=(TEA.response,))
    assert {attacked("random_reply", with_reference, seed) for seed in range(10)} == {YES.response}
    assert ATTACKS["random_reply"].apply(CAR, Pool([CAR])) is None
    assert ATTACKS["random_reply"].apply(CAR, Pool([])) is None


def test_noise_puts_in_as_many_words_as_it_should() -> None:
    # Twelve words: from 3 to 6 more.
    reply = Exchange(("Hi",), " ".join(f"w{number}" for number in range(12)))
    added = set()
    for seed in range(60):
        outcome = attacked("noise", reply, seed)
        assert outcome is not None
        assert [word for word in outcome.split() if re.fullmatch(r"w\d+", word)] == reply.response.split()
        assert set(outcome.split()) <= set(reply.response.split()) | set(POOL.vocabulary)
        added.add(len(outcome.split()) - 12)
    assert added == {3, 4, 5, 6}


def test_synonyms_are_other_words_and_keep_the_capital(wordnet: None) -> None:
    assert attacked("synonyms", CAR) == "We bought a auto ."
    assert attacked("synonyms", Exchange(("Hi",), "Sofa is big and happy?")) == "Couch is large and glad?"
    assert attacked("synonyms", YES) is None
    assert missing_resource("synonyms") is None


def test_nouns_by_the_tagger(monkeypatch: pytest.MonkeyPatch) -> None:
    tags = {"bought": "VBD", "car": "NN"}
    monkeypatch.setattr("dialeval.robustness.attacks.require_tagger", lambda: None)
    monkeypatch.setattr("nltk.pos_tag", lambda words: [(word, tags.get(word, "DT")) for word in words])
    assert attacked("nouns_only", CAR) == "car"
    assert attacked("nouns_only", YES) is None


def test_attacks_that_lack_their_data_say_which(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import nltk

    monkeypatch.setattr(nltk.data, "path", [])
    monkeypatch.setenv("WNSEARCHDIR", str(tmp_path))
    chosen, lacking = choose_attacks(["all"])
    assert lacking.keys() == {"nouns_only", "synonyms"}
    assert "averaged_perceptron_tagger_eng" in lacking["nouns_only"]
    assert "nltk.downloader wordnet" in lacking["synonyms"]
    assert {attack.name for attack in chosen} == ATTACKS.keys() - lacking.keys()
    refused(ValueError, "averaged_perceptron_tagger_eng", attacked, "nouns_only")


@given(st.permutations(ROWS), st.integers(0, 5))
def test_a_row_s_attack_does_not_depend_on_the_order_of_the_others(rows: list[Exchange], seed: int) -> None:
    pool = Pool([*rows, *rows])
    for name in ATTACKS.keys() - {"nouns_only", "synonyms"}:
        assert ATTACKS[name].apply(TEA, pool, seed=seed) == ATTACKS[name].apply(TEA, POOL, seed=seed)


@given(st.lists(st.text(max_size=25), min_size=1, max_size=4), st.text(max_size=40))
def test_any_text_survives_every_attack(context: list[str], response: str) -> None:
    exchange = Exchange(tuple(context), response)
    pool = Pool([exchange, TEA])
    for name in ATTACKS.keys() - {"nouns_only", "synonyms"}:
        outcome = ATTACKS[name].apply(exchange, pool)
        assert outcome is None or (outcome.response.strip() and outcome.response.split() != response.split())


def judged(
    true: list[float], attacked: list[float], *, contexts: list[int] | None = None, higher: bool = True, **rules: float
) -> AttackOutcome:
    numbers = contexts or list(range(len(true)))
    pairs = [
        Pair("jumble", True, Exchange((f"c{number}",), f"true {row}"), Exchange((f"c{number}",), f"attacked {row}"))
        for row, number in enumerate(numbers)
    ]
    values = {key_of(pair.true): value for pair, value in zip(pairs, true, strict=True)}
    values |= {key_of(pair.attacked): value for pair, value in zip(pairs, attacked, strict=True)}
    (outcome,) = verdicts(pairs, values, metric="m", source="s", signature="sig", higher_is_better=higher, **rules)
    return outcome


def test_direction_and_tolerance() -> None:
    # Standard deviation of the true values is 2, so a fall of 1 is allowed at 0.5.
    true, attacked = [0, 4, 0, 4], [-1, 2.9, 1, 0]
    up = judged(true, attacked, tolerance=0.5)
    assert up.tolerance == pytest.approx(1)
    assert up.kept.value == pytest.approx(0.5)
    assert up.preferred.value == 0.75
    down = judged([-value for value in true], [-value for value in attacked], higher=False, tolerance=0.5)
    assert (down.kept, down.preferred) == (up.kept, up.preferred)
    assert judged(true, attacked, tolerance=0).kept.value == 0.25


def test_independent_rows_have_wilson_s_interval() -> None:
    from scipy.stats import binomtest

    for right in (0, 1, 8, 10):
        share = share_of(np.array([1.0] * right + [0.0] * (10 - right)), np.arange(10))
        expected = binomtest(right, 10).proportion_ci(method="wilson")
        assert (share.value, share.low, share.high) == pytest.approx((right / 10, expected.low, expected.high))


@given(st.lists(st.tuples(st.sampled_from([0.0, 0.5, 1.0]), st.integers(0, 5)), min_size=1, max_size=30))
def test_shares_lie_within_their_interval(rows: list[tuple[float, int]]) -> None:
    labels = {label: number for number, label in enumerate(dict.fromkeys(label for _, label in rows))}
    share = share_of(np.array([hit for hit, _ in rows]), np.array([labels[label] for _, label in rows]))
    assert 0 <= share.low <= share.value <= share.high <= 1
    assert share.high - share.low > 0.01


def test_ties_count_half_and_missing_values_not_at_all() -> None:
    outcome = judged([1, 2, 3, 4, math.nan, 6], [0, 3, 3, 1, 0, math.nan])
    assert outcome.preferred.value == pytest.approx(2.5 / 4)
    assert outcome.ties == 0.25
    assert (outcome.n, outcome.n_unscored, outcome.n_contexts) == (4, 2, 4)
    assert outcome.mean_true == pytest.approx(2.5)
    assert outcome.mean_attacked == pytest.approx(1.75)


def test_rows_of_one_context_are_worth_less() -> None:
    hits = np.array([1.0, 0.0] * 10)
    alone = share_of(np.repeat(hits, 5), np.arange(100))
    together = share_of(np.repeat(hits, 5), np.repeat(np.arange(20), 5))
    of_contexts = share_of(hits, np.arange(20))
    assert together.high - together.low > 1.8 * (alone.high - alone.low)
    # Five equal rows of a context say as much as one, but for the correction for small samples.
    assert (together.low, together.high) == pytest.approx((of_contexts.low, of_contexts.high), abs=0.005)


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
    outcome = run([n_words], material, tolerance=0.5)
    by_attack = {verdict.attack: verdict for verdict in outcome.verdicts}
    assert list(by_attack) == list(QUICK)
    assert by_attack["reverse"].ties == 1
    assert by_attack["reverse"].preferred.value == 0.5
    assert by_attack["repetition"].preferred.value == 0
    assert by_attack["no_punctuation"].share.value == 1
    assert all(verdict.n == 8 and verdict.metric == "n_words" for verdict in outcome.verdicts)
    refused(ValueError, "tolerance", run, [n_words], material, tolerance=math.nan)


def test_a_set_with_attacks_of_its_own(adversarial: Path) -> None:
    material = gather(adversarial)
    assert [pair.attack for pair in material.pairs] == ["dull", "repeat", "paraphrase"]
    assert material.pairs[1].attacked.context == ("Who are you?",)
    assert material.pairs[0].true.references == ()
    outcome = run([n_words], material)
    shares = {(verdict.attack, verdict.harmful): verdict.share.value for verdict in outcome.verdicts}
    assert shares == {("dull", True): 1, ("repeat", True): 0, ("paraphrase", False): 1}
    assert len(gather(adversarial, ["dull", "repeat"]).pairs) == 2
    refused(ValueError, "jumble", gather, adversarial, ["jumble"])


def test_metrics_of_systems_and_those_that_compare_with_the_true_reply_itself_are_left_out(adversarial: Path) -> None:
    outcome = run([Bleu1(), Variety(), n_words], gather(adversarial))
    assert [metric for metric, _ in outcome.skipped] == ["bleu1", "variety"]
    assert "by construction" in outcome.skipped[0][1]
    assert {verdict.metric for verdict in outcome.verdicts} == {"n_words"}


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
        if any(row.response.startswith("Yes, 3") for row in exchanges):
            raise RuntimeError("no threes")
        return Judged(np.array([np.nan if row.response.startswith("Yes, 4") else 0.5 for row in exchanges]))

    def signature(self) -> Signature:
        return Signature({"metric": "broken"})


def test_rows_that_fail_are_told_and_sink_nothing(plain: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(Reporter, "say", lambda self, text: told.append(text))
    broken, sound = run([Broken(), n_words], gather(plain, ["reverse"])).verdicts
    assert (broken.n, broken.n_unscored, sound.n) == (6, 2, 8)
    assert any(re.search("broken.* 2 ", text) for text in told)


def test_the_command_writes_rows_page_and_plot(plain: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    spec = "python:test_robustness:n_words?name=words"
    done = invoke("robustness", "-m", spec, "-i", plain, "-o", out, "-a", "reverse,repetition,no_punctuation")
    rows = read_rows(out / "robustness.jsonl")
    attacks = ("reverse", "repetition", "no_punctuation")
    assert [(row["metric"], row["attack"], row["n"]) for row in rows] == [("words", attack, 8) for attack in attacks]
    assert (rows[1]["preferred"], rows[1]["preferred_low"]) == (0, 0)
    page = (out / "robustness.md").read_text()
    assert "| repetition | 0.000 [0.000, 0.324] |" in page
    assert "| no_punctuation ○ | 1.000 [0.676, 1.000] |" in page
    assert (out / "robustness.png").read_bytes().startswith(b"\x89PNG")
    assert json.loads((out / "run.json").read_text())["rules"] == {"tolerance": 0.1}
    assert "# Robustness on plain.jsonl" in done.output


def test_attacks_without_a_name_have_one_on_the_page(tmp_path: Path) -> None:
    rows = [{"context": [f"c{at}"], "response": f"reply {at} to it", "adversarial_response": "no"} for at in range(9)]
    plain = write_rows(tmp_path / "unnamed.jsonl", rows)
    invoke("robustness", "-m", "python:test_robustness:n_words", "-i", plain, "-o", tmp_path / "out")
    assert "| adversarial | 1.000" in (tmp_path / "out" / "robustness.md").read_text()


def test_an_attack_that_is_named_twice_counts_once(plain: Path, tmp_path: Path) -> None:
    assert len(gather(plain, ["repetition", "repetition"]).pairs) == 8
    words = ["-m", "python:test_robustness:n_words", "-i", plain, "-o", tmp_path / "out", "--attacks", ""]
    assert "choose others" in invoke("robustness", *words, code=2).output


def test_a_run_without_any_number_fails(plain: Path, tmp_path: Path) -> None:
    assert "by construction" in invoke("robustness", "-m", "bleu1", "-i", plain, "-o", tmp_path / "out", code=1).output


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
    outcome = run([n_words], material)
    over_all = {verdict.attack: verdict for verdict in outcome.verdicts if verdict.domain == "all"}
    assert len(over_all) == 12
    # A set made by repeating words cannot have fewer of them.
    assert over_all["repetitiveness"].preferred.value < 0.05
    assert over_all["repetitiveness"].n == 400
