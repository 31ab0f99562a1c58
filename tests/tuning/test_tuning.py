"""A judge that learns from its user's ratings: what changes, what must not, and what is said about it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import dialeval
from dialeval.approaches import stack
from dialeval.approaches.judge import FEATURES, Judge
from dialeval.cli import build_app
from dialeval.readers import Source
from dialeval.statistics.raters import human_ceiling
from dialeval.tuning import Tuned, tune
from dialeval.tuning.crossing import BeforeAfter, WithInterval, divide, fit, out_of_fold
from dialeval.tuning.opinions import Preferences, Ratings, read_opinions
from dialeval.weights.config import CheckpointConfig
from rated_rows import FACT_WORDS, compared, permuted, rated, small_judge

FACTS = FEATURES.index("uses_facts")


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


def weights_in(folder: Path) -> list[float]:
    return [float(weight) for weight in Judge(folder, device="cpu").array("turn_weights")]


# --- what is learned -------------------------------------------------------------------------------


def test_the_sign_that_people_go_by_gains_weight(done: tuple[Tuned, Path]) -> None:
    outcome, folder = done
    before, after = outcome.weights["uses_facts"]
    assert before == pytest.approx(0.1)
    assert after > 0.4
    assert outcome.changed
    assert outcome.comparison.after.value > outcome.comparison.before.value + 0.1
    assert outcome.comparison.difference.low > 0
    assert outcome.comparison.difference.value == pytest.approx(
        outcome.comparison.after.value - outcome.comparison.before.value
    )
    written = weights_in(folder)
    assert written == pytest.approx([last for _, last in outcome.weights.values()], abs=1e-6)
    assert min(written) >= 0
    assert sum(written) == pytest.approx(0.1 * len(FEATURES), abs=1e-5), "only proportions change, not the sum"


def test_tables_and_signs_stay_the_checkpoints(judge: Path, done: tuple[Tuned, Path]) -> None:
    first, last = Judge(judge, device="cpu"), Judge(done[1], device="cpu")
    for name in ("turn_tables", "dialogue_weights", "dialogue_interval", "rarity", "human_mean", "random_precision"):
        assert np.array_equal(first.array(name), last.array(name)), name
    assert not np.array_equal(first.array("turn_interval"), last.array("turn_interval"))


def test_what_it_reaches_elsewhere_is_what_it_promised(judge: Path, done: tuple[Tuned, Path]) -> None:
    """On rows that nothing was fitted to, agreement lies where the held-out contexts said, and beats the old one."""
    outcome, folder = done
    fresh = read_opinions(Source(rated(300, seed=7)))
    reached = {}
    for name, checkpoint in (("before", judge), ("after", folder)):
        scores = Judge(checkpoint, device="cpu").score_exchanges(fresh.exchanges)
        reached[name] = stack._spearman(scores.values, fresh.targets)
    assert reached["after"] == pytest.approx(outcome.comparison.after.value, abs=0.1)
    assert reached["before"] == pytest.approx(outcome.comparison.before.value, abs=0.15)


@pytest.mark.slow
def test_ratings_without_sense_gain_nothing(judge: Path, tmp_path: Path) -> None:
    kept = 0
    for seed in range(4):
        outcome = tuned(permuted(rated(150, seed=seed), seed), judge, tmp_path / f"senseless-{seed}", seed=seed)
        kept += not outcome.changed
        if not outcome.changed:
            assert weights_in(tmp_path / f"senseless-{seed}") == pytest.approx([0.1] * len(FEATURES), abs=1e-6)
            assert "no gain" in str(outcome)
            config = CheckpointConfig.read(tmp_path / f"senseless-{seed}")
            assert config.quantiles == CheckpointConfig.read(judge).quantiles
            assert "Nothing was gained" in (tmp_path / f"senseless-{seed}" / "README.md").read_text()
    assert kept >= 3


def test_to_agree_with_nobody_is_no_gain() -> None:
    """A judge at odds with senseless ratings by chance gains by being at odds no longer, and knows nothing still."""
    up, flat = WithInterval(0.2, 0.1, 0.3), WithInterval(0.0, -0.1, 0.1)
    assert BeforeAfter(flat, up, up, sure=0.95, chance=0.0).gains
    assert not BeforeAfter(flat, up, up, sure=0.85, chance=0.0).gains
    assert not BeforeAfter(WithInterval(-0.2, -0.3, -0.1), flat, up, sure=1.0, chance=0.0).gains
    assert not BeforeAfter(flat, WithInterval(0.55, 0.49, 0.6), up, sure=1.0, chance=0.5).gains


def test_preferences_lead_the_same_way(judge: Path, tmp_path: Path) -> None:
    outcome = tuned(compared(rated(600)), judge, tmp_path / "mine")
    assert outcome.opinions.unit == "pairs of replies"
    assert outcome.changed
    assert outcome.weights["uses_facts"][1] > 0.3
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
    ranks = np.random.default_rng(1).random((100, len(FEATURES)))
    turned = np.concatenate([ranks[50:], ranks[:50]])
    old, chosen = np.full(len(FEATURES), 0.1), np.arange(50)
    one, two = read_opinions(Source(pairs)), read_opinions(Source(swapped))
    assert fit(one, ranks, chosen, old, 30.0) == pytest.approx(fit(two, turned, chosen, old, 30.0))
    values = one.values(ranks, old)
    counts = np.ones((1, one.contexts))
    assert one.agreement(values, chosen)(counts) == two.agreement(two.values(turned, old), chosen)(counts)


def test_agreement_of_preferences_by_hand() -> None:
    pairs = Preferences((), np.array([1.0, -1.0, 0.0, 1.0]), np.arange(4))
    # Right, wrong, no opinion, undecided: one and a half of three.
    values = np.array([0.2, 0.1, 0.3, 0.0])
    assert pairs.agreement(values, np.arange(4))(np.ones((1, 4)))[0] == pytest.approx(0.5)


def test_many_opinions_of_the_old_weights_keep_them() -> None:
    rng = np.random.default_rng(3)
    ranks = rng.random((200, len(FEATURES)))
    opinions = Ratings((), ranks[:, 0], np.arange(200))
    old = np.arange(1.0, len(FEATURES) + 1) / 55
    assert fit(opinions, ranks, np.arange(200), old, 1e9) == pytest.approx(old, abs=1e-4)
    free = fit(opinions, ranks, np.arange(200), old, 1e-6)
    assert free[0] == pytest.approx(old.sum(), abs=1e-3)


# --- what is held out ------------------------------------------------------------------------------


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 30), min_size=20, max_size=200), st.integers(0, 5))
def test_folds_never_divide_a_context(groups: list[int], seed: int) -> None:
    folds = divide(np.array(groups), 5, seed)
    for group in set(groups):
        assert len({int(fold) for fold, one in zip(folds, groups, strict=True) if one == group}) == 1
    sizes = np.bincount(folds, minlength=5)
    assert sizes.max() - sizes.min() <= max(groups.count(one) for one in groups)


def test_rows_of_one_context_or_dialogue_are_one_group() -> None:
    rows = rated(30)
    by_context = read_opinions(Source(rows))
    assert by_context.contexts == 10
    assert by_context.groups.tolist() == [at // 3 for at in range(30)]
    named = [{**row, "dialogue": f"d{at // 6}"} for at, row in enumerate(rows)]
    assert read_opinions(Source(named)).groups.tolist() == [at // 6 for at in range(30)]


def test_a_value_out_of_fold_has_not_seen_its_own_context() -> None:
    """With ratings that only name their context, whoever saw them would agree; whoever did not cannot."""
    rng = np.random.default_rng(0)
    ranks = rng.random((120, len(FEATURES)))
    opinions = Ratings((), rng.random(120), np.arange(120) // 3)
    old = np.full(len(FEATURES), 0.1)
    first = out_of_fold(opinions, ranks, old, 0)
    folds = divide(opinions.groups, 5, 0)
    turned = opinions.targets.copy()
    turned[folds == 2] = 1 - turned[folds == 2]
    second = out_of_fold(Ratings((), turned, opinions.groups), ranks, old, 0)
    assert np.array_equal(first[folds == 2], second[folds == 2])
    assert not np.array_equal(first[folds != 2], second[folds != 2])


def test_the_interval_covers_new_ratings(judge: Path, tmp_path: Path) -> None:
    outcome = tuned(rated(400, seed=1, noise=1.0), judge, tmp_path / "mine")
    assert outcome.coverage == pytest.approx(0.9, abs=0.05)
    known = np.sort([row["rating"] for row in rated(400, seed=1, noise=1.0)])
    fresh = rated(400, seed=2, noise=1.0)
    targets = np.searchsorted(known, [row["rating"] for row in fresh]) / len(known)
    last = Judge(tmp_path / "mine", device="cpu")
    scores = last.score_exchanges(read_opinions(Source(fresh)).exchanges)
    covered = stack.covered(last.interval("turn"), scores.values, targets)
    assert covered == pytest.approx(0.9, abs=0.05)
    low, high = last.interval("turn").around(scores.values)
    assert float((high - low).mean()) < 0.8, "an interval of everything covers, too"


def test_few_ratings_share_their_ends() -> None:
    rng = np.random.default_rng(5)
    few = stack.fit_interval(rng.random(39), rng.random(39))
    assert len(set(few.low)) == 1
    assert 0 < few.low[0] < few.high[0] < 1
    assert len(set(stack.fit_interval(rng.random(400), rng.random(400)).low)) == stack.INTERVAL_BINS


# --- how many, and what people say -----------------------------------------------------------------


def test_few_rows_are_warned_of_and_very_few_refused(judge: Path, tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="there are only 60 rated replies; with fewer than 100"):
        tuned(rated(60), judge, tmp_path / "few")
    with pytest.raises(ValueError, match="there are 29 rated replies to 10 contexts; tuning needs at least 30"):
        tuned(rated(29), judge, tmp_path / "none")
    with pytest.raises(ValueError, match="60 rated replies to 9 contexts"):
        tuned(rated(63, replies=7)[:60], judge, tmp_path / "none")
    same = [{**row, "rating": 3} for row in rated(60)]
    with pytest.raises(ValueError, match="all ratings are the same"):
        tuned(same, judge, tmp_path / "none")
    ties = [{**pair, "preferred": "tie"} for pair in compared(rated(180))]
    with pytest.raises(ValueError, match="every pair is a tie"):
        tuned(ties, judge, tmp_path / "none")
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
    assert f"one person with the others: {outcome.ceiling:.3f}" in str(outcome)
    one_each = [{**row, "ratings": None, "rating": one} for row in rows for one in row["ratings"]]
    apart = read_opinions(Source(one_each))
    assert isinstance(apart, Ratings)
    assert len(apart) == 120, "a row for each rater is still one reply"
    assert human_ceiling(apart.raters) == pytest.approx(outcome.ceiling)
    assert tuned(rated(120), judge, tmp_path / "alone").ceiling is None


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"rating": None}, "row 31 .*: rating is missing"),
        ({"rating": "good"}, "row 31 .*: rating is 'good'; pass a number"),
        ({"rating": float("inf")}, "row 31 .*: rating is inf"),
        ({"ratings": [1, "x"]}, r"row 31 .*: ratings\[1\] is 'x'"),
        ({"response": "  "}, "row 31 .*: response is empty"),
        ({"context": None}, "row 31 .*: context is None"),
        ({"preferred": "a"}, "row 31 .*: the row has preferred, unlike the first one"),
    ],
)
def test_a_bad_row_is_named(changed: dict[str, Any], message: str, judge: Path, tmp_path: Path) -> None:
    rows = rated(60)
    rows[31] = {**rows[31], **changed}
    with pytest.raises(ValueError, match=message):
        tuned(rows, judge, tmp_path / "mine")
    assert not (tmp_path / "mine").exists()


def test_a_bad_pair_is_named() -> None:
    pairs = compared(rated(60))
    with pytest.raises(dialeval.BadRow, match=r"row 3 .*preferred is 'both'; write a, b or tie"):
        read_opinions(Source([*pairs[:3], {**pairs[3], "preferred": "both"}]))
    with pytest.raises(dialeval.BadRow, match=r"row 0 .*column 'response_b' is missing"):
        read_opinions(Source([{"context": ["x"], "response_a": "y", "preferred": "a"}]))


def test_every_format_says_the_same(tmp_path: Path) -> None:
    import pandas as pd

    rows = [{**row, "ratings": [row["rating"], row["rating"] + 1]} for row in rated(45)]
    expected = read_opinions(Source(rows))
    assert isinstance(expected, Ratings)
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    pd.DataFrame(rows).to_parquet(tmp_path / "rows.parquet")
    cells = [
        {"context": row["context"][0], "facts": row["facts"][0], "reply": row["response"], "stars": row["rating"],
         "ratings": ";".join(map(str, row["ratings"]))}
        for row in rows
    ]  # fmt: skip
    pd.DataFrame(cells).to_csv(tmp_path / "rows.csv", index=False)
    sources = [Source(tmp_path / "rows.jsonl"), Source(tmp_path / "rows.parquet")]
    sources.append(Source(tmp_path / "rows.csv", columns={"response": "reply", "rating": "stars"}))
    for source in sources:
        found = read_opinions(source)
        assert isinstance(found, Ratings)
        assert found.exchanges == expected.exchanges, source.name
        assert found.targets.tolist() == expected.targets.tolist()
        assert found.raters == expected.raters


def test_columns_of_python(judge: Path, tmp_path: Path, done: tuple[Tuned, Path]) -> None:
    rows = rated(300)
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    again = dialeval.tune(columns, out=tmp_path / "mine", checkpoint=judge, resamples=300, device="cpu")
    assert again.weights == done[0].weights
    assert again.comparison == done[0].comparison
    with pytest.raises(ValueError, match="columns differ in length: 300 in context, 299 in response"):
        tuned({"context": columns["context"], "response": columns["response"][:-1]}, judge, tmp_path / "none")


# --- what is written -------------------------------------------------------------------------------


def test_every_door_understands_the_folder(done: tuple[Tuned, Path], tmp_path: Path) -> None:
    folder = done[1]
    loaded = dialeval.load("judge", checkpoint=folder, device="cpu")
    row = rated(3, seed=4)[0]
    scores = loaded.score([row["response"]], [row["context"]], facts=[row["facts"]])
    assert scores.signature["checkpoint"].startswith("mine@")
    (tmp_path / "rows.jsonl").write_text(json.dumps(row) + "\n")
    arguments = ["score", "-m", "judge", "--checkpoint", str(folder), "-i", str(tmp_path / "rows.jsonl")]
    ended = CliRunner().invoke(build_app(), [*arguments, "-o", str(tmp_path / "out.jsonl"), "--device", "cpu"])
    assert ended.exit_code == 0, ended.output
    found = json.loads((tmp_path / "out.jsonl").read_text())
    assert found["judge"] == pytest.approx(float(scores.values[0]), abs=1e-6)
    from transformers import AutoModel

    dialeval.register_auto_model()
    assert AutoModel.from_pretrained(folder).config.name == "mine"


def test_the_record_holds_figures_and_no_text(done: tuple[Tuned, Path]) -> None:
    outcome, folder = done
    record = json.loads((folder / "config.json").read_text())["training"]["tuned"]
    assert (record["opinions"], record["contexts"], record["kind"]) == (300, 100, "rated replies")
    assert record["after"][0] == pytest.approx(outcome.comparison.after.value, abs=1e-4)
    card = (folder / "README.md").read_text()
    assert "300 rated replies to 100 contexts" in card
    assert str(record["after"][0]) in card
    for path in folder.rglob("*"):
        if path.is_file():
            assert not any(word.encode() in path.read_bytes() for word in FACT_WORDS), path.name


def test_percentiles_that_no_longer_hold_are_gone_or_new(judge: Path, done: tuple[Tuned, Path], tmp_path: Path) -> None:
    outcome, folder = done
    row = rated(3, seed=4)[0]
    given = ([row["response"]], [row["context"]])
    with pytest.raises(ValueError, match="no human quantiles"):
        dialeval.load("judge", checkpoint=folder, device="cpu").score(*given, scale="human_percentile")
    assert not outcome.has_percentile
    assert 'scale="human_percentile"' not in (folder / "README.md").read_text()
    assert set(CheckpointConfig.read(folder).quantiles) == {
        "turn.uses_facts",
        "turn.fluent",
        "turn.not_repetitive",
        "turn.consistent",
        "turn.reaction",
    }
    people = rated(90, seed=11)
    tuned(rated(300), judge, tmp_path / "mine", human=people)
    last = dialeval.load("judge", checkpoint=tmp_path / "mine", device="cpu")
    columns = {name: [row[name] for row in people] for name in ("response", "context", "facts")}
    shares = last.score(
        columns["response"], columns["context"], facts=columns["facts"], scale="human_percentile"
    ).values
    assert float(np.median(shares)) == pytest.approx(0.5, abs=0.03)
    assert shares.min() <= 0.01
    assert shares.max() >= 0.99


def test_tuned_twice(judge: Path, done: tuple[Tuned, Path], tmp_path: Path) -> None:
    again = tuned(rated(120, seed=3), done[1], tmp_path / "again", contaminated_by=["fed_turn"])
    assert again.weights["uses_facts"][0] == pytest.approx(done[0].weights["uses_facts"][1], abs=1e-6)
    config = CheckpointConfig.read(tmp_path / "again")
    assert config.training["tuned"]["earlier"]["opinions"] == 300
    assert config.contaminated_by == ("fed_turn",)
    assert "fed_turn" in (tmp_path / "again" / "README.md").read_text()
