"""The recipes with the papers' own settings run as they stand: some steps on small random encoders of their kind."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dialeval
import paper_encoders
from common import read_recipe
from tiny_words import WORDS
from training_runs import RECIPES, TRAINING, log_of, run_here, settings

pytestmark = pytest.mark.slow

APPROACHES = ("cmn", "deb", "density", "quantidce")
STEPS = 3
#: What docs/training.md says of RoBERTa.
ROBERTA = {"encoder": "roberta-base", "layout.segment_ids": False}
BEYOND = {"deb": {"original_head": False}, "cmn": {"pretrained_pooler": False}}
ROWS: dict[str, Any] = {
    "responses": ["i am fine thanks", "fish and chips", "no thank you"],
    "contexts": [["hello there", "how are you"], ["what do you like to eat"], ["shall we go for a walk"]],
    "references": ["fine thanks", "i like fish", "yes please"],
}


@pytest.fixture(scope="module")
def encoders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("encoders")
    made = {name: getattr(paper_encoders, name)(root / name) for name in ("bert", "roberta", "gpt2")}
    return {"bert-base-uncased": made["bert"], "roberta-base": made["roberta"], "gpt2": made["gpt2"]}


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The corpora that the recipes name, with made-up text."""
    root = tmp_path_factory.mktemp("corpora")
    rng = random.Random(0)

    def text() -> str:
        return " ".join(rng.choices(WORDS, k=rng.randint(4, 8)))

    def write(name: str, split: str, rows: list[dict[str, Any]]) -> None:
        (root / name).mkdir(exist_ok=True)
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (root / name / f"{split}.jsonl.gz").write_bytes(gzip.compress(lines.encode()))

    for name in ("dailydialog", "convai2", "empathetic_dialogues", "self_dialogue", "topical_chat"):
        for split in ("train", "train_partial", "train_partial_prefixes", "validation"):
            rows = [{"id": f"{name}-{split}-{at}", "utterances": [text() for _ in range(4)]} for at in range(40)]
            write(name, split, rows)
    kinds = ("positive_responses", "adversarial_negative_responses", "random_negative_responses")
    groups = [
        {"id": f"pp-{at}", "context": [text(), text()], **{kind: [text() for _ in range(5)] for kind in kinds}}
        for at in range(60)
    ]
    write("dailydialog_pp", "validation", groups)
    rated = [
        {"id": f"r{at}", "context": [text()], "response": text(), "scores": {"coherence": rng.randint(1, 5)}}
        for at in range(40)
    ]
    (root / "rated.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rated))
    (root / "overlaps.json.gz").write_bytes(gzip.compress(b"{}"))
    return root


def settings_of(recipe: dict[str, Any], corpora: Path) -> dict[str, Any]:
    """What a test changes: where encoders lie, how long is trained, and how much is looked at meanwhile."""
    approach = recipe["approach"]
    changed: dict[str, Any] = {}
    stages = ["training"] if approach in ("density", "cmn") else ["pretraining", "fine_tuning"]
    for stage in stages:
        changed |= {f"{stage}.{key}": STEPS for key in ("steps", "evaluate_every", "save_every", "log_every")}
    if approach in ("density", "cmn"):
        changed |= {"validation.contexts": 8}
    if approach == "cmn":
        graded = {**recipe["validation"]["graded"], "contexts": 6, "final_contexts": 6, "quantile_contexts": 10}
        changed |= {"validation.graded": graded}
    if approach == "density":
        changed |= {"fit.held_out_pairs": 20}
    if approach == "deb":
        changed |= {"validation.contexts": 8}
    if approach == "quantidce":
        changed |= {"ratings": {"benchmark": str(corpora / "rated.jsonl"), "held_out": 10}}
    return changed


@pytest.mark.parametrize("encoder", ["bert-base-uncased", "roberta-base"])
@pytest.mark.parametrize("approach", APPROACHES)
def test_some_steps_of_a_recipe(
    approach: str, encoder: str, encoders: dict[str, Path], corpora: Path, tmp_path: Path
) -> None:
    path = RECIPES / f"{approach}-bert-base.yaml"
    recipe = read_recipe(path)
    assert recipe["name"] == path.stem
    assert (recipe["approach"], recipe["tuning"]) == (approach, "full")
    changed = settings_of(recipe, corpora)
    if encoder == "roberta-base":
        changed |= ROBERTA | BEYOND.get(approach, {})
    changed["encoder"] = str(encoders[encoder])
    if approach == "cmn":
        changed["decoder.pretrained"] = str(encoders["gpt2"])
    chosen = settings(f"{key}={json.dumps(value)}" for key, value in changed.items())
    folders = ["--corpora", str(corpora), "--out", str(tmp_path / "out")]
    run_here([str(TRAINING / f"{recipe['approach']}.py"), "--cpu", "--recipe", str(path), *folders, *chosen])
    log = log_of(tmp_path / "out")
    assert max(line["step"] for line in log) == STEPS
    assert [line for line in log if line["kind"] == "train" and not np.isfinite(line["loss"])] == []
    scores = dialeval.load(recipe["approach"], checkpoint=tmp_path / "out" / "checkpoint", device="cpu").score(**ROWS)
    assert np.isfinite(scores.values).all()
