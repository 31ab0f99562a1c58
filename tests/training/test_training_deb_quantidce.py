"""The training scripts of DEB and QuantiDCE from end to end on a tiny encoder: killed, resumed, and every variant."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import common
import deb
import quantidce
import trainer
import training_runs as runs
from corpora.grouped import Group, labelled_rows
from dialeval.checkpoints.config import CheckpointConfig, EncoderSource
from dialeval.encoders.layout import PairFormat
from dialeval.papers.deb import Deb, DebNetwork
from dialeval.papers.quantidce import QuantiDce
from refusals import refused
from shell import write_rows
from tiny_words import WORDS

pytestmark = pytest.mark.slow

CHAT = "[{name: chat, splits: [train], share: 1.0}]"
STEPS = "pretraining.steps=4 fine_tuning.steps=6"
STAGE = ["batch_size=6", "warmup=1", "log_every=1", "evaluate_every=2", "save_every=2", "learning_rate=0.01"]


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Chat, grouped replies that repeat a word of their context or not, and ratings."""
    root = tmp_path_factory.mktemp("grouped")
    rng = random.Random(0)

    def text(*kept: str) -> str:
        return " ".join([*kept, *rng.choices(WORDS, k=rng.randint(3, 6))])

    for split, count in (("train", 30), ("validation", 12)):
        chat = [{"id": f"{split}-{number}", "utterances": [text() for _ in range(3)]} for number in range(count)]
        write_rows(root / "chat" / f"{split}.jsonl", chat)

    def group(number: int, kinds: int) -> dict[str, Any]:
        word = rng.choice(WORDS)
        replies = [[text(word) for _ in range(3)], [text() for _ in range(3)], [text("dog") for _ in range(3)]]
        names = ["positive_responses", "adversarial_negative_responses", "random_negative_responses"]
        return {"id": f"g{number}", "context": [text(word)], **dict(zip(names[:kinds], replies, strict=False))}

    write_rows(root / "pp" / "dev.jsonl", [group(number, 3) for number in range(24)])
    write_rows(root / "pp" / "more.jsonl", [group(number, 1) for number in range(100, 130)])
    ratings = [
        {"id": f"r{at}", "context": [text(), text()], "response": text(), "scores": {"coherence": rng.randint(1, 5)}}
        for at in range(20)
    ]
    write_rows(root / "ratings" / "rated.jsonl", ratings)
    (root / "overlaps.json").write_text(json.dumps({"chat": {"train vs validation": ["train-0"]}}))
    return root


@pytest.fixture
def words(corpora: Path, tiny_encoder: Path, tmp_path: Path) -> Callable[..., list[str]]:
    """What starts a script with the tiny encoder; what is chosen beside it stands in one text, between blanks."""
    common = [f"encoder={tiny_encoder}", "start_from=null", "tuning=lora", "lora.rank=2", "lora.alpha=4"]
    common += ["groups={name: pp, split: dev, held_out: 0.25, seed: 0}", "augmentation=[]", "leave_out=overlaps.json"]
    common += ["layout.max_length=48", "training.bf16=false", "training.max_length=32"]
    deb = [f"corpora={CHAT}", "validation={corpus: chat, split: validation, contexts: 10, candidates: 2}"]
    deb += ["layout.response_budget=null"]
    quantidce = ["pretraining.per_level=3", "pretraining.batch_size=2", "fine_tuning.batch_size=4"]
    quantidce += [f"ratings={{benchmark: {corpora / 'ratings' / 'rated.jsonl'}, held_out: 6}}"]
    for stage in ("pretraining", "fine_tuning"):
        deb += [f"{stage}.{setting}" for setting in STAGE]
        quantidce += [f"{stage}.{setting}" for setting in [*STAGE[2:], "warmup_epochs=0.1"]]

    def of(script: str, out: str, chosen: str, *more: str, resume: bool = False) -> list[str]:
        given = ["--cpu", "--corpora", str(corpora), "--out", str(tmp_path / out)]
        given += ["--recipe", str(runs.RECIPES / f"{script}-minilm.yaml"), *(["--resume"] if resume else [])]
        own = deb if script == "deb" else quantidce
        return [str(runs.TRAINING / f"{script}.py"), *given, *runs.settings((*common, *own, *chosen.split(), *more))]

    return of


@pytest.fixture
def train(words: Any, tmp_path: Path) -> Callable[..., list[dict[str, Any]]]:
    def run(script: str, out: str, *chosen: str, resume: bool = False) -> list[dict[str, Any]]:
        runs.run_here(words(script, out, *chosen, resume=resume))
        return runs.log_of(tmp_path / out)

    return run


@pytest.mark.parametrize(("script", "metric"), [("deb", Deb), ("quantidce", QuantiDce)])
def test_a_killed_run_resumes_to_the_same_weights(
    train: Any, words: Any, tmp_path: Path, script: str, metric: Any
) -> None:
    chosen = f"{STEPS} encoder_dropout=0.1"  # random masks must continue where they stopped, too
    log = train(script, "whole", chosen)
    for save in (1, 3):  # in stage one, and in stage two
        runs.killed_after_saves(words(script, f"killed-{save}", chosen), save)
        refused(SystemExit, "--resume", train, script, f"killed-{save}", chosen)
        train(script, f"killed-{save}", chosen, resume=True)
        assert runs.same(tmp_path / "whole" / "checkpoint", tmp_path / f"killed-{save}" / "checkpoint")

    assert [row["kind"] for row in log if row["kind"] != "train"] == ["validation"] * 3 + ["final"]
    assert len([row for row in log if row["kind"] == "train"]) == 6
    assert all(np.isfinite(row["loss"]) for row in log if row["kind"] == "train")
    loaded = metric(tmp_path / "whole" / "checkpoint", device="cpu")
    scores = loaded.score(["fish and chips", "the weather"], [["what do you like"]] * 2)
    low, high = metric.info.range
    assert ((scores.values > low) & (scores.values < high)).all()
    percent = loaded.score(["fish"], [["hello"]], scale="human_percentile")
    assert 0 <= percent.values[0] <= 1
    assert "dailydialogpp_dev" in loaded.contaminated_by
    assert loaded.info.title in (tmp_path / "whole" / "checkpoint" / "README.md").read_text("utf-8")
    record = CheckpointConfig.read(tmp_path / "whole" / "checkpoint").training
    first, second = record["stages"]
    assert (first["steps_run"], second["steps_run"], record["total"]["steps_run"]) == (4, 6, 10)
    assert first["name"] == f"{second['name']}, first stage"
    kept = [row for row in log if row.get("kept")][-1]
    assert (record["steps"], second["seen"]) == (kept["step"], {"replies": kept["replies"]})


def test_deb_loss_falls_and_the_figures_are_recorded(train: Any, tmp_path: Path) -> None:
    steps = "pretraining.steps=0 fine_tuning.steps=60 fine_tuning.evaluate_every=60 fine_tuning.save_every=60"
    log = train("deb", "out", f"{steps} fine_tuning.batch_size=24 fine_tuning.learning_rate=0.006 tuning=full")
    losses = [row["loss"] for row in log if row["kind"] == "train"]
    assert np.mean(losses[-5:]) < 0.7 * np.mean(losses[:5])
    final = log[-1]
    assert final["accuracy_random"] == pytest.approx(
        (final["accepted_positive"] + 1 - final["accepted_random"]) / 2, abs=1e-4
    )
    config = CheckpointConfig.read(tmp_path / "out" / "checkpoint")
    assert config.training["rows"] == {"pp/dev": {"positive": 108, "random": 54, "adversarial": 54}}
    stored = load_file(tmp_path / "out" / "checkpoint" / "model.safetensors")["temperature"]
    assert stored.item() == pytest.approx(final["temperature"], abs=1e-4)
    assert final["calibration_error_before"] >= 0
    assert final["shift"] != 0
    assert sum(one["count"] for one in config.training["reliability"]) == 6 * 12
    assert not (tmp_path / "out" / "pretraining").exists()


def test_deb_variants_run(train: Any, tmp_path: Path) -> None:
    mined = "[{name: pp, split: more, share: 0.5, contexts: 25, random: 2, mined_by_words: 2, mined_by_embedding: 1}]"
    chosen = "steps=null epochs=0.5 mlm_weight=0.5 bias_correction=false clip_each=true shuffle=false"
    chosen = " ".join(f"fine_tuning.{setting}" for setting in f"{chosen} negatives=adversarial".split())
    head = "head={pooled: false, bias: false}"
    log = train("deb", "out", f"pretraining.steps=2 calibrate_shift=false {chosen}", head, f"augmentation={mined}")
    # Half an epoch over 18 contexts with 3 + 3 rows, half of the batches from elsewhere: 0.5 * 108 / 0.5 / 6.
    assert [row["step"] for row in log if row["kind"] == "train"] == list(range(1, 19))
    assert "masked_words" in log[0]
    config = CheckpointConfig.read(tmp_path / "out" / "checkpoint")
    assert config.architecture == {"pooled": False, "bias": False}
    assert set(config.training["rows"]["pp/more"]) == {"positive", "mined"}
    assert config.training["available"]["pp/more"]["contexts"] == 25
    assert set(config.training["pretraining"]["pairs"]) == {"chat"}
    first = runs.log_of(tmp_path / "out" / "pretraining")
    assert {"perplexity", "word_accuracy", "accuracy"} <= set(first[-1])


def test_deb_begins_from_another_checkpoint_and_without_steps_keeps_it(train: Any, tmp_path: Path) -> None:
    train("deb", "first", "pretraining.steps=0 fine_tuning.steps=2")
    start = tmp_path / "first" / "checkpoint"
    log = train("deb", "second", "pretraining.steps=0 fine_tuning.steps=0", f"start_from={start}")
    assert [row["kind"] for row in log] == ["validation", "final"]
    begun, kept = runs.weights(start), runs.weights(tmp_path / "second" / "checkpoint")
    adapters = [key for key in begun if "lora_" in key]
    assert adapters
    assert all(torch.equal(begun[key], kept[key]) for key in adapters)
    refused(SystemExit, "start_from", train, "deb", "third", f"tuning=full start_from={start}")


def test_recipes_fill_in_what_they_leave_unsaid(tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text("name: base\nseed: 1\nloss: {weight: 1, margin: 2}\ncorpora: [a, b]\n")
    (tmp_path / "own.yaml").write_text("based_on: base.yaml\nname: own\nloss: {margin: 3}\ncorpora: [c]\n")
    expected = {"name": "own", "seed": 1, "loss": {"weight": 1, "margin": 3}, "corpora": ["c"]}
    assert common.read_recipe(tmp_path / "own.yaml") == expected


def test_diverged_training_says_so(train: Any) -> None:
    refused(SystemExit, "learning rate", train, "quantidce", "out", "pretraining.steps=2 pretraining.clip=.nan")


@pytest.mark.parametrize(
    "chosen",
    [
        "losses.mlr=0 losses.contrastive=1 losses.triplet=1 losses.features=1 fine_tuning.method=mse",
        "losses.mlr=0 losses.binary=1 losses.margin=1 losses.vanilla=1 fine_tuning.distance=sum",
        "multi_level.ordering_weight=0 fine_tuning.attention=pre_softmax fine_tuning.pad_to_max_length=true",
        "pretraining.steps=0 fine_tuning.method=mse_fix_encoder fine_tuning.percent=50",
    ],
)
def test_quantidce_variants_run(train: Any, tmp_path: Path, chosen: str) -> None:
    log = train("quantidce", "out", f"{STEPS} {chosen}")
    assert all(np.isfinite(row["loss"]) for row in log if "loss" in row)
    assert ("distillation" in log[0]) == ("method=mse" not in chosen)
    if "fine_tuning.method=mse_fix_encoder" in chosen:
        record = CheckpointConfig.read(tmp_path / "out" / "checkpoint").training
        assert record["rated_rows"] == {"training": 7, "held_out": 6}
        adapter = runs.weights(tmp_path / "out" / "checkpoint" / "adapter")
        assert all((tensor == 0).all() for key, tensor in adapter.items() if "lora_B" in key)
        assert not (tmp_path / "out" / "pretraining").exists()


def test_quantidce_orders_the_levels(train: Any, tmp_path: Path) -> None:
    steps = "pretraining.steps=80 pretraining.evaluate_every=40 pretraining.save_every=80"
    train("quantidce", "out", f"{steps} fine_tuning.percent=0")
    log = runs.log_of(tmp_path / "out" / "pretraining")
    judged = [row for row in log if row["kind"] == "validation"]
    assert judged[-1]["loss"] < 1.2  # what equal scores cost
    assert judged[-1]["positive_above_random"] > 0.8
    # Without rated rows the network of stage one stays as it was.
    assert runs.same(tmp_path / "out" / "pretraining" / "checkpoint", tmp_path / "out" / "checkpoint")


# --- schedules and optimiser -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("warmup", "total", "expected"),
    [
        (5.4, 540, {0: 0, 1: 0.185185, 5: 0.925926, 6: 0.998878, 270: 0.505051, 540: 0}),
        (308.6, 15430, {100: 0.324044, 309: 0.999974, 1000: 0.954277}),
    ],
)
def test_learning_rates_of_the_specification(warmup: float, total: int, expected: dict[int, float]) -> None:
    schedule = trainer.linear_schedule(torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0), warmup, total)
    for step, factor in expected.items():
        assert schedule.lr_lambdas[0](step) == pytest.approx(factor, abs=1e-6)


def test_without_bias_correction_steps_are_those_of_berts_adam() -> None:
    model = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.ones_(model.weight)
    settings = {"learning_rate": 0.1, "weight_decay": 0.0, "bias_correction": False, "warmup": 0, "steps": 10**9}
    optimizer = trainer.make_optimizer(model, settings)
    schedule = trainer.make_schedule(optimizer, settings)
    found = []
    for _ in range(2):
        model.weight.grad = torch.tensor([[2.0]])
        optimizer.step()
        schedule.step()
        found.append(model.weight.item())
    # Means 0.2 and 0.38, of squares 0.004 and 0.007996, neither of them corrected.
    first = 1 - 0.1 * 0.2 / 0.004**0.5
    assert found == pytest.approx([first, first - 0.1 * 0.38 / 0.007996**0.5], abs=1e-4)


def test_two_processes_train_one_network(words: Any, tmp_path: Path) -> None:
    # Losses of features alone leave the scorer without a gradient, which data parallelism refuses if nobody cares.
    chosen = "pretraining.steps=2 fine_tuning.steps=2 losses.mlr=0 losses.contrastive=1"
    runs.run_in_two_processes(words("quantidce", "out", chosen))
    record = CheckpointConfig.read(tmp_path / "out" / "checkpoint").training
    assert record["hardware"].startswith("2 process")
    assert [row["kind"] for row in runs.log_of(tmp_path / "out")].count("train") == 2
    QuantiDce(tmp_path / "out" / "checkpoint", device="cpu")


# --- the public ratings ----------------------------------------------------------------------------


def test_a_fitted_head_tells_damaged_replies_and_keeps_half_of_the_learned_one() -> None:
    config = CheckpointConfig(
        "deb", encoder=EncoderSource(tuning="frozen"), layout=PairFormat(max_length=48),
        architecture={"pooled": False, "bias": True},
    )  # fmt: skip
    network = DebNetwork.create(config)
    draw = random.Random(3)
    sentences = [" ".join(draw.sample(WORDS, 6)) for _ in range(16)]
    groups = [
        Group(str(place), ("hello there",), (sentences[place],), random=(sentences[place + 1],))
        for place in range(0, 16, 2)
    ]
    head = {"contexts": 8, "damaged": 1.0, "strength": 10.0}
    recipe = {**common.read_recipe(runs.TRAINING / "recipes" / "deb-minilm.yaml"), "head_fit": head}
    deb.set_head(network, torch.zeros(384), torch.zeros(()))
    deb.fit_head(network, groups, recipe)
    alone = network.classifier.weight[0].clone()
    logits = deb.held_out_logits(network, labelled_rows(groups, negatives="random"))
    assert np.mean((logits[:, 0] > logits[:, 1]) == np.array([True, False] * 8)) > 0.9
    learned = torch.randn(384, generator=torch.Generator().manual_seed(1))
    deb.set_head(network, learned, torch.zeros(()))
    deb.fit_head(network, groups, recipe)
    rest = network.classifier.weight[0] - alone / 2
    assert torch.nn.functional.cosine_similarity(rest, learned, dim=0) > 0.999


def test_damaged_right_replies_stand_beside_mined_ones() -> None:
    right = ("we could go to the sea on sunday", "yes", "the train leaves at ten in the morning")
    group = Group("a", ("shall we travel",), right, mined=("the sea is blue",))
    (damaged,) = quantidce.with_damaged([group], 2, seed=4)
    first, *others = damaged.mined
    assert first == "the sea is blue"
    assert len(others) == 2
    words = [set(reply.split()) for reply in right]
    assert all(reply not in right and any(set(reply.split()) <= known for known in words) for reply in others)
    assert quantidce.with_damaged([group], 0, seed=4) == [group]
