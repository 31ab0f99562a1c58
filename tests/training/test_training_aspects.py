"""The last phase of the encoder's training on a tiny encoder; faults and losses by hand."""

from __future__ import annotations

import json
import math
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from safetensors.torch import load_file

import aspects
import trunk
from corpora.faults import DAMAGES, contradicted, damage, insult, insulting, statement_of
from dialeval.exchange import Exchange
from tiny_words import WORDS
from training_runs import TRAINING, write_lines

LAYOUT = {"max_length": 48, "response_budget": 16, "facts_budget": 12, "separator": "[unused0]"}


# --- faults ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [*DAMAGES, "glued"])
def test_a_damaged_reply_is_another_one(kind: str) -> None:
    draw = np.random.default_rng(1)
    reply = "I have two dogs and a cat, and they like the garden."
    broken = [damage(reply, kind, draw) for _ in range(20)]
    assert sum(one is not None and one != reply for one in broken) > 15
    assert damage("too short here", kind, draw) is None


@pytest.mark.parametrize(
    ("said", "otherwise"),
    [
        ("I have two dogs.", {"I don't have two dogs.", "I never had two dogs."}),
        ("I don't like tea.", {"I do like tea."}),
        ("We are here.", {"We aren't here."}),
    ],
)
def test_a_statement_is_denied(said: str, otherwise: set[str]) -> None:
    found = {contradicted(said, np.random.default_rng(seed)) for seed in range(60)}
    assert said not in found
    assert otherwise <= found


def test_numbers_and_places_are_exchanged() -> None:
    found = {contradicted("My home is in Boston", np.random.default_rng(seed)) for seed in range(30)}
    assert any(one and "boston" not in one.lower() for one in found)
    assert contradicted("Hello there", np.random.default_rng(0)) is None
    assert statement_of("Nice! I live in Boston. Do you?") == "I live in Boston."
    assert statement_of("Do I know you?") is None


def test_insults_are_tested_by_words_that_were_not_learned() -> None:
    learned = {insult(np.random.default_rng(seed)) for seed in range(400)}
    held_out = {insult(np.random.default_rng(seed), held_out=True) for seed in range(400)}
    assert learned.isdisjoint(held_out)
    assert all(insulting("fine", np.random.default_rng(seed)) != "fine" for seed in range(20))


# --- losses ----------------------------------------------------------------------------------------


def test_pairs_weigh_by_their_gap() -> None:
    said, rated = torch.tensor([1.0, 0.0, 0.0]), torch.tensor([1.0, 0.5, 0.45])
    # Gaps .5 and .55 count, .05 is none.
    steps = math.log1p(math.exp(-1))
    assert aspects.ranking_loss(said, rated, 0.1).item() == pytest.approx(steps, abs=1e-6)
    assert aspects.ranking_loss(said, torch.ones(3), 0.1).item() == 0.0


def test_right_and_wrong_rows_weigh_the_same() -> None:
    logits, truth = torch.tensor([0.0, 0.0, 0.0, math.log(3)]), torch.tensor([0.0, 0.0, 0.0, 1.0])
    assert aspects.balanced_loss(logits, truth).item() == pytest.approx((math.log(2) - math.log(0.75)) / 2)


def test_faults_have_sound_rows_beside_them() -> None:
    context = ("i have two dogs.", "nice! i live in boston.", "do you like it there?")
    facts = ("your persona: i have a cat.",)
    one = Exchange(context=context, response="yes, i like it a lot here.", facts=facts)
    counts = {"fluent": 8, "insults": 4, "consistent": 6, "faithful": 6}
    rows = aspects.faulty_rows(np.random.default_rng(0), [[one]], counts)
    for task in ("fluent", "respectful", "consistent", "faithful"):
        labels = [row[2] for row in rows if row[0] == task]
        assert 0.0 in labels, task
        assert 1.0 in labels, task
    contradicted_rows = [row for row in rows if row[0] == "faithful" and row[3] == "contradicted"]
    assert contradicted_rows
    # Either the reply or the fact says otherwise, never both.
    for _, row, _, _ in contradicted_rows:
        assert ("i have a cat." in row.response) != ("i have a cat." in row.facts[0])


# --- from end to end -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Grouped replies, chat with facts, ratings of turns; two rated rows are to be left out."""
    root, rng = tmp_path_factory.mktemp("aspects-data"), random.Random(0)

    def text(*kept: str) -> str:
        return " ".join([*kept, *rng.choices(WORDS, k=rng.randint(4, 7))])

    kinds = ["positive_responses", "adversarial_negative_responses", "random_negative_responses"]
    groups = [
        {"id": f"g{at}", "context": [text()], **{kind: [text() for _ in range(3)] for kind in kinds}}
        for at in range(24)
    ]
    write_lines(root / "pp" / "dev.jsonl", groups)
    for split in ("train", "validation"):
        chat = [
            {"id": f"{split}{at}", "utterances": [text("i have two dogs and") for _ in range(5)],
             "speakers": list("ababa"), "persona": [["i like two dogs"], ["i have a cat"]]}
            for at in range(30)
        ]  # fmt: skip
        write_lines(root / "chat" / f"{split}.jsonl", chat)

    def rated(source: str, scores: dict[str, float], **more: Any) -> list[dict[str, Any]]:
        return [
            {"id": f"{source}-{at}", "source": source, "family": source, "level": "turn",
             "split": "dev" if at % 2 else "train", "context": [text(), text()], "response": text(),
             "scores": {name: round(rng.random() * top, 2) for name, top in scores.items()}, **more}
            for at in range(40)
        ]  # fmt: skip

    write_lines(root / "ratings" / "dbdc3.jsonl", rated("dbdc3", {"no_breakdown": 1}))
    write_lines(root / "ratings" / "begin.jsonl", rated("begin", {"attributable": 1}, facts=["i have a cat"]))
    write_lines(root / "ratings" / "convabuse.jsonl", rated("convabuse", {"respectful": 1}))
    (root / "ratings" / "overlaps.json").write_text(json.dumps({"dbdc3-0": ["x"], "dbdc3-2": ["x"]}))
    (root / "overlaps.json").write_text(json.dumps({"pp": {}}))
    return root


def recipe_of(name: str, folder: Path, **changes: Any) -> Path:
    settings = yaml.safe_load((TRAINING / "recipes" / f"{name}.yaml").read_text()) | changes
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(settings))
    return path


def started(monkeypatch: pytest.MonkeyPatch, script: Any, *words: Any) -> None:
    monkeypatch.setattr(sys, "argv", [script.__name__, *map(str, words)])
    try:
        script.main()
    finally:  # a setting of the whole thread, which would follow the other tests
        torch.set_flush_denormal(False)


@pytest.mark.slow
def test_one_phase_teaches_all_heads(
    data: Path, tiny_encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layers = recipe_of(
        "trunk", tmp_path, leave_out="overlaps.json", layout=LAYOUT, corpora={"chat": ["train"]},
        stages=[{"name": "all", "contexts": 8, "corpora": ["chat"]}], batch_contexts=4, save_every=2,
        validation={"dialogues": 0.3, "contexts": 4, "candidates": 5, "every_processor_hours": 1.0},
    )  # fmt: skip
    groups = {"name": "pp", "split": "dev", "held_out": 0.25, "seed": 0}
    phase = recipe_of(
        "aspects", tmp_path, steps=4, warmup=1, leave_out="overlaps.json", groups=groups,
        ratings={"leave_out": "overlaps.json", "train": ["dbdc3"], "labelled": ["begin", "convabuse"]},
        rows={"contexts": 4, "rated": 6, "valid": 6, "fluent": 4, "insults": 2, "convabuse": 4, "consistent": 3,
              "faithful": 3, "begin": 4},
        validation={"contexts": 3, "rows": 12, "every": 2},
    )  # fmt: skip
    common = ["--corpora", data, "--encoder", tiny_encoder]
    started(monkeypatch, trunk, *common, "--recipe", layers, "--out", tmp_path / "trunk", "--dtype", "float32")
    begun = tmp_path / "trunk" / "trunk.safetensors"
    rated = ["--ratings", data / "ratings"]
    started(
        monkeypatch, aspects, *common, *rated, "--start", begun, "--recipe", phase, "--trunk", layers,
        "--out", tmp_path / "aspects", "--dtype", "float32",
    )  # fmt: skip
    start, *_, last = [json.loads(line) for line in (tmp_path / "aspects" / "log.jsonl").open()]
    # Of twenty rated rows to train on two share text with an evaluation set.
    assert start["rated_rows"]["dbdc3"] == 18
    assert last["step"] == 4
    assert {"next_accuracy", "dbdc3_rated", "fluent_auc", "consistent_auc", "respectful_convabuse_auc"} <= last.keys()
    # All heads have learned something, and the encoder is another one than it began with.
    before, after = load_file(begun), load_file(tmp_path / "aspects" / "trunk.safetensors")
    assert after["head.weight"].shape[0] == len(aspects.HEADS)
    assert bool((after["head.weight"].float().abs().sum(dim=1) > 0).all())
    layers_before = {name for name in before if name.startswith("encoder.encoder.layer.")}
    assert layers_before <= set(after)
    assert any(not torch.equal(before[name], after[name]) for name in layers_before)
