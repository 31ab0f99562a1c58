"""Sound replies that are charged, and twins with faults: which replies are read, and what is counted."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from charges import ANSWERS, ASSISTANTS, CODE, FIFTH, PEOPLE, measure, rate, read_sources
from corpora.ratings import Rated
from dialeval.core.exchange import Exchange
from dialeval.judge.metric import Judge
from twins import CONVERSATION_FAULTS, FAULTS, contradictions, twins_of, written_pairs


@pytest.fixture
def corpora(tmp_path: Path) -> Path:
    """Of each split ten dialogues of three turns; every second answer of an assistant holds code."""
    for name, splits in {**PEOPLE, **ASSISTANTS}.items():
        for split in splits:
            (tmp_path / name).mkdir(exist_ok=True)
            rows = []
            for at in range(10):
                reply = f"Number {at}." if at % 2 else f"Number {at}:\n```\nprint({at})\n```"
                turns = ["Which?", reply] if name in ASSISTANTS else ["Which?", f"Number {at}.", "Fine."]
                rows.append(json.dumps({"id": f"{name}-{split}-{at}", "utterances": turns}))
            (tmp_path / name / f"{split}.jsonl").write_text("\n".join(rows), "utf-8")
    return tmp_path


def test_only_dialogues_that_nothing_was_fitted_to_are_read(corpora: Path) -> None:
    found = read_sources(corpora, frozenset({"sgd-validation-3"}), 100)
    assert list(found) == [*PEOPLE, CODE, ANSWERS]
    assert len(found["sgd"]) == 2 * 9
    assert not any(row.id.startswith("sgd-validation-3#") for row in found["sgd"])
    assert {row.id for row in found["taskmaster4"]} == {
        f"taskmaster4-train-{at}#{turn}" for at in (0, FIFTH) for turn in (1, 2)
    }
    assert all("```" in row.response for row in found[CODE])
    assert not any("```" in row.response for row in found[ANSWERS])
    assert {row.id.split("-")[1] for row in found[CODE] + found[ANSWERS]} == {"validation", "train"}


def test_the_same_few_are_drawn_every_time(corpora: Path) -> None:
    few, again, all_of_them = (read_sources(corpora, frozenset(), most) for most in (3, 3, 100))
    assert few == again
    for source, rows in few.items():
        assert len(rows) == min(3, len(all_of_them[source]))
        assert {row.id for row in rows} <= {row.id for row in all_of_them[source]}


def test_rates_are_of_replies_that_can_have_the_fault() -> None:
    parts = [np.array([1.0, 0.0, math.nan]), np.zeros(8)]
    # Wilson's interval by hand: (p + z²/2n ± z √(p(1-p)/n + z²/4n²)) / (1 + z²/n) with n = 10, p = 0.1, z = 1.96.
    assert rate(parts) == {"replies": 10, "charged": 1, "per_1000": 100.0, "interval": [17.88, 404.15]}
    assert rate([np.array([math.nan])]) == {"replies": 0, "charged": 0}


@pytest.mark.encoder
def test_what_is_charged_is_named() -> None:
    def answer(reply: str, name: str) -> Exchange:
        return Exchange(context=("Do you like my hat?",), response=reply, id=name)

    people = [answer("I do, it suits you.", "kind"), answer("Shut your mouth, you stupid cow.", "rude")]
    told = measure(Judge(device="cpu"), {"dailydialog": people, CODE: [answer("Yes:\n```\nprint('yes')\n```", "code")]})
    assert told["respectful"]["says"] == "rude"
    assert told["respectful"]["charged"] == told["respectful"]["people"]["charged"] == 1
    assert told["respectful"]["sources"]["dailydialog"]["which"] == ["rude"]
    assert told["respectful"]["people"]["per_1000"] == 500
    assert told["fluent"]["charged"] == 0
    assert told["consistent"]["people"] == {"replies": 0, "charged": 0}
    assert told["consistent"]["sources"] == {}
    assert "faithful" not in told  # has no veto


def test_the_page_on_the_judge_has_the_measured_figures() -> None:
    root = Path(__file__).parents[2]
    faults = json.loads((root / "results/charges/judge-minilm.json").read_text("utf-8"))["faults"]
    page = " ".join((root / "docs/judge.md").read_text("utf-8").split())
    people = {aspect: fault["people"]["per_1000"] for aspect, fault in faults.items()}
    answers = {aspect: fault["sources"].get(ANSWERS, {}).get("per_1000") for aspect, fault in faults.items()}
    assert (
        f"calls {people['fluent']:.1f} of 1,000 replies of people hard to read, {people['respectful']:.1f} rude" in page
    )
    assert f"of assistants' answers {answers['fluent']:.0f} and {answers['respectful']:.0f}." in page
    assert f"charged to {people['not_repetitive']:.0f} and {answers['not_repetitive']:.0f}" in page


TURNS = ("Hi, what do you do?", "I have two dogs in Boston.", "Nice, what are they called?",
         "Their names are Max and Bella.", "Do you walk them a lot?", "We go to the park every day.")  # fmt: skip
TRUE = Exchange(context=TURNS[:5], response=TURNS[5], facts=("your persona: I like green tea.",))
CANDIDATES = [TRUE, replace(TRUE, response="It rained all over the country.")]


@pytest.mark.parametrize("name", FAULTS)
def test_a_twin_differs_in_its_reply_alone(name: str) -> None:
    for seed in range(5):
        ((sound, faulty),) = twins_of(FAULTS[name], [CANDIDATES], np.random.default_rng(seed))
        assert replace(faulty, response=sound.response) == sound
        assert faulty.response != sound.response
        assert sound.response.startswith(TRUE.response)
    if name.startswith("itself denied"):
        assert len(faulty.response) > len(TRUE.response)
        assert (sound == TRUE) == (name == "itself denied")
    if name == "echo":
        assert faulty.response == TURNS[4]


@pytest.mark.parametrize("name", CONVERSATION_FAULTS)
def test_only_the_judged_side_of_a_conversation_is_spoiled(name: str) -> None:
    own = [1, 3, 5]
    said = CONVERSATION_FAULTS[name](TURNS, [f"Other {at}." for at in range(4)], own, np.random.default_rng(3))
    assert said
    assert set(said) <= set(own)
    assert any(turn != TURNS[at] for at, turn in said.items())


def test_contradictions_are_counted_beside_those_that_raters_name() -> None:
    def rated(response: str, named: float) -> Rated:
        one = Exchange(context=(*TURNS[:2], "And?"), response=response)
        return Rated(one, "abc_eval", "abc_eval", "dev", {"self contradiction": named})

    told = contradictions(
        Judge(), [rated("I have three dogs.", 1.0), rated("I have four dogs.", 0.0), rated("Fine.", 1.0)]
    )
    rows, called, both = (int(word) for word in told.split() if word.isdecimal())
    assert rows == 3
    assert both <= min(called, 2)
    assert told.endswith(" 2.")


def test_written_pairs_are_counted_by_kind() -> None:
    def pair(better: str, worse: str, kind: str) -> dict[str, object]:
        return {"kind": kind, "context": ["Do you have a pet?"], "better": better, "worse": worse}

    dog, salad = "Yes, a small dog.", "You dog stupid pet have the a idiot small moron small small."
    table = list(
        written_pairs(Judge(), [pair(dog, salad, "made"), pair(salad, dog, "made"), pair(dog, salad, "other")])
    )
    assert [[cell.strip() for cell in line.strip("| ").split("|")] for line in table[2:]] == [
        ["made", "50% of 2", "100% of 1"],
        ["other", "100% of 1", "100% of 1"],
    ]
