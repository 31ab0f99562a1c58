"""A judge that learns from its user's ratings: what changes, what must not, and what is said about it."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr

import dialeval
from dialeval.checkpoints.config import CheckpointConfig
from dialeval.core.exchange import Exchange
from dialeval.judge import fitting
from dialeval.judge.lexical import IDF_BUCKETS, Texts
from dialeval.judge.metric import Judge, ReadReplies
from dialeval.judge.network import HEADS
from dialeval.judge.row_signs import COUNTS, read_signs
from dialeval.judge.rule import FEATURES, TURN_VOTES, VETO_LEAVES
from dialeval.readers import Source
from dialeval.statistics.raters import human_ceiling
from dialeval.tuning import Tuned, crossing, tune
from dialeval.tuning.crossing import BeforeAfter, WithInterval, agreement_where_known, divide, out_of_fold
from dialeval.tuning.opinions import Preferences, Ratings, read_opinions
from rated_rows import FACT_WORDS, compared, permuted, rated, small_judge
from refusals import refused


@pytest.fixture(scope="module")
def judge(tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_judge(tiny_encoder, tmp_path_factory.mktemp("judge") / "judge-tiny")


def tuned(rows: Any, judge: Path, out: Path, **options: Any) -> Tuned:
    return tune(rows, out=out, checkpoint=judge, resamples=300, device="cpu", **options)


@pytest.fixture(scope="module")
def done(judge: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Tuned, Path]:
    """Tuned to 300 rated rows."""
    folder = tmp_path_factory.mktemp("tuned") / "mine"
    return tuned(rated(300), judge, folder), folder


def values_of(folder: Path, rows: list[dict[str, Any]]) -> Any:
    return Judge(folder, device="cpu").score_exchanges(read_opinions(Source(rows)).exchanges).values


def some_read(count: int, width: int = 8, seed: int = 1) -> ReadReplies:
    """Made-up replies, as a judge reads them."""
    rng = np.random.default_rng(seed)
    widths = (width, len(HEADS) + len(FEATURES), len(COUNTS))
    inputs = rng.normal(size=(count, sum(widths)))
    signs = read_signs(Exchange(("Hello.",), "Good day."), np.zeros(IDF_BUCKETS), Texts())
    every = np.ones((count, len(FEATURES)))
    voted = 0.5 + inputs[:, 0] / 10
    return ReadReplies(inputs, widths, every, [signs] * count, voted, every, TURN_VOTES, 0, np.full(count, np.nan))


def test_what_people_go_by_is_found_and_learned(done: tuple[Tuned, Path]) -> None:
    outcome, folder = done
    known = {name: value for name, value in outcome.aspects.items() if value is not None}
    assert max(known, key=lambda name: known[name]) == "uses_facts"
    assert known["uses_facts"] > 0.5
    assert outcome.aspects["reaction"] is None, "no row has a next turn"
    assert "uses_facts" in str(outcome)
    assert outcome.changed
    assert outcome.comparison.after.value > outcome.comparison.before.value + 0.1
    assert outcome.comparison.difference.low > 0
    assert outcome.comparison.difference.value == pytest.approx(
        outcome.comparison.after.value - outcome.comparison.before.value
    )
    assert CheckpointConfig.read(folder).architecture["corrected"] is True


def test_a_tuned_judge_keeps_its_vetoes(done: tuple[Tuned, Path]) -> None:
    outcome, folder = done
    assert "not_repetitive" not in outcome.fitted.lifted
    again = [{**row, "response": f"{row['response']} " * 5} for row in rated(20, seed=5)]
    # A word of the question counts as no repetition, so that one of these is not quite the last in rank.
    assert values_of(folder, again).max() <= VETO_LEAVES + 0.02


@pytest.mark.slow
def test_ratings_can_speak_against_vetoes(judge: Path, tmp_path: Path) -> None:
    """Where people do not mind that half of the replies say the same again and again."""
    rows = rated(300)
    for row in rows[::2]:
        row["response"] = f"{row['response']} " * 5
    outcome = tuned(rows, judge, tmp_path / "mine")
    assert "not_repetitive" in outcome.fitted.lifted
    assert "not_repetitive" in str(CheckpointConfig.read(tmp_path / "mine").architecture["lifted"])
    assert "not_repetitive" in str(outcome)
    assert values_of(tmp_path / "mine", rows[::2]).max() > VETO_LEAVES + 0.1


def test_what_it_reaches_elsewhere_is_what_it_promised(judge: Path, done: tuple[Tuned, Path]) -> None:
    """On rows that nothing was fitted to, agreement lies where the held-out contexts said, and beats the old one."""
    outcome, folder = done
    fresh = read_opinions(Source(rated(300, seed=7)))
    reached = {}
    for name, checkpoint in (("before", judge), ("after", folder)):
        scores = Judge(checkpoint, device="cpu").score_exchanges(fresh.exchanges)
        reached[name] = spearmanr(scores.values, fresh.targets).statistic
    assert reached["after"] == pytest.approx(outcome.comparison.after.value, abs=0.1)
    assert reached["before"] == pytest.approx(outcome.comparison.before.value, abs=0.15)


@pytest.mark.slow
def test_ratings_without_sense_gain_nothing(judge: Path, tmp_path: Path) -> None:
    kept = 0
    for seed in range(4):
        outcome = tuned(permuted(rated(150, seed=seed), seed), judge, tmp_path / f"senseless-{seed}", seed=seed)
        kept += not outcome.changed
        if not outcome.changed:
            fresh = rated(30, seed=9)
            assert np.array_equal(values_of(tmp_path / f"senseless-{seed}", fresh), values_of(judge, fresh))
            assert "no gain" in str(outcome)
            config = CheckpointConfig.read(tmp_path / f"senseless-{seed}")
            assert config.quantiles == CheckpointConfig.read(judge).quantiles
            assert " gained" in (tmp_path / f"senseless-{seed}" / "README.md").read_text()
    assert kept >= 3


def test_to_agree_with_nobody_is_no_gain() -> None:
    """A judge at odds with senseless ratings by chance gains by being at odds no longer, and knows nothing still."""
    up, flat = WithInterval(0.2, 0.1, 0.3), WithInterval(0.0, -0.1, 0.1)
    assert BeforeAfter(flat, up, up, sure=0.95, chance=0.0).gains
    assert not BeforeAfter(flat, up, up, sure=0.85, chance=0.0).gains
    assert not BeforeAfter(WithInterval(-0.2, -0.3, -0.1), flat, up, sure=1.0, chance=0.0).gains
    assert not BeforeAfter(flat, WithInterval(0.55, 0.49, 0.6), up, sure=1.0, chance=0.5).gains


@pytest.mark.slow
def test_preferences_lead_the_same_way(judge: Path, tmp_path: Path) -> None:
    outcome = tuned(compared(rated(600)), judge, tmp_path / "mine")
    assert outcome.opinions.unit == "pairs of replies"
    assert outcome.changed
    assert outcome.comparison.after.value > 0.75
    assert outcome.coverage is None
    before, after = (Judge(one, device="cpu").array("turn_interval") for one in (judge, tmp_path / "mine"))
    assert np.array_equal(before, after), "preferences do not say where single replies lie"


def test_a_swapped_pair_says_the_same() -> None:
    pairs = compared(rated(150))
    other = {"a": "b", "b": "a", "tie": "tie"}
    swapped = [
        {**p, "response_a": p["response_b"], "response_b": p["response_a"], "preferred": other[p["preferred"]]}
        for p in pairs
    ]
    read, chosen = some_read(100), np.arange(50)
    around = np.roll(np.arange(100), 50)
    turned = replace(read, inputs=read.inputs[around], voted=read.voted[around])
    one, two = read_opinions(Source(pairs)), read_opinions(Source(swapped))
    first, last = (crossing.fit_correction(opinions, some, chosen) for opinions, some in ((one, read), (two, turned)))
    assert first == pytest.approx(last)
    counts = np.ones((1, one.contexts))
    agreed = [
        opinions.agreement(opinions.of_opinions(some.corrected(first).values), chosen)(counts)
        for opinions, some in ((one, read), (two, turned))
    ]
    assert agreed[0] == agreed[1]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 30), min_size=20, max_size=200), st.integers(0, 5))
def test_folds_never_divide_a_context(groups: list[int], seed: int) -> None:
    folds = divide(np.array(groups), 5, seed)
    for group in set(groups):
        assert len({int(fold) for fold, one in zip(folds, groups, strict=True) if one == group}) == 1
    sizes = np.bincount(folds, minlength=5)
    assert sizes.max() - sizes.min() <= max(groups.count(one) for one in groups)


def test_a_value_out_of_fold_has_not_seen_its_own_context() -> None:
    """With ratings that only name their context, whoever saw them would agree; whoever did not cannot."""
    rng = np.random.default_rng(0)
    read = some_read(120)
    opinions = Ratings((), rng.random(120), np.arange(120) // 3)
    (first,) = out_of_fold(opinions, read, 0, ())
    folds = divide(opinions.groups, 5, 0)
    turned = opinions.targets.copy()
    turned[folds == 2] = 1 - turned[folds == 2]
    (second,) = out_of_fold(Ratings((), turned, opinions.groups), read, 0, ())
    assert np.array_equal(first[folds == 2], second[folds == 2])
    assert not np.array_equal(first[folds != 2], second[folds != 2])


@pytest.mark.slow
def test_the_interval_covers_new_ratings(judge: Path, tmp_path: Path) -> None:
    outcome = tuned(rated(400, seed=1, noise=1.0), judge, tmp_path / "mine")
    assert outcome.coverage == pytest.approx(0.9, abs=0.05)
    known = np.sort([row["rating"] for row in rated(400, seed=1, noise=1.0)])
    fresh = rated(400, seed=2, noise=1.0)
    targets = np.searchsorted(known, [row["rating"] for row in fresh]) / len(known)
    last = Judge(tmp_path / "mine", device="cpu")
    scores = last.score_exchanges(read_opinions(Source(fresh)).exchanges)
    covered = fitting.covered(last.interval("turn"), scores.values, targets)
    assert covered == pytest.approx(0.9, abs=0.05)
    low, high = last.interval("turn").around(scores.values)
    assert float((high - low).mean()) < 0.8, "an interval of everything covers, too"


def test_few_rows_are_warned_of_and_very_few_refused(judge: Path, tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="60 .*100"):
        tuned(rated(60), judge, tmp_path / "few")
    refused(ValueError, "29 ", lambda: tuned(rated(29), judge, tmp_path / "none"))
    refused(ValueError, "9 contexts", lambda: tuned(rated(63, replies=7)[:60], judge, tmp_path / "none"))
    same = [{**row, "rating": 3} for row in rated(60)]
    refused(ValueError, "ratings", tuned, same, judge, tmp_path / "none")
    ties = [{**pair, "preferred": "tie"} for pair in compared(rated(180))]
    refused(ValueError, "tie", tuned, ties, judge, tmp_path / "none")
    assert not (tmp_path / "none").exists()


@pytest.mark.slow
def test_several_raters_have_a_ceiling(judge: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = [
        {**row, "rating": None, "ratings": [row["rating"] + float(rng.normal()) for _ in range(3)]}
        for row in rated(120)
    ]
    outcome = tuned(rows, judge, tmp_path / "mine")
    assert outcome.ceiling == pytest.approx(human_ceiling([row["ratings"] for row in rows]))
    assert outcome.raters == 3
    assert f"{outcome.ceiling:.3f}" in str(outcome)
    one_each = [{**row, "ratings": None, "rating": one} for row in rows for one in row["ratings"]]
    apart = read_opinions(Source(one_each))
    assert isinstance(apart, Ratings)
    assert len(apart) == 120, "a row for each rater is still one reply"
    assert human_ceiling(apart.raters) == pytest.approx(outcome.ceiling)
    assert tuned(rated(120), judge, tmp_path / "alone").ceiling is None


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"rating": None}, "rating"),
        ({"rating": "good"}, "rating"),
        ({"rating": float("inf")}, "rating"),
        ({"ratings": [1, "x"]}, "ratings[1]"),
        ({"response": "  "}, "response"),
        ({"context": None}, "context"),
        ({"preferred": "a"}, "preferred"),
    ],
)
def test_a_bad_row_is_named(changed: dict[str, Any], named: str, judge: Path, tmp_path: Path) -> None:
    rows = rated(60)
    rows[31] = {**rows[31], **changed}
    assert "row 31" in refused(ValueError, named, tuned, rows, judge, tmp_path / "mine")
    assert not (tmp_path / "mine").exists()


def test_a_bad_pair_is_named() -> None:
    pairs = compared(rated(60))
    both = [*pairs[:3], {**pairs[3], "preferred": "both"}]
    refused(dialeval.BadRow, "preferred", read_opinions, Source(both))
    alone = {"context": ["x"], "response_a": "y", "preferred": "a"}
    refused(dialeval.BadRow, "response_b", read_opinions, Source([alone]))


def test_the_record_holds_figures_and_no_text(done: tuple[Tuned, Path]) -> None:
    outcome, folder = done
    record = json.loads((folder / "config.json").read_text())["training"]["tuned"]
    assert (record["opinions"], record["contexts"], record["kind"]) == (300, 100, "rated replies")
    assert record["after"][0] == pytest.approx(outcome.comparison.after.value, abs=1e-4)
    card = (folder / "README.md").read_text()
    assert re.search(r"\b300\b.*\b100 contexts\b", card)
    assert str(record["after"][0]) in card
    for path in folder.rglob("*"):
        if path.is_file():
            assert not any(word.encode() in path.read_bytes() for word in FACT_WORDS), path.name


@pytest.mark.slow
def test_percentiles_that_no_longer_hold_are_gone_or_new(judge: Path, done: tuple[Tuned, Path], tmp_path: Path) -> None:
    outcome, folder = done
    row = rated(3, seed=4)[0]
    without = dialeval.load("judge", checkpoint=folder, device="cpu")
    refused(ValueError, "quantiles", without.score, [row["response"]], [row["context"]], scale="human_percentile")
    assert not outcome.has_percentile
    assert 'scale="human_percentile"' not in (folder / "README.md").read_text()
    former = set(CheckpointConfig.read(judge).quantiles)
    assert set(CheckpointConfig.read(folder).quantiles) == former - {"turn.overall"}
    people = rated(90, seed=11)
    tuned(rated(300), judge, tmp_path / "mine", human=people)
    last = dialeval.load("judge", checkpoint=tmp_path / "mine", device="cpu")
    responses, contexts, facts = ([row[name] for row in people] for name in ("response", "context", "facts"))
    shares = last.score(responses, contexts, facts=facts, scale="human_percentile").values
    assert float(np.median(shares)) == pytest.approx(0.5, abs=0.03)
    assert shares.min() <= 0.01
    assert shares.max() >= 0.99


def test_agreement_of_preferences_by_hand() -> None:
    pairs = Preferences((), np.array([1.0, -1.0, 0.0, 1.0]), np.arange(4))
    # Right, wrong, no opinion, undecided: one and a half of three.
    values = np.array([0.2, 0.1, 0.3, 0.0])
    assert pairs.agreement(values, np.arange(4))(np.ones((1, 4)))[0] == pytest.approx(0.5)


def test_an_aspect_that_is_the_same_everywhere_agrees_with_nothing() -> None:
    opinions = read_opinions(Source(rated(60)))
    same = np.ones(len(opinions.exchanges))
    assert agreement_where_known(opinions, same) is None
    assert agreement_where_known(opinions, np.arange(len(same), dtype=float)) is not None
