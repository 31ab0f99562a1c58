"""Tuning the adapter as well: what it learns, that held-out contexts decide, and that ranks keep their meaning."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file

from dialeval.approaches import stack
from dialeval.approaches.judge import FEATURES, HEADS, Judge
from dialeval.readers import Source
from dialeval.tuning import adapter, tune
from dialeval.tuning.opinions import Preferences, Ratings, read_opinions
from rated_rows import permuted, rated, small_judge

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def judge(tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_judge(tiny_encoder, tmp_path_factory.mktemp("judge") / "judge-tiny")


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    # A tiny random encoder learns in few steps what is as plain as here, if the steps are long.
    monkeypatch.setattr(adapter, "LEARNING_RATE", 1e-2)


def greetings(count: int) -> list[dict[str, Any]]:
    """People like replies that say hello; no sign of the words sees that."""
    rng = np.random.default_rng(0)
    rows = rated(count)
    for row in rows:
        liked = int(rng.integers(2))
        row["response"] = f"{'hello' if liked else 'dog'} {row['response']}"
        row["rating"] = liked + 0.2 * float(rng.normal())
        row["facts"] = []
    return rows


def adapter_of(folder: Path) -> dict[str, Any]:
    return load_file(folder / "adapter" / "adapter_model.safetensors")


@pytest.mark.slow
def test_what_only_the_encoder_can_see_is_learned(judge: Path, tmp_path: Path) -> None:
    outcome = tune(greetings(180), out=tmp_path / "deep", checkpoint=judge, deep=True, resamples=200, device="cpu")
    assert outcome.deeper is not None
    assert outcome.deeper.gains
    assert outcome.comparison.after.value > outcome.comparison.before.value + 0.3
    first, last = adapter_of(judge), adapter_of(tmp_path / "deep")
    assert any(not np.array_equal(first[name], last[name]) for name in first)
    assert "kept" in str(outcome)
    fresh = read_opinions(Source(greetings(360)[180:]))
    scores = Judge(tmp_path / "deep", device="cpu").score_exchanges(fresh.exchanges)
    assert stack._spearman(scores.values, fresh.targets) > 0.5


@pytest.mark.slow
def test_held_out_contexts_refuse_what_was_only_learned_by_heart(judge: Path, tmp_path: Path) -> None:
    rows = permuted(greetings(120), seed=2)
    outcome = tune(rows, out=tmp_path / "deep", checkpoint=judge, deep=True, resamples=200, device="cpu")
    assert outcome.deeper is not None
    assert not outcome.deeper.gains
    assert "not kept" in str(outcome)
    first, last = adapter_of(judge), adapter_of(tmp_path / "deep")
    assert all(np.array_equal(first[name], last[name]) for name in first)
    tables = [Judge(one, device="cpu").array("turn_tables") for one in (judge, tmp_path / "deep")]
    assert np.array_equal(*tables)


@pytest.mark.slow
def test_no_reply_is_judged_by_who_saw_its_context(judge: Path) -> None:
    """Other opinions about a fold's contexts change nothing about the ranks of that fold."""
    rows = greetings(60)
    opinions = read_opinions(Source(rows))
    features, read, _ = Judge(judge, device="cpu").features_of(opinions.exchanges)
    tables = Judge(judge, device="cpu").array("turn_tables")

    def ranks(one: Any) -> Any:
        return adapter.crossed_ranks(judge, one, features, read, tables, device="cpu", seed=0, advance=lambda _: None)

    held = adapter.divide(opinions.groups, adapter.FOLDS, 0) == 1
    turned = opinions.targets.copy()
    turned[held] = 1 - turned[held]
    first, second = ranks(opinions), ranks(Ratings(opinions.exchanges, turned, opinions.groups))
    assert np.array_equal(first[held], second[held], equal_nan=True)
    assert not np.array_equal(first[~held], second[~held], equal_nan=True)


def test_a_table_moves_with_its_feature() -> None:
    rng = np.random.default_rng(0)
    before = rng.normal(size=500)
    table = np.sort(rng.normal(size=stack.TABLE_SIZE))
    assert adapter.moved(table, before, before) == pytest.approx(table)
    carried = adapter.moved(table, before, 3 * before + 2)
    assert carried == pytest.approx(3 * table + 2)
    assert adapter.moved(table, np.zeros(500), np.zeros(500)) == pytest.approx(table)
    assert stack.mid_ranks(3 * before + 2, carried) == pytest.approx(stack.mid_ranks(before, table), abs=1e-6)
    features = rng.normal(size=(50, len(FEATURES)))
    tables = np.stack([table] * len(FEATURES))
    moved = adapter.moved_tables(tables, features, features + 1)
    for at, name in enumerate(FEATURES):
        is_learned = name in HEADS or name == "human_like"
        assert np.allclose(moved[at], table + 1) == is_learned, name
        assert np.array_equal(moved[at], table) != is_learned, name


def test_the_loss_falls_when_the_liked_reply_leads() -> None:
    logits = torch.zeros(2, len(HEADS))
    logits[0, [HEADS.index(name) for name in adapter.RELEVANCE]] = 3.0
    liked = Ratings((), np.array([1.0, 0.0]), np.arange(2))
    disliked = Ratings((), np.array([0.0, 1.0]), np.arange(2))
    both = np.arange(2)
    assert adapter.loss_of(logits, liked, both).item() == pytest.approx(np.log1p(np.exp(-3)), rel=1e-5)
    assert adapter.loss_of(logits, disliked, both).item() == pytest.approx(np.log1p(np.exp(3)), rel=1e-5)
    pair = Preferences((), np.array([1.0]), np.arange(1))
    assert adapter.loss_of(logits, pair, np.arange(1)).item() == pytest.approx(np.log1p(np.exp(-3)), rel=1e-5)
