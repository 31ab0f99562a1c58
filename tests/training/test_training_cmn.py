"""The CMN training script end to end, on a tiny random encoder and a made-up corpus."""

from __future__ import annotations

import importlib
import json
import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from cmn_networks import make_network
from conftest import WORDS
from dialeval.approaches.cmn import Cmn
from dialeval.approaches.cmn_network import CmnNetwork, PriorRows
from dialeval.card import render_card
from dialeval.weights.config import CheckpointConfig
from resources import PATIENCE

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
TRAINING = ROOT / "training"
SCRIPT = TRAINING / "cmn.py"
ROWS = (["i am fine thanks", "fish and chips"], [["how are you"], ["how are you"]], ["fine thanks", "i am fine"])


@pytest.fixture(scope="module")
def corpora(tiny_corpora: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The dialogues shared by all training tests, and contexts with good, adversarial and random replies."""
    root = tmp_path_factory.mktemp("cmn-corpora") / "corpora"
    shutil.copytree(tiny_corpora, root)
    rng = random.Random(1)

    def texts(count: int) -> list[str]:
        return [" ".join(rng.choices(WORDS, k=rng.randint(2, 7))) for _ in range(count)]

    rows = [
        {
            "id": f"graded-{number}",
            "context": texts(2),
            "positive_responses": texts(3),
            "adversarial_negative_responses": texts(2),
            "random_negative_responses": texts(2),
        }
        for number in range(24)
    ]
    (root / "graded").mkdir()
    (root / "graded" / "validation.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return root


def overrides(encoder: Path, steps: int) -> list[str]:
    values = {
        "encoder": str(encoder),
        "start_from": "null",
        "lora": "{rank: 4, alpha: 8, dropout: 0.0}",
        "layout.max_length": 48,
        "architecture": "{latent: 4, bank: 6}",
        "whitening_pairs": 60,
        "decoder": "{pretrained: null, n_layer: 2, n_head: 2, n_embd: 16, dropout: 0.0, max_length: 12}",
        "leave_out": "overlaps.json",
        "corpora": "[{name: chat, splits: [train], share: 1.0}]",
        "negatives": "{random: 2, same_dialogue: 1, shared_word: 0, corrupted: 1}",
        "groups": "{name: graded, split: validation, held_out: 0.5, seed: 1}",
        "prior_rank": 2,
        "validation.corpus": "chat",
        "validation.contexts": 8,
        "validation.candidates": 4,
        "validation.graded": "{corpus: graded, split: validation, contexts: 6, final_contexts: 8, "
        "quantile_contexts: 12}",
        "training.max_length": 48,
        "training.batch_contexts": 8,
        "training.steps": steps,
        "training.warmup": 2,
        "training.learning_rate": 0.01,
        "training.log_every": 1,
        "training.evaluate_every": 4,
        "training.save_every": 4,
    }
    return [word for key, value in values.items() for word in ("--set", f"{key}={value}")]


def command(encoder: Path, corpora: Path, out: Path, steps: int, *more: str) -> list[str]:
    folders = ["--corpora", str(corpora), "--out", str(out)]
    return [str(SCRIPT), "--cpu", *folders, *overrides(encoder, steps), *more]


def environment() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}


def weights(out: Path) -> dict[str, np.ndarray]:
    folder = out / "checkpoint"
    files = [folder / "model.safetensors", *sorted(folder.glob("adapter/*/adapter_model.safetensors"))]
    assert len(files) == 3
    return {
        f"{file}:{key}".split("/checkpoint/")[1]: value.float().numpy()
        for file in files
        for key, value in load_file(file).items()
    }


@pytest.fixture(scope="module")
def finished(tiny_encoder: Path, corpora: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("run") / "whole"
    subprocess.run([sys.executable, *command(tiny_encoder, corpora, out, 12)], check=True, env=environment())
    return out


def log_of(out: Path, kind: str) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    return [row for row in rows if row["kind"] == kind]


def test_a_run_leaves_a_checkpoint_that_scores(finished: Path) -> None:
    metric = Cmn(finished / "checkpoint", device="cpu")
    assert np.isfinite(metric.score(*ROWS).values).all()
    for scoring in ("full", "without_nsp", "without_mi"):
        metric.scoring = scoring  # type: ignore[assignment]
        shares = metric.score(*ROWS, scale="human_percentile").values
        assert ((shares >= 0) & (shares <= 1)).all()
    bank = metric.network.bank_posterior
    assert bank.shape == (6, 8)
    assert len(torch.unique(bank, dim=0)) == 6


def test_the_decoder_is_not_shipped(finished: Path) -> None:
    assert not [name for name in weights(finished) if "decoder" in name or "language_model" in name]
    assert not list((finished / "checkpoint").rglob("*.bin"))


def test_the_log_tells_every_term_of_every_step(finished: Path) -> None:
    rows = log_of(finished, "train")
    assert [row["step"] for row in rows] == list(range(1, 13))
    lines = [row["reconstruction"] for row in rows]
    assert np.mean(lines[-4:]) < np.mean(lines[:4])
    assert {"loss", "kl", "nsp", "critic", "nsp_accuracy"} <= rows[0].keys()
    first = log_of(finished, "validation")[0]
    assert {"nsp_accuracy", "nsp_r1", "auc_full", "auc_without_nsp", "auc_without_mi", "selection"} <= first.keys()
    parts = max(first["auc_without_nsp"], first["auc_without_mi"])
    assert first["selection"] == pytest.approx(first["auc_full"] - max(0, parts - first["auc_full"]), abs=1e-4)
    assert len(log_of(finished, "validation")) == 3


def test_the_config_tells_how_it_was_made(finished: Path) -> None:
    config = json.loads((finished / "checkpoint" / "config.json").read_text())
    kept = [row for row in log_of(finished, "validation") if row["kept"]][-1]
    assert kept["selection"] == max(row["selection"] for row in log_of(finished, "validation"))
    assert (config["training"]["steps"], config["training"]["steps_run"]) == (kept["step"], 12)
    assert config["training"]["stages"][-1]["seen"]["pairs"] == kept["pairs"]
    assert config["training"]["validation"]["contexts"] > 0
    assert config["training"]["corpora"] == ["chat", "graded"]
    assert config["training"]["command"].startswith("training/cmn.py --recipe training/recipes/cmn-minilm.yaml")
    assert config["contaminated_by"] == ["dailydialogpp_dev", "dailydialogpp_positives"]
    assert set(config["quantiles"]) == {"full", "without_nsp", "without_mi"}


def test_a_run_writes_the_card_of_its_checkpoint(finished: Path) -> None:
    card = (finished / "checkpoint" / "README.md").read_text("utf-8")
    assert card == render_card(CheckpointConfig.read(finished / "checkpoint"))


def test_a_killed_run_resumes_to_the_same_weights(
    finished: Path, tiny_encoder: Path, corpora: Path, tmp_path: Path
) -> None:
    out = tmp_path / "killed"
    whole = command(tiny_encoder, corpora, out, 12)
    process = subprocess.Popen([sys.executable, *whole], env=environment(), stderr=subprocess.DEVNULL)
    waited = time.monotonic()
    while not (out / "progress.json").exists() and process.poll() is None and time.monotonic() - waited < PATIENCE:
        time.sleep(0.02)
    process.kill()
    process.wait()
    assert (out / "progress.json").exists()
    subprocess.run([sys.executable, *whole, "--resume"], check=True, env=environment())
    expected, resumed = weights(finished), weights(out)
    assert expected.keys() == resumed.keys()
    for name, value in expected.items():
        assert np.allclose(value, resumed[name], rtol=1e-4, atol=1e-5), name


def test_two_processes_train_one_model(tiny_encoder: Path, corpora: Path, tmp_path: Path) -> None:
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    out = tmp_path / "two"
    subprocess.run([*launch, *command(tiny_encoder, corpora, out, 4)], check=True, env=environment())
    config = json.loads((out / "checkpoint" / "config.json").read_text())
    assert config["training"]["hardware"].startswith("2 process(es)")
    assert np.isfinite(Cmn(out / "checkpoint", device="cpu").score(*ROWS).values).all()


# --- how a network begins --------------------------------------------------------------------------


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(TRAINING))
    import cmn_start

    return cmn_start


def test_an_adapter_cut_to_a_lower_rank_is_the_closest_one(start: Any, tiny_encoder: Path) -> None:
    def change(encoder: Any) -> torch.Tensor:
        layer = encoder.base_model.model.encoder.layer[0].attention.self.query
        return layer.get_delta_weight("default").detach()

    encoder = make_network(tiny_encoder).posterior
    before = change(encoder)
    reduced = start.with_rank(encoder, 2)
    assert reduced.peft_config["default"].r == 2
    left, sizes, right = torch.linalg.svd(before)
    assert torch.allclose(change(reduced), left[:, :2] * sizes[:2] @ right[:2], atol=1e-5)
    assert all(parameter.requires_grad == ("lora_" in name) for name, parameter in reduced.named_parameters())


def test_whitened_latents_are_spread_and_agree(start: Any, tiny_encoder: Path, corpora: Path) -> None:
    from corpora.batches import CandidateSet
    from corpora.dialogues import read_corpus
    from corpora.negatives import NegativeCounts
    from dialeval.engine.encoding import PairEncoder
    from dialeval.engine.formatting import PairTokenizer

    network = make_network(tiny_encoder)
    pairs = start.random_pairs(
        CandidateSet(read_corpus(corpora, "chat", "train"), NegativeCounts(random=1), seed=0), 80, 0
    )
    start.whiten(network, pairs, scale=1.0, log_variance=-3.0)
    tokenizer = PairTokenizer(network.tokenizer, network.config.layout)
    of_pairs = PairEncoder(network, tokenizer).encode(pairs).rows
    of_contexts = PairEncoder(PriorRows(network, "prior"), tokenizer, segment="context").encode(pairs).rows
    means = np.concatenate([of_pairs[:, :4], of_contexts[:, :4]])
    assert np.abs(means.mean(axis=0)).max() < 0.1
    assert means.std(axis=0) == pytest.approx(np.full(4, 0.45), abs=0.1)  # tanh of a normal of half a unit
    assert np.abs(np.corrcoef(means.T) - np.eye(4)).max() < 0.2
    assert of_pairs[:, 4:8] == pytest.approx(np.full((len(pairs), 4), -3 * np.tanh(2)), abs=1e-5)


def test_the_released_pooler_is_taken_over(start: Any, tiny_encoder: Path) -> None:
    network = CmnNetwork.create(make_network(tiny_encoder).config)
    start.load_pooler(network, tiny_encoder)
    stored = load_file(tiny_encoder / "model.safetensors")["pooler.dense.weight"]
    assert torch.equal(network.posterior_pooler.dense.weight, stored)
    assert torch.equal(network.prior_pooler.dense.weight, stored)


def test_references_are_encoded_once(tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(TRAINING))
    from cmn import Collator
    from corpora.batches import Candidates
    from dialeval.exchange import Exchange

    def candidates(reply: str, *references: str) -> Candidates:
        return Candidates(Exchange(context=("how are you",), response=reply, references=references), (reply, "chips"))

    network = make_network(tiny_encoder)
    recipe = {"training": {"max_length": 32}, "decoder": {"max_length": 12}, "seed": 0}
    collator = Collator(network, network.tokenizer, recipe)
    batch = [candidates("fine"), candidates("fine"), candidates("fine", "i am fine")]
    shown = [batch[0].exchange, batch[1].exchanges()[1], batch[2].exchange]
    found = collator.references(batch, shown)
    # Only the true reply of the pair that was shown another one, and the reference that is not the reply itself.
    assert found["where"].tolist() == [0, 3, 4]
    wanted = collator.pairs.pairs(
        [Exchange(context=("how are you",), response=reply) for reply in ("fine", "i am fine")]
    )
    assert [row[row > 0].tolist() for row in found["pair"]["input_ids"]] == [list(pair.ids) for pair in wanted]


@pytest.mark.parametrize("recipe", sorted((TRAINING / "recipes").glob("cmn-*.yaml")), ids=lambda path: path.stem)
def test_recipes_have_the_same_keys(recipe: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(TRAINING))
    read_recipe = importlib.import_module("common").read_recipe

    def keys(node: Any) -> Any:
        return {key: keys(value) for key, value in node.items()} if isinstance(node, dict) else None

    one, compact = (read_recipe(path) for path in (recipe, TRAINING / "recipes" / "cmn-minilm.yaml"))
    assert one["name"] == recipe.stem
    # Only the compact one begins from a network that saw some of the contexts that choose the checkpoint.
    assert one.pop("groups") is None or recipe.stem == "cmn-minilm"
    assert compact.pop("groups")["name"] == compact["validation"]["graded"]["corpus"]
    assert keys(one) == keys(compact)
