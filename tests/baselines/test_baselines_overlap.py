"""Word-overlap baselines: the vectors of the specification, other implementations, and properties."""

from __future__ import annotations

import math
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rouge_score.rouge_scorer import RougeScorer

import dialeval
from dialeval.baselines.overlap import (
    Bleu1,
    Bleu2,
    Bleu3,
    Bleu4,
    DeltaBleu,
    Meteor,
    RougeL,
    delta_bleu,
    weighted_precision,
)
from dialeval.baselines.reference import ReferenceMetric
from dialeval.baselines.words import MissingResource
from refusals import refused
from small_resources import write_wordnet

CAT = "the cat sat on the mat"
CATS = ["the cat is on the mat", "there is a cat on the mat"]
words = st.lists(st.sampled_from(["a", "b", "c", "d", "e"]), min_size=1, max_size=9).map(" ".join)


def value_of(metric: ReferenceMetric, response: str, references: list[str]) -> float:
    return float(metric.score([response], [["hello"]], [references]).values[0])


@pytest.mark.parametrize("references", [CATS[:1], CATS])
@pytest.mark.parametrize(("metric", "expected"), [(Bleu1, 5 / 6), (Bleu2, 0.707106781), (Bleu3, 0.5), (Bleu4, 0.0)])
def test_bleu_without_smoothing(metric: type[Bleu1], expected: float, references: list[str]) -> None:
    assert value_of(metric(smoothing="none"), CAT, references) == pytest.approx(expected, abs=1e-9)


@settings(max_examples=60, deadline=None)
@given(words, st.lists(words, min_size=1, max_size=3))
def test_bleu_is_sacrebleu_s(candidate: str, references: list[str]) -> None:
    from sacrebleu.metrics import BLEU

    if len(candidate.split()) < 4:  # sacrebleu gives up where the reply has no four-gram at all
        candidate += " x y z"
    theirs = BLEU(smooth_method="exp", tokenize="none", effective_order=False, force=True)
    expected = theirs.sentence_score(candidate, references).score / 100
    assert value_of(Bleu4(), candidate, references) == pytest.approx(expected, abs=1e-9)


@settings(max_examples=100, deadline=None)
@given(words, words | st.just("!"))
def test_rouge_l_is_the_library_s(candidate: str, reference: str) -> None:
    theirs = RougeScorer(["rougeL"]).score(reference, candidate)["rougeL"]
    assert RougeL().precision_and_recall(reference, candidate) == (theirs.precision, theirs.recall)


def test_rouge_l_of_long_texts_takes_no_table() -> None:
    tracemalloc.start()
    value_of(RougeL(), "www." * 10_000, ["word " * 3_000])
    held = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert held < 2**24


def test_references_alone_and_together() -> None:
    second = "there is a cat on the mat"  # precision 4/6, recall 4/7 of a common subsequence of 4
    assert value_of(RougeL(), CAT, CATS[:1]) == pytest.approx(0.833333333)
    assert value_of(RougeL(), CAT, [second]) == pytest.approx(0.615384615)
    assert value_of(RougeL(aggregation="standard"), CAT, CATS) == pytest.approx(0.833333333)
    assert value_of(RougeL(aggregation="single"), CAT, [second, CATS[0]]) == pytest.approx(0.615384615)
    assert value_of(RougeL(aggregation="avg"), CAT, CATS) == pytest.approx((0.833333333 + 0.615384615) / 2)
    assert value_of(RougeL(aggregation="max"), CAT, CATS[::-1]) == pytest.approx(0.833333333)


def test_delta_bleu_vectors() -> None:
    texts = [text.split() for text in ("i like coffee", "you like tea", "i hate tea")]
    weights = (1, 1, -1)
    good, bad = ["i", "like", "tea"], ["i", "hate", "coffee"]
    assert weighted_precision(good, texts, weights, 1) == 1
    assert weighted_precision(good, texts, weights, 2) == 1
    assert weighted_precision(bad, texts, weights, 1) == pytest.approx(1 / 3)
    assert weighted_precision(bad, texts, weights, 2) == pytest.approx(-0.5)
    assert delta_bleu(good, texts, weights, order=2) == 1
    assert delta_bleu(bad, texts, weights, order=2) == 0
    assert delta_bleu(bad, texts, weights, order=1) == pytest.approx(1 / 3)
    scores = DeltaBleu(weights=weights).score(
        ["I like tea", "I hate coffee"], [["hi"]] * 2, [["i like coffee", "you like tea", "i hate tea"]] * 2
    )
    assert scores.values.tolist() == [1, 0]
    assert scores.signature["weights"] == "1,1,-1"


@settings(max_examples=60, deadline=None)
@given(words, st.lists(words, min_size=1, max_size=3))
def test_delta_bleu_with_equal_weights_is_bleu(candidate: str, references: list[str]) -> None:
    plain = value_of(Bleu2(smoothing="none"), candidate, references)
    assert value_of(DeltaBleu(), candidate, references) == pytest.approx(plain, abs=1e-9)


def test_delta_bleu_refuses_what_it_cannot_weigh() -> None:
    for weights in [(-1, 0), (1, math.nan), (), "1,x", ""]:
        refused(ValueError, "weights", DeltaBleu, weights=weights)
    assert DeltaBleu(weights="1,0.5,-1").weights == (1, 0.5, -1)
    refused(
        dialeval.BadRow, "row 1", lambda: DeltaBleu(weights=(1, -1)).score(["a", "b"], [["x"]] * 2, [["a", "b"], ["c"]])
    )


@pytest.fixture
def wordnet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = write_wordnet(tmp_path / "wordnet")
    monkeypatch.setenv("WNSEARCHDIR", str(folder))
    return folder


def test_meteor_matches_forms_and_synonyms(wordnet: Path) -> None:
    metric = Meteor()
    assert metric.signature()["wordnet"] == "3.0"
    # All three words aligned in one chunk: F = 1, penalty 0.5 · (1/3)³.
    expected = 1 - 0.5 * (1 / 3) ** 3
    assert value_of(metric, "the auto stopped", ["the car stopped"]) == pytest.approx(expected)
    # Two of three words in two chunks: P = R = F = 2/3, penalty 0.5 · (2/2)³.
    assert value_of(metric, "the tree stopped", ["the car stopped"]) == pytest.approx(2 / 3 * 0.5)
    assert value_of(metric, "the auto stopped", ["nothing", "the car stopped"]) == pytest.approx(expected)


def test_meteor_says_what_it_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import nltk

    monkeypatch.delenv("WNSEARCHDIR", raising=False)
    monkeypatch.setattr(nltk.data, "path", [])
    monkeypatch.setattr("dialeval.baselines.words.DEBIAN", tmp_path)
    refused(MissingResource, "nltk.downloader wordnet", Meteor)
    monkeypatch.setenv("WNSEARCHDIR", str(tmp_path / "nowhere"))
    refused(MissingResource, "nowhere", Meteor)


def word_metrics(wordnet: Path) -> list[ReferenceMetric]:
    return [Bleu1(), Bleu4(smoothing="none"), DeltaBleu(), RougeL(), Meteor()]


def test_blank_and_foreign_text_is_no_accident(wordnet: Path) -> None:
    for metric in word_metrics(wordnet):
        scores = metric.score(["", "a b", "…"], [["x"]] * 3, [["a b"], [""], ["a"]], empty="score")
        assert scores.values.tolist() == [0, 0, 0], metric.info.name
        assert scores.n_empty == 1


def test_a_missing_reference_is_refused() -> None:
    refused(dialeval.BadRow, "row 1", lambda: Bleu2().score(["a", "b"], [["x"]] * 2, [["a"], []]))


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(words, st.lists(words, min_size=1, max_size=3)), min_size=1, max_size=5), st.randoms())
def test_a_row_depends_on_that_row_alone(rows: list[tuple[str, list[str]]], random: object) -> None:
    for metric in (Bleu2(aggregation="avg"), Bleu2(), RougeL(), DeltaBleu()):
        together = metric.score([row[0] for row in rows], [["x"]] * len(rows), [row[1] for row in rows]).values
        alone = [value_of(metric, *row) for row in rows]
        assert together.tolist() == alone
        assert all(0 <= value <= 1 for value in alone)


def test_unknown_options_are_refused_with_the_choices() -> None:
    for make, message in [
        (lambda: Bleu2(smoothing="floor"), "add-epsilon"),
        (lambda: Bleu2(aggregation="median"), "single"),
        (lambda: DeltaBleu(order=0), "at least 1"),
    ]:
        refused(ValueError, message, make)


@pytest.mark.parametrize(("name", "expected"), [("rouge1", 5 / 6), ("rouge2", 3 / 5)])
def test_rouge_of_single_words_and_of_pairs(name: str, expected: float) -> None:
    scores = dialeval.load(name).score(["the cat sat on the mat"], [["where is it?"]], ["the cat is on the mat"])
    assert scores.values[0] == pytest.approx(expected)


def test_smoothing_of_an_order_without_a_match() -> None:
    # Three four-grams, none shared: `exp` counts half a match, `add-epsilon` a tenth of one.
    shared = 5 / 6 * 3 / 5 * 1 / 4
    assert value_of(Bleu4(smoothing="exp"), CAT, CATS[:1]) == pytest.approx((shared / 6) ** 0.25)
    assert value_of(Bleu4(smoothing="add-epsilon"), CAT, CATS[:1]) == pytest.approx((shared / 30) ** 0.25)
