"""`python -m reproduce features`: conicity and normality of the features of replies, from the shell to a file."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_limits
from typer.testing import CliRunner, Result

from dialeval.papers.feature_set import FrozenFeatures
from reproduce.__main__ import build_app
from reproduce.feature_statistics import conicity, normality
from reproduce.features import feature_map, replies_of, study
from toy_benchmark import labelled_rows, write_rows


def features(*options: str | Path) -> Result:
    return CliRunner().invoke(build_app(), ["features", *map(str, options)])


def test_labelled_replies_by_kind(tmp_path: Path) -> None:
    """Features by hand: conicity per context, people are the positives."""
    replies = replies_of(str(write_rows(tmp_path / "toy.jsonl", labelled_rows("toy", contexts=2))))
    assert replies.human == {"positive"}
    draw = np.random.default_rng(0).normal(size=(len(replies.labels), 3))
    shown = study(replies, draw.astype(np.float32))
    labels = np.array(replies.labels)
    contexts = np.array([exchange.context[0] for exchange in replies.exchanges])
    for name, kept in (("positive", ["positive"]), ("positive and random", ["positive", "random"])):
        own = [
            draw[np.isin(labels, kept) & (contexts == context)].astype(np.float32) for context in sorted(set(contexts))
        ]
        wanted = [conicity(group) for group in own if len(group) > 1]
        assert shown["conicity"][name] == {"mean": pytest.approx(np.mean(wanted)), "contexts": len(wanted)}
    tested = normality(draw[labels == "positive"].astype(np.float32))
    assert shown["normality"] == tested.to_dict()


def test_from_the_shell(tiny_encoder: Path, tmp_path: Path) -> None:
    rows = [
        {"context": [f"do you like the {noun}"], "response": f"yes i like the {noun}"}
        for noun in "fish dog cat".split()
    ]
    file = write_rows(tmp_path / "people.jsonl", [*rows, *({**row, "response": "no thank you"} for row in rows)])
    done = features("-i", file, "--encoder", tiny_encoder, "--plot", "pca", "-o", tmp_path / "out")
    assert done.exit_code == 0, done.stderr
    found = json.loads((tmp_path / "out" / "features.json").read_text())
    exchanges = replies_of(str(file)).exchanges
    direct = FrozenFeatures(tiny_encoder).of(exchanges).rows
    assert found["conicity"]["all replies"]["contexts"] == 3
    assert found["conicity"]["all replies"]["mean"] == pytest.approx(
        np.mean([conicity(direct[[n, n + 3]]) for n in range(3)])
    )
    assert found["normality"]["w_mean"] == pytest.approx(normality(direct).w_mean)
    assert f"W and p pooled {found['normality']['pooled_mean']:.2f}" in done.stdout
    assert str(tmp_path) not in json.dumps(found)
    assert (tmp_path / "out" / "pca.png").stat().st_size > 1000
    refused = features("-i", file, "-m", "bleu2", "-o", tmp_path / "out")
    assert refused.exit_code == 2
    assert "bleu2" in refused.stderr


def test_features_in_two_dimensions_by_tsne() -> None:
    cloud = np.random.default_rng(0).normal(size=(40, 6)) * [9, 4, 1, 1, 1, 1]
    # On a busy machine the threads of t-SNE mostly wait for each other.
    with threadpool_limits(1):
        figures = [feature_map(cloud, ["a"] * 20 + ["b"] * 20, method="tsne", seed=3) for _ in range(2)]
    first, second = ([line.get_xydata() for line in figure.axes[0].lines] for figure in figures)
    assert [points.shape for points in first] == [(20, 2), (20, 2)]
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))


def test_unused_dimensions_are_constant() -> None:
    draw = np.random.default_rng(0).normal(size=(20, 3)) * [1, 1, 1e-32]
    assert normality(draw).constant == 1
