"""The recipes with the papers' own settings, and their variants, run as they stand on small random encoders."""

import gzip
import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import BertConfig, BertForPreTraining, PreTrainedTokenizerFast, RobertaConfig, RobertaForMaskedLM

import dialeval
from common import read_recipe
from reproduce.ablations import recipe_file
from reproduce.papers.listing import PAPERS as TABLES
from shell import write_rows
from small_resources import write_causal_model
from tiny_words import WORDS
from training_runs import PAPERS, RECIPES, ROOT, TRAINING, environment, log_of, overrides, run_here, settings

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


# --- few and random weights, built without a download ----------------------------------------------

_SHAPE = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}


def bert(folder: Path, tiny: Path) -> Path:
    """The tiny encoder with both of the heads that BERT was released with, a pooler, and longer."""
    torch.manual_seed(0)
    shutil.copytree(tiny, folder)
    BertForPreTraining(BertConfig.from_pretrained(tiny, max_position_embeddings=512)).save_pretrained(folder)
    return folder


def roberta(folder: Path) -> Path:
    """One kind of segment, positions that begin behind the padding's id, bytes for letters."""
    torch.manual_seed(0)
    pieces = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", *sorted(pre_tokenizers.ByteLevel.alphabet())]
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    tokenizer = Tokenizer(models.BPE(vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    special = {"bos_token": "<s>", "eos_token": "</s>", "cls_token": "<s>", "sep_token": "</s>"}
    special |= {"pad_token": "<pad>", "unk_token": "<unk>", "mask_token": "<mask>"}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special).save_pretrained(folder)
    config = RobertaConfig(vocab_size=len(vocabulary), max_position_embeddings=514, type_vocab_size=1, **_SHAPE)
    RobertaForMaskedLM(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def encoders(tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("encoders")
    bert_base, decoder = bert(root / "bert", tiny_encoder), write_causal_model(root / "gpt2")
    return {"bert-base-uncased": bert_base, "roberta-base": roberta(root / "roberta"), "gpt2": decoder}


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The corpora that the recipes name, with made-up text."""
    root = tmp_path_factory.mktemp("corpora")
    rng = random.Random(0)

    def text() -> str:
        return " ".join(rng.choices(WORDS, k=rng.randint(4, 8)))

    for name in ("dailydialog", "convai2", "empathetic_dialogues", "self_dialogue", "topical_chat"):
        for split in ("train", "train_partial", "train_partial_prefixes", "validation"):
            rows = [{"id": f"{name}-{split}-{at}", "utterances": [text() for _ in range(4)]} for at in range(40)]
            write_rows(root / name / f"{split}.jsonl", rows)
    kinds = ("positive_responses", "adversarial_negative_responses", "random_negative_responses")
    groups = [
        {"id": f"pp-{at}", "context": [text(), text()], **{kind: [text() for _ in range(5)] for kind in kinds}}
        for at in range(60)
    ]
    write_rows(root / "dailydialog_pp" / "validation.jsonl", groups)
    rated = [
        {"id": f"r{at}", "context": [text()], "response": text(), "scores": {"coherence": rng.randint(1, 5)}}
        for at in range(40)
    ]
    write_rows(root / "rated.jsonl", rated)
    (root / "overlaps.json.gz").write_bytes(gzip.compress(b"{}"))
    return root


def settings_of(recipe: dict[str, Any], corpora: Path) -> dict[str, Any]:
    """What a test changes: where encoders lie, how long is trained, and how much is looked at meanwhile."""
    approach = recipe["approach"]
    stages = ["training"] if approach in ("density", "cmn") else ["pretraining", "fine_tuning"]
    counts = ("steps", "evaluate_every", "save_every", "log_every")
    changed: dict[str, Any] = {f"{stage}.{key}": STEPS for stage in stages for key in counts}
    if approach == "quantidce":
        return changed | {"ratings": {"benchmark": str(corpora / "rated.jsonl"), "held_out": 10}}
    if approach == "cmn":
        graded = {**recipe["validation"]["graded"], "contexts": 6, "final_contexts": 6, "quantile_contexts": 10}
        changed |= {"validation.graded": graded}
    if approach == "density":
        changed |= {"fit.held_out_pairs": 20}
    return changed | {"validation.contexts": 8}


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


VARIANTS: dict[str, dict[str, Any]] = yaml.safe_load((PAPERS / "ablations.yaml").read_text("utf-8"))


@pytest.mark.parametrize("name", VARIANTS)
def test_a_variant_changes_what_its_recipe_has(name: str) -> None:
    variant = VARIANTS[name]
    recipe = read_recipe(recipe_file(variant["recipe"]))
    for key in variant["set"]:
        node = recipe
        for part in key.split("."):
            assert part in node, key
            node = node[part]
    before = list(VARIANTS)[: list(VARIANTS).index(name)]
    if "first_stage_of" in variant:
        assert variant["first_stage_of"] in before


def test_the_tables_name_every_variant_and_no_other() -> None:
    rows = [row for paper in TABLES for table in paper.tables for row in table.rows]
    specs = [spec for row in rows for spec in row.specs if "runs/ablations" in spec]
    named = {spec.split("runs/ablations/")[1].split("/")[0] for spec in specs}
    # Table 5 asks for no benchmark: its figures are those of validation, in results/papers/ablations.md.
    assert named == {name for name in VARIANTS if not name.startswith("density-convai2")}


def test_the_runner_trains_resumes_and_tells(tiny_encoder: Path, tiny_corpora: Path, tmp_path: Path) -> None:
    words = overrides(tiny_encoder, 2)[1::2]
    settings = {key: yaml.safe_load(value) for key, _, value in (word.partition("=") for word in words)}
    variants = {
        "first": {"script": "density.py", "recipe": "trunk-minilm", "set": settings},
        "second": {"script": "density.py", "recipe": "trunk-minilm", "set": settings},
    }
    (tmp_path / "variants.yaml").write_text(yaml.safe_dump(variants))
    command = [sys.executable, "-m", "reproduce.ablations", "--corpora", str(tiny_corpora)]
    command += ["--out", str(tmp_path / "runs"), "--variants", str(tmp_path / "variants.yaml")]

    def run(*more: str) -> subprocess.CompletedProcess[str]:
        found = {**environment(), "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
        return subprocess.run([*command, *more], env=found, capture_output=True, text=True, check=False)

    unknown = run("--only", "third")
    assert unknown.returncode == 2
    assert "third" in unknown.stderr
    staged = {"third": {"script": "quantidce.py", "recipe": "quantidce-minilm", "first_stage_of": "first", "set": {}}}
    (tmp_path / "staged.yaml").write_text(yaml.safe_dump({**variants, **staged}))
    unstaged = run("--variants", str(tmp_path / "staged.yaml"), "--only", "third")
    assert unstaged.returncode == 1
    assert "third" in unstaged.stderr
    alone = run("--only", "first")
    assert alone.returncode == 0, alone.stderr[-2000:]
    both = run("--table", str(tmp_path / "table.md"))
    assert both.returncode == 0, both.stderr[-2000:]
    assert "first: done before" in both.stdout
    table = [line for line in (tmp_path / "table.md").read_text().splitlines() if line.startswith("|")]
    assert [line.split(" | ")[0] for line in table[2:]] == ["| first", "| second"]
    assert all("." in line.split(" | ")[1] for line in table[2:])
