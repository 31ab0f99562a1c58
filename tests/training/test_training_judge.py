"""The judge's training from end to end on a tiny encoder, with corpora and ratings written here."""

from __future__ import annotations

import json
import random
from argparse import Namespace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import judge
from corpora.ratings import Rated
from dialeval.approaches.judge import ASPECTS, Judge
from dialeval.exchange import Exchange
from dialeval.weights.config import CheckpointConfig
from tiny_words import WORDS
from training_runs import (
    TRAINING,
    killed_after_saves,
    log_of,
    run_here,
    run_in_two_processes,
    same,
    settings,
    write_lines,
)

HEAD_ROWS = (
    "{dialogues: 0.3, contexts: 40, fluent: 32, insults: 8, convabuse: 12, consistent: 0, faithful: 6, begin: 12}"
)
STEPS = ["steps=4", "batch_size=6", "warmup=1", "log_every=1", "evaluate_every=2", "save_every=2"]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Grouped replies, chat, and ratings of turns and of conversations; two rated rows are to be left out."""
    root, rng = tmp_path_factory.mktemp("judge-data"), random.Random(0)

    def text(*kept: str) -> str:
        return " ".join([*kept, *rng.choices(WORDS, k=rng.randint(4, 7))])

    kinds = ["positive_responses", "adversarial_negative_responses", "random_negative_responses"]
    groups = [
        {"id": f"g{at}", "context": [text()], **{kind: [text() for _ in range(3)] for kind in kinds}}
        for at in range(24)
    ]
    write_lines(root / "pp" / "dev.jsonl", groups)
    for split in ("train", "validation"):
        # Every speaker says something of themselves, which a reply can deny.
        chat = [{"id": f"{split}{at}", "utterances": [f"i like {text()}" for _ in range(5)],
                 "speakers": list("ababa"), "persona": [["i like two dogs"], ["i have a cat"]]}
                for at in range(120)]  # fmt: skip
        write_lines(root / "chat" / f"{split}.jsonl", chat)

    def rated(source: str, family: str, at: int, scores: dict[str, float], **more: Any) -> dict[str, Any]:
        split = "dev" if at % 2 else "train"
        row = {"id": f"{source}-{at}", "source": source, "family": family, "level": "turn", "split": split}
        return {**row, "context": [text(), text()], "response": text(), "scores": scores, **more}

    shares = [rng.random() for _ in range(40)]
    write_lines(root / "ratings" / "dbdc3.jsonl", [
        rated("dbdc3", "dbdc", at, {"no_breakdown": share}, ratings={"no_breakdown": {"o": 3, "x": 2}})
        for at, share in enumerate(shares)
    ])  # fmt: skip
    write_lines(root / "ratings" / "dstc7.jsonl", [
        rated("dstc7", "dstc7", at, {"relevance": rng.randint(1, 5), "informativeness": rng.randint(1, 5),
                                     "overall": rng.randint(1, 5)}, facts=[text()])
        for at in range(40)
    ])  # fmt: skip
    write_lines(root / "ratings" / "chats.jsonl", [
        rated("chats", "chats", at, {"overall": rng.randint(1, 5)}, level="dialogue", response=None,
              context=[text() for _ in range(4)], speakers=["user", "system"] * 2)
        for at in range(30)
    ])  # fmt: skip
    for source, score in (("begin", "attributable"), ("convabuse", "respectful")):
        write_lines(root / "ratings" / f"{source}.jsonl", [
            rated(source, source, at, {score: float(at % 4 > 1)}, facts=[text()]) for at in range(40)
        ])  # fmt: skip
    (root / "ratings" / "overlaps.json").write_text(json.dumps({"dbdc3-0": ["x"], "dbdc3-2": ["x"]}))
    (root / "overlaps.json").write_text("{}")
    return root


@pytest.fixture(scope="module")
def command(data: Path, tiny_encoder: Path) -> Any:
    """The words that start the script."""
    pairs = "[{name: chat, splits: [%s], pairs: 30}]"
    chosen = [
        f"encoder={tiny_encoder}", "start_from=null", "lora.rank=2", "lora.alpha=4", "leave_out=overlaps.json",
        "groups={name: pp, split: dev, held_out: 0.25, seed: 0}", "augmentation=[]", "training.max_length=32",
        "layout={max_length: 48, response_budget: 24, facts_budget: 12}", f"density={pairs % 'train'}",
        f"human={pairs % 'validation'}", "ratings.leave_out=overlaps.json", "ratings.train=[dbdc3, dstc7]",
        "ratings.stack=[dbdc3, dstc7]", "ratings.dialogues=[chats]", "ratings.damaged=10",
        f"faults={{corpora: {{chat: [train]}}, rows: {HEAD_ROWS}, held_out: {HEAD_ROWS}, weight_decay: 0.01}}",
        *(f"training_steps.{setting}" for setting in STEPS),
    ]  # fmt: skip

    def words(out: Path, *more: str) -> list[str]:
        given = [str(TRAINING / "judge.py"), "--cpu", "--corpora", str(data), "--ratings", str(data / "ratings")]
        return [*given, "--out", str(out), *settings((*chosen, *more))]

    return words


@pytest.fixture(scope="module")
def finished(command: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out: Path = tmp_path_factory.mktemp("judge") / "whole"
    run_here(command(out))
    return out


@pytest.mark.slow
def test_a_judge_is_trained_from_ratings(finished: Path) -> None:
    log = log_of(finished)
    rows = [row for row in log if row["kind"] == "train"]
    assert len(rows) == 4
    assert all(np.isfinite(row["loss"]) for row in rows)
    validated = [row for row in log if row["kind"] == "validation"]
    assert all({"dbdc3_follows", "dbdc3_valid", "dstc7_fits"} <= row.keys() for row in validated)
    folder = finished / "checkpoint"
    record = CheckpointConfig.read(folder).training
    # Of twenty rated rows to train on two share text with an evaluation set.
    assert record["rated_rows"] == {"dbdc3": 18, "dstc7": 20}
    assert set(record["fit"]) == {"heads", "turns", "dialogues"}
    assert set(record["fit"]["turns"]) == {"dbdc", "dstc7"}
    assert {"respectful_insult", "fluent_mashed", "faithful_begin"} <= record["fit"]["heads"].keys()
    scorer = Judge(folder, device="cpu")
    scores = scorer.score(["fish and chips"], [["what do you like to eat"]], facts=[["i like fish"]])
    assert 0 < scores.values[0] < 1
    assert set(scores.aspects) == set(ASPECTS)
    assert scores.explain(0).endswith(".")
    assert scores.interval is not None
    assert scores.interval[0, 0] <= scores.interval[0, 1]
    assert 0 <= scorer.score(["fish"], [["hello"]], scale="human_percentile").values[0] <= 1
    assert np.isfinite(scorer.score_dialogues([["hello", "how are you", "fine thanks", "nice"]]).values).all()


@pytest.mark.slow
def test_a_killed_run_ends_as_if_it_had_not_been(finished: Path, command: Any, tmp_path: Path) -> None:
    killed_after_saves(command(tmp_path / "killed"), 1)
    run_here([*command(tmp_path / "killed"), "--resume"])
    assert same(finished / "checkpoint", tmp_path / "killed" / "checkpoint")


@pytest.mark.slow
def test_two_processes_train_one_judge(command: Any, tmp_path: Path) -> None:
    run_in_two_processes(command(tmp_path / "two"))
    record = CheckpointConfig.read(tmp_path / "two" / "checkpoint").training
    assert record["hardware"].startswith("2 process(es)")
    assert set(record["fit"]["turns"]) == {"dbdc", "dstc7"}
    assert len(log_of(tmp_path / "two", "train")) == 4
    scores = Judge(tmp_path / "two" / "checkpoint", device="cpu").score(["fish"], [["what do you like to eat"]])
    assert 0 < scores.values[0] < 1


def test_wrong_replies_are_damaged_too(data: Path) -> None:
    """Else the head for fluency would learn that whatever fits its context may be damaged, and random replies not."""
    groups = {"name": "pp", "split": "dev", "held_out": 0.25, "seed": 0}
    ratings = {"leave_out": "overlaps.json", "train": ["dbdc3"], "replay_share": 0.5, "fluency_share": 0.1}
    recipe = {"seed": 0, "encoder": None, "leave_out": "overlaps.json", "groups": groups, "augmentation": []}
    recipe["ratings"] = {**ratings, "damaged": 60, "fact_dropout": 0.5}
    sources, _, message = judge.read_examples(recipe, Namespace(corpora=data, ratings=data / "ratings"))
    replay, fluency = ([row for rows in sources for row in rows if row.task == task] for task in ("replay", "fluency"))
    kinds = {row.exchange: row.targets[0] for row in replay}
    whole = [kinds[row.exchange] for row in fluency if row.targets == (1.0,)]
    assert {0.0, 1.0} == set(whole)
    assert [row.targets[0] for row in fluency].count(0.0) == len(whole) == message["damaged_rows"] // 2


def test_what_ratings_ask_for() -> None:
    def row(source: str, **scores: float) -> Rated:
        return Rated(Exchange(("hi",), "hello"), source, source, "dev", scores)

    assert judge.target_of(row("abc_eval", irrelevant=0.25, redundant=0.75)) == 0.25
    assert judge.target_of(row("dbdc3", no_breakdown=0.6)) == 0.6
    assert judge.target_of(row("other", politeness=1.0)) is None
