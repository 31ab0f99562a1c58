"""The judge over a tiny encoder with tables and weights set by hand: values, aspects, reasons, intervals."""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dialeval.core.exchange import BadRow, Dialogue, Exchange
from dialeval.encoders.layout import MAX_WINDOWS
from dialeval.judge import fitting, lexical, rule
from dialeval.judge.metric import Encoded, Judge, turn_features
from dialeval.judge.network import ANSWER_WORDS, HEADS, INTERVAL_BINS, TABLE_SIZE
from dialeval.judge.reasons import aspect_moves, reason
from dialeval.judge.row_signs import DialogueSigns, judged_side
from dialeval.papers.learned import rank_all
from refusals import refused
from small_checkpoints import small_checkpoint


@pytest.fixture(scope="module")
def metric(tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Judge:
    """Every feature between its least and its largest value in a few rows; an interval."""
    made = Judge(
        small_checkpoint("judge", tiny_encoder, tmp_path_factory.mktemp("judge") / "checkpoint"), reasons="full"
    )
    made.network.set_array("rarity", np.full(lexical.IDF_BUCKETS, 5.0))
    rows = made.features_of(made_rows())[0]
    tables = np.stack([fitting.reference_table(column) for column in rows.T])
    made.network.set_array("turn_tables", tables)
    edges = np.linspace(0, 1, INTERVAL_BINS + 1)
    ends = np.linspace(0, 0.4, INTERVAL_BINS), np.linspace(0.6, 1, INTERVAL_BINS)
    interval = np.stack([edges, *(np.append(end, end[-1]) for end in ends)])
    for level in ("turn", "dialogue"):
        made.network.set_array(f"{level}_interval", interval)
    return made


def made_rows() -> list[Any]:
    facts = ("i have a dog", "i like fish and chips")
    said = ["i am fine thanks", "do you like fish do you like fish", "my dog", "cat cat cat cat", "see you next week"]
    after = ["great, thanks!", "what?", None, "i already said that", "yes please"]
    return [
        Exchange(("hello there", "how are you today"), text, facts=facts if number % 2 else (), following=after[number])
        for number, text in enumerate(said)
    ]


def ranks_of(metric: Judge, rows: list[Any]) -> Any:
    features, read = metric.features_of(rows)
    return rule.turn_ranks(features, read, metric.network.tables("turn"))


def test_contributions_are_all_that_moved_a_value(metric: Judge) -> None:
    rows = made_rows()
    moved = rule.turn_moves(ranks := ranks_of(metric, rows), rule.vetoes(ranks), rule.TURN_VOTES)
    judged = metric.judge(rows)
    for at, value in enumerate(judged.values):
        moves = aspect_moves(dict(zip(rule.FEATURES, moved[at], strict=True)), rule.ASPECTS)
        assert math.fsum(moves.values()) == pytest.approx(value - 0.5, abs=1e-12)
    assert np.ptp(judged.values) > 0.05
    assert {name for names in rule.ASPECTS.values() for name in names} == set(rule.FEATURES)
    assert {name for names in rule.DIALOGUE_ASPECTS.values() for name in names} == set(rule.DIALOGUE_FEATURES)


def test_reasons_name_the_largest_aspects_first(metric: Judge) -> None:
    rows = made_rows()
    features, read = metric.features_of(rows)
    ranks = rule.turn_ranks(features, read, metric.network.tables("turn"))
    moved = rule.turn_moves(ranks, rule.vetoes(ranks), rule.TURN_VOTES)
    for at, given in enumerate(metric.judge(rows).reasons):
        moves = aspect_moves(dict(zip(rule.FEATURES, moved[at], strict=True)), rule.ASPECTS)
        first = []
        if moves.get("respectful", 0.0) <= min([-0.01, *moves.values()]):
            first = [moves.pop("respectful")]
        wanted = sorted((amount for amount in moves.values() if abs(amount) >= 0.01), key=lambda amount: -abs(amount))
        told = [part.rpartition(" [")[2].rstrip("].") for part in given.split("; ")]
        assert told == [f"{one:+.2f}" for one in first + wanted]
    assert read[1].repetition.phrase == "do you like fish"


def test_an_insult_is_named_first_where_it_took_most(metric: Judge) -> None:
    _, (read,) = metric.features_of([Exchange(("hello there",), "you are an idiot")])
    aspects = {"relevant": ["next"], "respectful": ["respectful"]}
    for taken in (-0.1, -0.5):
        why = reason({"next": -0.4, "respectful": taken}, aspects, read, {})
        assert why.startswith("Is rude") is (taken < -0.4)
    named = reason(
        {"respectful": -0.5}, aspects | {"relevant": []}, replace(read, passages={"respectful": "You fool."}), {}
    )
    assert named == 'Is rude ("You fool.").'


def test_a_missing_input_is_a_missing_aspect(metric: Judge) -> None:
    judged = metric.judge(made_rows())
    assert np.isfinite(judged.aspects["uses_facts"]).tolist() == [False, True, False, True, False]
    assert np.isfinite(judged.aspects["reaction"]).tolist() == [True, True, False, True, True]
    for aspect in ("relevant", "specific", "fluent", "not_repetitive"):
        assert np.isfinite(judged.aspects[aspect]).all()
    without = metric.judge([replace(row, facts=(), following=None) for row in made_rows()])
    assert np.isnan(without.aspects["uses_facts"]).all()
    assert np.isnan(without.aspects["reaction"]).all()
    assert np.isfinite(without.values).all()
    for given in without.reasons:
        assert "known" not in given
        assert "fact" not in given
        assert "other side" not in given


def test_aspects_are_means_of_their_features_ranks_by_votes(metric: Judge) -> None:
    row = made_rows()[1]
    ranks = ranks_of(metric, [row])[0]
    of = dict(zip(rule.FEATURES, ranks, strict=True))
    found = {name: column[0] for name, column in metric.judge([row]).aspects.items()}
    others = of["next"] + of["valid"] + of["human_like"]
    assert found["relevant"] == pytest.approx((2.5 * of["follows"] + 0.5 * others) / 4)
    assert found["specific"] == pytest.approx(of["specific"])
    assert found["fluent"] == pytest.approx(rule.soundness(of["fluent"]))


def test_intervals_and_scales(metric: Judge) -> None:
    rows = made_rows()
    scores = metric.score_exchanges(rows)
    assert scores.interval is not None
    assert scores.interval.shape == (5, 2)
    # Middles of the bins are 0.1, 0.3, 0.5, 0.7, 0.9; between them the ends lie on a line: 0.5 value - 0.05 and + 0.55.
    assert scores.interval[:, 0] == pytest.approx(np.clip(0.5 * scores.values - 0.05, 0, 0.4), abs=1e-8)
    assert scores.interval[:, 1] == pytest.approx(np.clip(0.5 * scores.values + 0.55, 0.6, 1))
    percent = metric.score_exchanges(rows, scale="human_percentile")
    assert percent.interval is None
    assert percent.reasons == scores.reasons
    known = percent.aspects["uses_facts"]
    assert np.isfinite(known).tolist() == [False, True, False, True, False]
    assert ((known[[1, 3]] >= 0) & (known[[1, 3]] <= 1)).all()


def test_a_row_is_judged_alone(metric: Judge) -> None:
    rows = made_rows()
    whole = metric.judge(rows)
    for at, row in enumerate(rows):
        one = metric.judge([row])
        assert one.values[0] == pytest.approx(whole.values[at], abs=1e-6)
        assert one.reasons[0] == whole.reasons[at]


# --- wording ---------------------------------------------------------------------------------------


def test_a_reply_without_a_word_is_the_worst_and_says_so(metric: Judge) -> None:
    context, facts = ("hello there", "how are you today"), ("i have a dog",)
    said = {"": "Is blank", " \n": "Is blank"} | {text: f'Says no word ("{text}")' for text in ("...", "\U0001f600")}
    judged = metric.judge([Exchange(context, text, facts=facts) for text in said])
    assert judged.values == pytest.approx(np.zeros(len(said)))
    assert judged.reasons == tuple(f"{one} [-0.50]." for one in said.values())
    assert np.isnan(judged.aspects["not_repetitive"]).all()  # who says nothing cannot repeat anything
    for aspect in ("relevant", "specific", "fluent", "uses_facts"):
        assert judged.aspects[aspect] == pytest.approx(np.zeros(len(said)))
    # Without facts none are missed, and what follows keeps its own weight: the rest adds up to a half less it.
    (alone,) = metric.judge([Exchange(context, "", following="great, i love that!")]).aspects["uses_facts"]
    assert np.isnan(alone)
    followed = metric.judge([Exchange(context, "", following="great, thanks!")])
    # The reaction has two votes of seven, and wording that is the worst there is leaves .3 of it.
    assert followed.values == pytest.approx(followed.aspects["reaction"] * 2 / 7 * rule.VETO_LEAVES)
    first, second = followed.reasons[0].split("; ")
    assert first.startswith("Is blank [-0.")
    assert second.startswith("the other side ")
    assert '("great, thanks!")' in second
    # A reply in other letters has words.
    assert "word" not in metric.judge([Exchange(context, "\u0434\u0430")]).reasons[0]


def encoded(metric: Judge, starts: list[int], **logits: list[float]) -> Encoded:
    """What a network would say of some parts, all of them sound but for what is given."""
    count = len(next(iter(logits.values())))
    width = len(metric.network.array("human_mean"))
    told = {name: np.full(count, 2.0) for name in metric.network.head_names} | {
        name: np.array(values) for name, values in logits.items()
    }
    nothing = np.zeros((count, lexical.Wording.SIGNS))
    return Encoded(
        np.zeros((count, width), dtype=np.float32), told, [f"part {number}" for number in range(count)], nothing,
        np.zeros(count, dtype=bool), np.array(starts), np.full(len(starts), np.nan),
    )  # fmt: skip


def test_the_head_for_denials_is_asked_where_its_speaker_has_said_something(metric: Judge) -> None:
    context = ("do you have pets?", "yes, i have two cats.", "lucky you!")
    rows = [
        Exchange(context, "my cats sleep all day."),
        Exchange(context[:1], "my cats sleep all day.", facts=("i have two cats.",)),
        Exchange(context[:1], "my cats sleep all day."),
        # Who spoke is told: both turns before are the other side's.
        Exchange(("i have two cats.", "do you?"), "i do not have cats.", speakers=("user", "user")),
    ]
    read = metric.features_of(rows)[1]
    for logit in (-2.0, 2.0):
        told = encoded(metric, [0, 1, 2, 3], consistent=[logit] * 4)
        column = turn_features(metric.network, told, read)[0][:, rule.FEATURES.index("consistent")]
        np.testing.assert_array_equal(column, [logit, rule.USUAL, np.nan, np.nan])


def test_all_of_the_scale_of_faults_votes_and_its_aspect_is_one_where_none_is_charged(metric: Judge) -> None:
    read = metric.features_of([Exchange(("hi",), f"a {word}") for word in "bcd"])[1]
    told = encoded(metric, [0, 1, 2], respectful=[0.5, 2.0, 5.0])
    features = turn_features(metric.network, told, read)[0]
    ranks = rule.turn_ranks(features, read, np.stack([np.linspace(-1, 6, TABLE_SIZE)] * len(rule.FEATURES)))
    column = rule.FEATURES.index("respectful")
    assert (np.diff(ranks[:, column]) > 0).all()
    assert rule.soundness(ranks[:, column]).tolist() == [1.0, 1.0, 1.0]


def test_preference_speaks_of_answers_that_are_long_enough(metric: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [Exchange(("hi",), " ".join(["fish"] * number)) for number in (ANSWER_WORDS - 1, ANSWER_WORDS)]
    told, read = encoded(metric, [0, 1], preferred=[0.5, 0.5]), metric.features_of(rows)[1]
    column = rule.FEATURES.index("preferred")
    assert turn_features(metric.network, told, read)[0][:, column].tolist() == pytest.approx([np.nan, 0.5], nan_ok=True)
    chosen = {**metric.network.config.architecture, "answer_words": 0}
    monkeypatch.setattr(metric.network, "config", replace(metric.network.config, architecture=chosen))
    assert turn_features(metric.network, told, read)[0][:, column].tolist() == [0.5, 0.5]


def test_of_many_parts_each_may_be_charged_as_much_more_seldom(metric: Judge) -> None:
    # One in a thousand lies 3.090 deviations below the middle, one in twenty 1.645, one in ten thousand 3.719.
    assert rule.allowance(np.array([1, 10])) == pytest.approx([0, (3.719 - 3.0902) / (3.0902 - 1.6449)], abs=1e-3)
    one, ten = metric.features_of([Exchange(("hi",), "a"), Exchange(("hi",), "a b")])[1]
    for unit, charged in ((-0.1, [True, False]), (-0.5, [True, True])):
        told = encoded(metric, [0, 1], respectful=[unit, *[2.0] * 9, unit])
        column = turn_features(metric.network, told, [one, ten])[0][:, rule.FEATURES.index("respectful")]
        assert (column < 0).tolist() == charged


def test_a_fault_in_one_part_is_a_fault_of_the_whole(metric: Judge) -> None:
    read = metric.features_of([Exchange(("hi",), "a b"), Exchange(("hi",), "c")])[1]
    told = encoded(metric, [0, 2], respectful=[3.0, -4.0, 1.0], follows=[1.0, -1.0, 0.5])
    features = turn_features(metric.network, told, read)[0]
    of = dict(zip(rule.FEATURES, features.T, strict=True))
    assert of["respectful"].tolist() == pytest.approx([-4.0 + rule.allowance(np.array([2]))[0], 1.0])
    # Relevance is the mean, moved half-way to the weakest part.
    assert of["follows"].tolist() == pytest.approx([-0.5, 0.5])


LONG = "First we walk to the sea. " * 12 + "Then we eat fish and chips with my dog. " * 12


def test_a_long_reply_is_read_to_its_end(metric: Judge) -> None:
    context = ("what shall we do today",)
    windows, starts = metric.windows([Exchange(context, LONG), Exchange(context, "fine")])
    assert len(windows) > 3
    assert starts.tolist() == [0, len(windows) - 1]
    assert "".join(row.response for row in windows[:-1]) == LONG
    assert {row.context for row in windows} == {context}
    judged = metric.judge([Exchange(context, LONG)])
    assert judged.n_truncated == 0
    other = metric.judge([Exchange(context, LONG.replace("Then we eat fish", "Then you hate moon"))])
    assert other.values[0] != judged.values[0]


def test_code_is_read_and_its_wording_is_not_judged(metric: Judge) -> None:
    rows = [Exchange(("how do i list files?",), text) for text in ("```\nls -la | grep x\n```", "`ls -la`", "ls la")]
    bare = metric.encoded(rows)[0].bare
    assert bare.tolist() == [True, True, False]


# --- whole conversations ---------------------------------------------------------------------------


def test_which_side_is_judged() -> None:
    turns = ("a", "b", "c", "d")
    assert judged_side(0, Dialogue(turns)) == (1, 3)
    assert judged_side(0, Dialogue(turns, speakers=("Bot", "user", "Bot", "user"))) == (0, 2)
    assert judged_side(0, Dialogue(turns, speakers=("1", "2", "2", "1"))) == (1, 2)
    refused(BadRow, "row 3", lambda: judged_side(3, Dialogue(turns, speakers=("me",) * 4)))
    refused(BadRow, "row 7", lambda: judged_side(7, Dialogue(turns, speakers=("bot", "system", "bot", "system"))))


SPEAKERS = ["user", "bot"] * 3
GOOD = ["hello there", "hello, how was your week", "great, i went to see my dog!", "what is the name of the dog",
        "he is called max, thanks!", "i like max, shall we walk tomorrow"]  # fmt: skip
AGAIN = "i like to eat fish today"
REPEATING = [GOOD[0], AGAIN, GOOD[2], AGAIN, GOOD[4], AGAIN]
COMPLAINED = [GOOD[0], GOOD[1], "what?", GOOD[3], "you make no sense", GOOD[5]]
ECHOING = [GOOD[0], "hello there", GOOD[2], "great, went to see dog", GOOD[4], "called max thanks"]


def signs_of(metric: Judge, turns: list[str]) -> DialogueSigns:
    read = metric.read_dialogues([Dialogue(tuple(turns), speakers=tuple(SPEAKERS))])
    found = read.signs[0]
    assert read.features[0].tolist() == pytest.approx(
        [getattr(found, name) for name in rule.DIALOGUE_FEATURES], nan_ok=True
    )
    return found


def test_a_head_for_whole_conversations_reads_the_last_reply_and_all_that_fits_before_it(
    tiny_encoder: Path, tmp_path: Path
) -> None:
    folder = small_checkpoint("judge", tiny_encoder, tmp_path / "judge", heads=(*HEADS[:8], "whole"))
    judge = Judge(folder, device="cpu")
    turns = ("hello there", "hi", "do you like fish", "yes i do", "and chips")
    (whole,) = judge.read_dialogues([Dialogue(turns, speakers=("user", "bot", "user", "bot", "user"))]).features[
        :, rule.DIALOGUE_FEATURES.index("whole")
    ]
    last = judge.encoder.encode([Exchange(turns[:3], "yes i do")])
    assert whole == pytest.approx(judge.network.split(last.rows)[1]["whole"][0], abs=1e-6)


def test_what_replies_leave_of_the_value_of_their_conversation() -> None:
    ranks = np.full((4, len(rule.FEATURES)), 0.5)
    assert rule.dialogue_vetoes(rule.vetoes(ranks)) == 1.0
    assert rule.dialogue_vetoes(rule.vetoes(ranks[:0])) == 1.0
    assert rule.dialogue_vetoes(rule.vetoes(ranks), said_again=0.5) == pytest.approx(1 - rule.SAID_AGAIN / 2)
    # One damaged reply of four, one that denies something, both in the same conversation.
    ranks[0, rule.FEATURES.index("fluent")] = ranks[1, rule.FEATURES.index("consistent")] = 0.0
    share = (3 + rule.VETO_LEAVES) / 4
    assert rule.dialogue_vetoes(rule.vetoes(ranks)) == pytest.approx(share**2)
    # One insult is never forgiven, however many replies are civil.
    ranks[2, rule.FEATURES.index("respectful")] = 0.0
    assert rule.dialogue_vetoes(rule.vetoes(ranks)) == pytest.approx(share**2 * rule.INSULT * rule.VETO_LEAVES)
    moves = rule.dialogue_moves(np.full((1, len(rule.DIALOGUE_FEATURES)), 0.8), np.array([0.25]))
    assert 0.5 + moves.sum() == pytest.approx(0.2)
    assert moves[0, 1:].min() > 0 > moves[0, 0]


def test_what_replies_leave_counts_in_the_whole_conversation(metric: Judge) -> None:
    read = metric.read_dialogues([Dialogue(tuple(GOOD), speakers=tuple(SPEAKERS))])
    voted = rule.combine(rank_all(read.features, metric.network.tables("dialogue")), rule.DIALOGUE_VOTES)
    scores = metric.score_dialogues([GOOD], speakers=[SPEAKERS]).values
    assert scores == pytest.approx(voted * read.left)


def test_signs_of_whole_conversations(metric: Judge) -> None:
    good = signs_of(metric, GOOD)
    assert good.not_repetitive == 1.0
    # The opening turn is no reaction.
    assert good.lively == pytest.approx(1)
    # The first of three replies is new, the others stand word by word in it.
    repeating = signs_of(metric, REPEATING)
    assert repeating.not_repetitive == pytest.approx(1 / 3)
    bored = signs_of(metric, [turn if at % 2 == 0 else "Okay." for at, turn in enumerate(GOOD)])
    assert bored.not_repetitive == pytest.approx(1 / 3)
    assert (good.said_again, bored.said_again) == (0.0, pytest.approx(2 / 3))
    assert repeating.repeated == REPEATING[1]
    complained = signs_of(metric, COMPLAINED)
    assert np.isfinite(complained.satisfied)
    assert complained.complaint in COMPLAINED[2::2]
    # "hello there": its one content word; then all of "great went see dog" and "called max thanks".
    echoing = signs_of(metric, ECHOING)
    assert echoing.not_echoing == pytest.approx(0.0)
    assert echoing.echoed == ECHOING[1]
    assert good.not_echoing > 0.5
    # Words a turn: 8, 5 against 1, 4.
    assert good.engaged == pytest.approx((math.log(8) + math.log(6)) / 2)
    assert complained.engaged == pytest.approx((math.log(2) + math.log(5)) / 2)


@pytest.fixture
def ranked(metric: Judge) -> Callable[..., Any]:
    """Scores conversations against tables from 0 to 1 (engagement to 3, rarity to 5); most repeat and echo nothing."""
    grid = np.linspace(0, 1, TABLE_SIZE)
    # An untrained network knows nothing of coherence: every value has the same rank.
    nothing = np.zeros(TABLE_SIZE // 2 + 1), np.ones(TABLE_SIZE // 2)
    mostly = fitting.reference_table(np.concatenate([np.linspace(0, 1, 100), np.ones(900)]))
    tables = {"engaged": 3 * grid, "not_repetitive": mostly, "not_echoing": mostly}
    tables |= dict.fromkeys(("coherent", "weakest"), np.concatenate(nothing))
    metric.network.set_array("dialogue_tables", np.stack([tables.get(name, grid) for name in rule.DIALOGUE_FEATURES]))

    def score(*dialogues: list[str], **options: Any) -> Any:
        return metric.score_dialogues(dialogues, speakers=[SPEAKERS] * len(dialogues), **options)

    return score


def test_worse_conversations_have_lower_values(ranked: Any) -> None:
    scores = ranked(GOOD, REPEATING, COMPLAINED, ECHOING)
    good, repeating, _, echoing = scores.values
    assert good > max(repeating, echoing)
    aspects = scores.aspects
    assert tuple(aspects) == Judge.info.dialogue_aspects == (*rule.DIALOGUE_ASPECTS, "respectful", "satisfied")
    assert aspects["not_repetitive"][1] < aspects["not_repetitive"][0] > aspects["not_repetitive"][3]
    assert scores.interval.shape == (4, 2)
    assert 'repeats itself ("i like to eat fish today")' in scores.explain(1).lower()
    assert 'echoes the turn before ("hello there")' in scores.explain(3).lower()


def test_what_a_row_lacks_moves_nothing(metric: Judge) -> None:
    ranks = ranks_of(metric, made_rows()[2:3])[0]
    there = [at for at, rank in enumerate(ranks) if np.isfinite(rank)]
    # No facts to use or to deny, no next turn, and no head for what people prefer or for what says something.
    assert len(there) == len(rule.FEATURES) - 5
    voted = sum(rule.TURN_VOTES[at] * ranks[at] for at in there) / sum(rule.TURN_VOTES[at] for at in there)
    by_hand = voted * rule.vetoes(ranks[None]).prod()
    assert metric.judge(made_rows()[2:3]).values[0] == pytest.approx(by_hand)


def test_vetoes_take_from_a_value_and_say_so() -> None:
    ranks = np.full((4, len(rule.FEATURES)), 0.8)
    ranks[:, rule.FEATURES.index("consistent")] = np.nan  # nothing was said that could be denied
    ranks[1, rule.FEATURES.index("respectful")] = 0.0
    ranks[2, [rule.FEATURES.index("respectful"), rule.FEATURES.index("fluent")]] = 0.0, rule.VETO_BELOW / 2
    ranks[3, rule.FEATURES.index("specific")] = 0.0  # has a vote and no veto
    half = rule.VETO_LEAVES + (1 - rule.VETO_LEAVES) / 2
    share = dict(zip(rule.FEATURES, rule.TURN_VOTES / rule.TURN_VOTES[~np.isnan(ranks[0])].sum(), strict=True))
    rude, bland = (0.8 - 0.8 * share[name] for name in ("respectful", "specific"))
    both = rude - (0.8 - rule.VETO_BELOW / 2) * share["fluent"]
    left = [0.8, rude * rule.VETO_LEAVES, both * rule.VETO_LEAVES * half, bland]
    assert rule.turn_values(ranks, rule.TURN_VOTES) == pytest.approx(left)
    assert rule.turn_values(ranks, rule.TURN_VOTES, ["respectful"]) == pytest.approx([0.8, rude, both * half, bland])
    moved = rule.turn_moves(ranks, rule.vetoes(ranks), rule.TURN_VOTES)
    taken = 0.5 * share["respectful"] + (1 - rule.VETO_LEAVES) * rude
    assert moved[1, rule.FEATURES.index("respectful")] == pytest.approx(-taken)
    assert max(moved[2, rule.FEATURES.index("respectful")], moved[2, rule.FEATURES.index("fluent")]) < -0.1
    assert moved[3, rule.FEATURES.index("specific")] == pytest.approx(-0.5 * share["specific"])


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["words", "letters", "blanks", "brackets", "lines", "quotes", "points", "marks"])
def test_a_reply_of_a_hundred_thousand_characters_is_read_as_far_as_so_many_parts_go(metric: Judge, kind: str) -> None:
    text = {
        "words": " ".join(f"w{number}" for number in range(15_000)), "letters": "a" * 100_000, "marks": "?!" * 50_000,
        "blanks": f"a{' ' * 100_000}a", "brackets": "(" * 100_000, "lines": "a\n" * 50_000, "quotes": '"' * 100_000,
        "points": "a." * 50_000,
    }[kind]  # fmt: skip
    windows, _ = metric.windows([Exchange(("How are you?",), text)])
    assert len(windows) <= MAX_WINDOWS
    assert "".join(row.response for row in windows).split() == text.split()
    scores = metric.score([text], [["How are you?"]])
    assert np.isfinite(scores.values).all()
    assert scores.n_truncated == (len(windows) == MAX_WINDOWS)
