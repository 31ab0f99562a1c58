"""The CMN training script end to end, on a tiny random encoder and a made-up corpus."""

import json
import random
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import cmn_start
from cmn import Collator
from cmn_networks import make_network
from corpora.batches import Candidates
from dialeval.core.exchange import Exchange
from dialeval.papers.cmn import Cmn
from shell import write_rows
from tiny_words import WORDS
from training_runs import TRAINING, killed_after_saves, log_of, overrides, run_here, same, weights

pytestmark = pytest.mark.slow

ROWS = (["i am fine thanks", "fish and chips"], [["how are you"], ["how are you"]], ["fine thanks", "i am fine"])


@pytest.fixture(scope="module")
def corpora(tiny_corpora: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The dialogues shared by all training tests, and contexts with good, adversarial and random replies."""
    root = tmp_path_factory.mktemp("cmn-corpora") / "corpora"
    shutil.copytree(tiny_corpora, root)
    rng = random.Random(1)

    def texts(count: int) -> list[str]:
        return [" ".join(rng.choices(WORDS, k=rng.randint(2, 7))) for _ in range(count)]

    kinds = {"positive_responses": 3, "adversarial_negative_responses": 2, "random_negative_responses": 2}
    rows = [
        {"id": f"graded-{number}", **{kind: texts(count) for kind, count in {"context": 2, **kinds}.items()}}
        for number in range(24)
    ]
    write_rows(root / "graded" / "validation.jsonl", rows)
    return root


GRADED = "{corpus: graded, split: validation, contexts: 6, final_contexts: 8, quantile_contexts: 12}"
OWN = {
    "architecture": "{latent: 4, bank: 6}",
    "whitening_pairs": 60,
    "decoder": "{pretrained: null, n_layer: 2, n_head: 2, n_embd: 16, dropout: 0.0, max_length: 12}",
    "groups": "{name: graded, split: validation, held_out: 0.5, seed: 1}",
    "prior_rank": 2,
    **{f"validation.{key}": value for key, value in {"corpus": "chat", "contexts": 8, "candidates": 4}.items()},
    "validation.graded": GRADED,
    "training.batch_contexts": 8,
}


def command(encoder: Path, corpora: Path, out: Path) -> list[object]:
    return [TRAINING / "cmn.py", "--cpu", "--corpora", corpora, "--out", out, *overrides(encoder, 12, OWN)]


@pytest.fixture(scope="module")
def finished(tiny_encoder: Path, corpora: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("run") / "whole"
    run_here(command(tiny_encoder, corpora, out))
    return out


def test_a_run_leaves_a_checkpoint_that_scores(finished: Path) -> None:
    metric = Cmn(finished / "checkpoint", device="cpu")
    assert np.isfinite(metric.score(*ROWS).values).all()
    for scoring in ("full", "without_nsp", "without_mi"):
        metric.scoring = scoring  # type: ignore[assignment]
        shares = metric.score(*ROWS, scale="human_percentile").values
        assert ((shares >= 0) & (shares <= 1)).all()
    bank = metric.network.bank_posterior
    assert (bank.shape, len(torch.unique(bank, dim=0))) == ((6, 8), 6)
    # The decoder is not shipped.
    assert not [name for name in weights(finished / "checkpoint") if "decoder" in name or "language_model" in name]
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


def test_a_killed_run_resumes_to_the_same_weights(
    finished: Path, tiny_encoder: Path, corpora: Path, tmp_path: Path
) -> None:
    whole = command(tiny_encoder, corpora, tmp_path / "killed")
    killed_after_saves(whole, 1)
    run_here([*whole, "--resume"])
    assert same(finished / "checkpoint", tmp_path / "killed" / "checkpoint")


# --- how a network begins --------------------------------------------------------------------------


def test_an_adapter_cut_to_a_lower_rank_is_the_closest_one(tiny_encoder: Path) -> None:
    def change(encoder: Any) -> torch.Tensor:
        layer = encoder.base_model.model.encoder.layer[0].attention.self.query
        return layer.get_delta_weight("default").detach()

    encoder = make_network(tiny_encoder).posterior
    before = change(encoder)
    reduced = cmn_start.with_rank(encoder, 2)
    assert reduced.peft_config["default"].r == 2
    left, sizes, right = torch.linalg.svd(before)
    assert torch.allclose(change(reduced), left[:, :2] * sizes[:2] @ right[:2], atol=1e-5)
    assert all(parameter.requires_grad == ("lora_" in name) for name, parameter in reduced.named_parameters())


def test_references_are_encoded_once(tiny_encoder: Path) -> None:
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
