"""One judge, every way in: what the library says of a row all others say, aspects and reasons included."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dialeval
from dialeval.core.scores import Scores
from dialeval.judge.rule import ASPECTS, DIALOGUE_ASPECTS
from rated_rows import small_judge
from shell import invoke, read_rows, write_rows

CONTEXT = ["hello there", "do you like fish and chips"]

FACTS = ["i have a dog", "i like fish"]

#: Replies by what is wrong with them, or right.
SAID = {
    "uses a fact": "yes i like fish and my dog does",
    "repeats itself": "i like to eat i like to eat i like to eat",
    "repeats the turn before": "do you like fish and chips",
    "off topic": "the weather is nice today",
    "contradicts": "no i do not like fish",
    "blank": "  ",
    "german": "am wochenende gehe ich mit dem hund spazieren",
    "emoji": "\U0001f600\U0001f436",
}

FOLLOWING = ["great, thanks!", "what? you make no sense", None, "ok", "i already said that", None, None, None]

ROWS: list[dict[str, Any]] = [
    {"context": CONTEXT, "response": said, "facts": FACTS, "following": after, "id": name}
    for (name, said), after in zip(SAID.items(), FOLLOWING, strict=True)
]
TALKS: list[dict[str, Any]] = [
    {"dialogue": ["hi", "i like fish", "what?", "i like fish", "stop it"], "speakers": ["user", "bot"] * 2 + ["user"]},
    {"dialogue": ["hello", "how are you", "fine thanks!", "what do you like to eat"], "speakers": ["A", "B", "A", "B"]},
    {"dialogue": ["hello", "  ", "are you there"], "speakers": None},
]


def same(found: list[dict[str, Any]], scores: Scores) -> None:
    """Values, aspects, ends and reasons; batches of another size move the last digits of what a network says."""
    for name, column in scores.columns().items():
        messages = [row[name] for row in found]
        if name.endswith(".why"):
            assert messages == list(column)
            continue
        for given, wanted in zip(messages, column, strict=True):  # of `.turns` a row holds several
            assert np.array(given, float) == pytest.approx(np.array(wanted, float), abs=1e-4, nan_ok=True), name


@pytest.fixture(scope="module")
def checkpoint(tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_judge(tiny_encoder, tmp_path_factory.mktemp("judge") / "judge-tiny")


@pytest.fixture(scope="module")
def judge(checkpoint: Path) -> Any:
    return dialeval.load("judge", checkpoint=checkpoint, device="cpu")


@pytest.fixture(scope="module")
def expected(judge: Any) -> Scores:
    columns = {key: [row[key] for row in ROWS] for key in ("facts", "following")}
    scores: Scores = judge.score(list(SAID.values()), [CONTEXT] * len(SAID), **columns, empty="score")
    return scores


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, rows in (("rows", ROWS), ("talks", TALKS)):
        write_rows(f"{name}.jsonl", rows)


def test_what_is_wrong_with_a_reply_is_said_in_its_own_words(expected: Scores) -> None:
    why = dict(zip(SAID, expected.reasons, strict=True))
    assert 'says "i like to eat" 3 times' in why["repeats itself"].lower()
    assert why["blank"].startswith("Is blank")
    assert why["emoji"].startswith('Says no word ("\U0001f600\U0001f436")')
    assert "word" not in why["german"]
    values = dict(zip(SAID, expected.values, strict=True))
    assert values["blank"] == values["emoji"] == 0.0
    assert all(value > 0 for name, value in values.items() if name not in ("blank", "emoji"))
    assert all(len(message.split("; ")) <= 2 for message in why.values())
    seen = {aspect: dict(zip(SAID, column, strict=True)) for aspect, column in expected.aspects.items()}
    assert max(seen["uses_facts"], key=lambda name: seen["uses_facts"][name]) == "uses a fact"
    for name in ("repeats itself", "repeats the turn before"):
        assert seen["not_repetitive"][name] < seen["not_repetitive"]["off topic"]


def test_the_command(checkpoint: Path, judge: Any, expected: Scores) -> None:
    given = ["score", "-m", "judge", "--checkpoint", str(checkpoint)]
    given += ["--empty", "score", "--device", "cpu", "--explain", "short"]
    invoke(*given, "-i", "rows.jsonl", "-o", "scores.jsonl")
    same(read_rows("scores.jsonl"), expected)
    ended = invoke(*given, "-i", "talks.jsonl", "-o", "whole.jsonl", "--level", "dialogue", "--per-turn")
    assert "one side" in ended.stderr
    found = read_rows("whole.jsonl")
    speakers = [row["speakers"] or [] for row in TALKS]
    whole = judge.score_dialogues([row["dialogue"] for row in TALKS], speakers=speakers)
    same(found, whole)
    assert set(whole.aspects) == {*DIALOGUE_ASPECTS, "respectful", "satisfied"}
    assert 'repeats itself ("i like fish")' in found[0]["judge.why"].lower()


def test_the_evaluate_module(checkpoint: Path, judge: Any, expected: Scores, monkeypatch: pytest.MonkeyPatch) -> None:
    evaluate = pytest.importorskip("evaluate")
    from dialeval.hub.evaluate_module import loaded

    monkeypatch.setattr(evaluate.config, "HF_EVALUATE_OFFLINE", True)
    invoke("install-modules")
    loaded.cache_clear()
    module = evaluate.load("dialeval/judge")
    options: dict[str, Any] = {"checkpoint": str(checkpoint), "device": "cpu"}
    columns = {"predictions": list(SAID.values()), "contexts": [CONTEXT] * len(SAID)}
    columns |= {key: [row[key] for row in ROWS] for key in ("facts", "following")}
    found, wanted = module.compute(**columns, **options, empty="score"), expected.to_dict()
    assert found["scores"] == pytest.approx(expected.values, abs=1e-6)
    assert (found["reasons"], found["intervals"]) == (wanted["reasons"], wanted["intervals"])
    assert set(found["aspects"]) == set(ASPECTS)
    assert found["aspects"]["uses_facts"] == pytest.approx(expected.aspects["uses_facts"], abs=1e-6)
    assert found["aspects"]["reaction"][2] is None
    talks, speakers = ([row[key] for row in TALKS[:2]] for key in ("dialogue", "speakers"))
    columns = {"predictions": [turns[-1] for turns in talks], "contexts": [turns[:-1] for turns in talks]}
    whole = module.compute(**columns, speakers=speakers, level="dialogue", **options)
    assert whole["reasons"] == list(judge.score_dialogues(talks, speakers=speakers).reasons)
    assert set(whole["aspects"]) == {*DIALOGUE_ASPECTS, "respectful", "satisfied"}
