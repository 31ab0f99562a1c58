"""The papers' trained baselines: their formulas by hand, rows that stand alone, and a training from end to end."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

import dialeval
from dialeval.checkpoints.config import CheckpointConfig, EncoderSource, LoraSettings
from dialeval.core.exchange import BadRow
from dialeval.encoders.int8 import weights_together
from dialeval.encoders.layout import PairFormat
from dialeval.papers import network_class
from refusals import refused
from shell import write_rows
from tiny_words import WORDS
from training_runs import RECIPES, TRAINING, log_of, read_lines, run_here, settings

pytest.importorskip("dialeval_baselines", reason="`make setup` installs plugins/dialeval-baselines")

from dialeval_baselines import SHIPPED
from dialeval_baselines.adem import Bilinear
from dialeval_baselines.relevance import Relevance
from dialeval_baselines.ruber import GatedRelevance, blend
from dialeval_baselines.usl_h import composed
from dialeval_baselines.vectors import pick, pooled

ON_VECTORS = ("ruber", "bert_ruber", "bert_dnn", "adem", "maude")
ON_PAIRS = ("usr_retrieval", "usr_mlm", "usl_h", "bert_regressor")
ROWS: dict[str, Any] = {
    "responses": ["i am fine thanks", "fish and chips", "no thank you", "fish and chips"],
    "contexts": [
        ["hello there", "how are you"],
        ["what do you like to eat"],
        ["shall we go for a walk"],
        ["are you here"],
    ],
    "references": [["fine thanks"], ["i like fish", "nothing"], ["yes please"], ["chips"]],
}


def test_adems_form_begins_as_two_dot_products() -> None:
    form = Bilinear(width=2, components=2)
    context, reply, reference = (torch.tensor([one]) for one in ([1.0, 2.0], [3.0, 5.0], [7.0, 11.0]))
    assert form(context, reply, reference).item() == 3 + 10 + 21 + 55
    form.offset.data.fill_(9.0)
    form.scale.data.fill_(4.0)
    form.centre.copy_(torch.tensor([1.0, 1.0]))
    assert form(context, reply, reference).item() == (0 * 2 + 1 * 4 + 6 * 2 + 10 * 4 - 9) / 4


def test_the_bilinear_form_goes_into_the_perceptron_beside_both_vectors() -> None:
    torch.manual_seed(0)
    form = Relevance(3, rank=2, hidden=(4,))
    context, reply = torch.randn(5, 3), torch.randn(5, 3)
    assert form.left is not None
    assert form.right is not None
    product = (context @ (form.left.weight.T @ form.right.weight) * reply).sum(dim=-1, keepdim=True)
    expected = form.perceptron(torch.cat([context, reply, product], dim=-1))
    torch.testing.assert_close(form(context, reply), expected)
    assert Relevance(3, rank=0, hidden=(4,)).perceptron[0].in_features == 6


@pytest.mark.parametrize("layers", [1, 2])
def test_rubers_vector_is_the_last_state_of_either_direction_whatever_the_padding(layers: int) -> None:
    torch.manual_seed(0)
    words = torch.nn.Embedding(9, 5)
    encoder = SimpleNamespace(get_input_embeddings=lambda: words)
    form = GatedRelevance(encoder, width=5, size=3, layers=layers, rank=2, hidden=(4,))
    ids = torch.tensor([[1, 2, 3, 0, 0], [4, 5, 6, 7, 8]])
    read = form.read(ids, torch.tensor([3, 5]))
    states, _ = form.words(words(ids[:1, :3]))
    torch.testing.assert_close(read[0], torch.cat([states[0, -1, :3], states[0, 0, 3:]]))


def untrained(name: str, encoder: Path, folder: Path) -> Path:
    """A checkpoint with heads as they begin."""
    torch.manual_seed(3)
    approach = "pairs" if name in ON_PAIRS else name
    config = CheckpointConfig(
        approach,
        name=f"{name}-tiny",
        encoder=EncoderSource(id=str(encoder), tuning="lora" if approach == "pairs" else "frozen"),
        layout=PairFormat(max_length=48),
        architecture={"components": 8, "size": 8, "hidden": 8, "vocabulary": vocabulary(encoder)},
    )
    network = network_class(approach).create(config, lora=LoraSettings(rank=4, alpha=8))
    network.save_pretrained(folder)
    return folder


def vocabulary(encoder: Path) -> int:
    return int(json.loads((encoder / "config.json").read_text())["vocab_size"])


@pytest.mark.parametrize("name", [*ON_VECTORS, *ON_PAIRS])
def test_a_row_stands_alone(name: str, tiny_encoder: Path, tmp_path: Path) -> None:
    metric = dialeval.load(name, checkpoint=untrained(name, tiny_encoder, tmp_path / "one"), device="cpu")
    values = metric.score(**ROWS).values
    assert np.isfinite(values).all()
    assert len(set(values)) > 1
    turned = metric.score(**{key: rows[::-1] * 2 for key, rows in ROWS.items()}).values
    assert turned[::-1][:4] == pytest.approx(values, abs=1e-5)
    for row in range(4):
        alone = metric.score(**{key: rows[row : row + 1] for key, rows in ROWS.items()}).values
        assert alone == pytest.approx(values[row : row + 1], abs=1e-5)
    assert f"{name}-tiny@" in str(metric.signature())


@pytest.mark.parametrize(
    ("dtype", "batches"),
    [("float32", 1),
     pytest.param("int8", 2, marks=pytest.mark.skipif(not weights_together(), reason="this torch has no int8 here"))],
)  # fmt: skip
def test_in_int8_texts_of_other_widths_are_no_company(
    dtype: str, batches: int, tiny_encoder: Path, tmp_path: Path
) -> None:
    folder = untrained("maude", tiny_encoder, tmp_path / "one")
    metric: Any = dialeval.load("maude", checkpoint=folder, dtype=dtype)
    seen: list[torch.Size] = []
    metric.network.encoder.get_input_embeddings().register_forward_hook(lambda *message: seen.append(message[2].shape))
    metric.encode([("hello",), ("fish " * 30,)])
    assert len(seen) == batches


@pytest.mark.parametrize("name", [*ON_VECTORS, *ON_PAIRS])
def test_references_are_asked_for_where_they_are_read(name: str, tiny_encoder: Path, tmp_path: Path) -> None:
    folder = untrained(name, tiny_encoder, tmp_path / "one")
    rows = {key: ROWS[key] for key in ("responses", "contexts")}
    if name in ("adem", "bert_regressor"):
        refused(BadRow, "references", lambda: dialeval.load(name, checkpoint=folder).score(**rows))
        return
    dialeval.load(name, checkpoint=folder).score(**rows)
    if name in ("ruber", "bert_ruber"):
        refused(BadRow, "references", lambda: dialeval.load(name, checkpoint=folder, part="geometric").score(**rows))
        parts = {
            part: dialeval.load(name, checkpoint=folder, part=part).score(**ROWS).values
            for part in ("unreferenced", "referenced", "arithmetic")
        }
        assert parts["arithmetic"] == pytest.approx((parts["unreferenced"] + parts["referenced"]) / 2)
        same = {**ROWS, "references": [[reply] for reply in ROWS["responses"]]}
        assert dialeval.load(name, checkpoint=folder, part="referenced").score(**same).values == pytest.approx(1.0)


def test_usl_h_is_made_of_its_parts(tiny_encoder: Path, tmp_path: Path) -> None:
    folder = untrained("usl_h", tiny_encoder, tmp_path / "one")
    scores = dialeval.load("usl_h", checkpoint=folder).score(**ROWS)
    sensible = dialeval.load("usr_retrieval", checkpoint=folder).score(**ROWS).values
    understandable = dialeval.load("valid_utterance", checkpoint=folder).score(**ROWS).values
    assert scores.aspects["sensible"] == pytest.approx(sensible, abs=1e-5)
    assert scores.aspects["understandable"] == pytest.approx(understandable, abs=1e-5)
    # The same reply after another context is as understandable and as likable.
    assert scores.aspects["understandable"][1] == pytest.approx(scores.aspects["understandable"][3], abs=1e-5)
    assert scores.aspects["likable"][1] == scores.aspects["likable"][3]
    assert scores.values == pytest.approx(composed(*scores.aspects.values(), "hierarchical"))


@pytest.fixture
def corpora(tmp_path: Path) -> Path:
    """Contexts whose right replies repeat a word of theirs, and ratings of one source."""
    root = tmp_path / "corpora"
    rng = np.random.default_rng(0)

    def text(*kept: str) -> str:
        return " ".join([*kept, *rng.choice(WORDS, size=4)])

    groups = []
    for number, word in enumerate(rng.choice(WORDS, size=24)):
        kinds = {"positive": (word, word), "random_negative": ("dog",), "adversarial_negative": ("dog", word)}
        replies = {f"{kind}_responses": [text(*kept) for _ in range(3)] for kind, kept in kinds.items()}
        groups.append({"id": f"g{number}", "context": [text(word)], **replies})
    ratings = []
    for number in range(30):
        row = {"id": f"r{number}", "context": [text()], "response": text(), "references": [text()]}
        scores, split = {"overall": int(rng.integers(1, 6))}, "dev" if number % 3 else "train"
        ratings.append({**row, "scores": scores, "split": split})
    write_rows(root / "pp" / "dev.jsonl", groups)
    write_rows(root / "ratings" / "dstc7.jsonl", ratings)
    (root / "overlaps.json").write_text("{}")
    (root / "ratings" / "overlaps.json").write_text("[]")
    return root


@pytest.mark.slow
@pytest.mark.parametrize("name", [*ON_VECTORS, "pairs"])
def test_a_recipe_trains_what_can_be_loaded(name: str, corpora: Path, tiny_encoder: Path, tmp_path: Path) -> None:
    chosen = [f"encoder={tiny_encoder}", "start_from=null", "leave_out=overlaps.json", "augmentation=[]"]
    chosen += ["groups={name: pp, split: dev, held_out: 0.25, seed: 0}", "layout.max_length=48"]
    chosen += ["ratings={leave_out: overlaps.json, aspect: overall}", "training.steps=12", "training.batch_size=16"]
    chosen += ["training.warmup=2", "training.evaluate_every=6", "training.log_every=6"]
    if name == "adem":
        chosen += ["architecture.components=4"]
    if name == "pairs":
        chosen += [f"architecture.vocabulary={vocabulary(tiny_encoder)}", "words.steps=6", "words.batch_size=8"]
    given = ["--cpu", "--recipe", str(RECIPES / f"{name}-minilm.yaml"), "--corpora", str(corpora)]
    given += ["--ratings", str(corpora / "ratings"), "--out", str(tmp_path / "out")]
    run_here([str(TRAINING / "baselines.py"), *given, *settings(chosen)])
    log = log_of(tmp_path / "out")
    assert {"train", "validation", "final"} == {line["kind"] for line in log}
    folder = tmp_path / "out" / "checkpoint"
    record = CheckpointConfig.read(folder).training
    for key, value in record["validation"].items():
        assert log[-1][key] == pytest.approx(value, abs=1e-5)
    for metric in ON_PAIRS if name == "pairs" else (name,):
        values = dialeval.load(metric, checkpoint=folder).score(**ROWS).values
        assert np.isfinite(values).all()
    if name == "pairs":
        assert {"auc_random_usr_retrieval", "auc_damaged_valid_utterance", "perplexity"} <= record["validation"].keys()
        assert "spearman_bert_regressor" in record["validation"]


#: A turn, a reply to it, and as reference another one, which says something else.
TALK = [
    line.split(" | ")
    for line in """
What would you like to eat tonight? | I would love some fish and chips. | Let us order a pizza.
When does the next train to London leave? | There is one at half past six from platform two. | Ask at the counter.
My sister is getting married in June. | How lovely! Who is she going to marry? | Will it be a big wedding?
I have had a terrible headache all day. | Take an aspirin and lie down for a while. | You ought to see a doctor.
Could you help me with my maths homework? | Sure, which exercise are you stuck on? | I was never good at it.
How much is this blue shirt? | It costs thirty dollars, but it is on sale this week. | Let me check the price.
What did you do at the weekend? | We went hiking in the mountains with friends. | Not much, I stayed at home and read.
The printer on the third floor is broken again. | I will call the technician to look at it. | Use the one downstairs.
""".strip().splitlines()
]


@pytest.mark.slow
@pytest.mark.encoder
@pytest.mark.parametrize("name", [*ON_VECTORS, *ON_PAIRS])
def test_what_ships_prefers_the_reply_to_its_context(name: str) -> None:
    contexts, replies, references = zip(*TALK, strict=True)
    rows = [(said, asked) for asked in range(len(TALK)) for said in range(len(TALK))]
    metric = dialeval.load(name, device="cpu")
    columns = (
        [replies[said] for said, _ in rows],
        *([[side[asked]] for _, asked in rows] for side in (contexts, references)),
    )
    values = metric.score(*columns).values.reshape(len(TALK), len(TALK))
    right = np.diag(values).mean()
    wrong = values[~np.eye(len(TALK), dtype=bool)].mean()
    assert right > wrong


def test_what_ships_is_small_and_names_its_recipe() -> None:
    folders = sorted(path.parent for path in SHIPPED.glob("*/config.json"))
    assert {folder.name for folder in folders} == {f"{name}-minilm" for name in (*ON_VECTORS, "pairs")}
    for folder in folders:
        config = CheckpointConfig.read(folder)
        assert config.name == folder.name
        assert (RECIPES / f"{config.name}.yaml").is_file()
        log = TRAINING.parent / "results" / "training" / f"{config.name}.jsonl"
        final = read_lines(log)[-1]
        for key, value in config.training["validation"].items():
            assert final[key] == pytest.approx(value, abs=1e-5), key


def test_blends_of_both_parts() -> None:
    unreferenced, referenced = np.array([0.25, 1.0]), np.array([1.0, 0.0])
    assert list(blend(unreferenced, referenced, "min")) == [0.25, 0.0]
    assert list(blend(unreferenced, referenced, "max")) == [1.0, 1.0]
    assert list(blend(unreferenced, referenced, "arithmetic")) == [0.625, 0.5]
    assert list(blend(unreferenced, referenced, "geometric")) == [0.5, 0.0]
    assert list(blend(unreferenced, referenced, "referenced")) == [1.0, 0.0]


def test_what_is_likable_counts_as_far_as_the_reply_is_sensible_and_understandable() -> None:
    whole = np.ones(1)
    assert composed(whole, whole, whole, "hierarchical") == pytest.approx(1.0)
    assert composed(whole, 0 * whole, whole, "hierarchical") == pytest.approx(0.33)
    assert composed(0 * whole, whole, whole, "hierarchical") == pytest.approx(0.0)
    assert composed(0 * whole, whole, whole, "weighted") == pytest.approx(0.67)
    assert composed(0.5 * whole, 0.5 * whole, 0.5 * whole, "hierarchical") == pytest.approx(
        0.33 * 0.5 + 0.33 * 0.25 + 0.34 * 0.125
    )


def test_pooling_looks_at_real_tokens_only() -> None:
    tokens = torch.tensor([[[1.0, -2.0], [3.0, 4.0], [100.0, -100.0]]])
    rows = pooled(tokens, torch.tensor([[1, 1, 0]]))
    assert rows.tolist() == [[3.0, 4.0, 1.0, -2.0, 2.0, 1.0]]
    assert pick(rows, "mean", "min").tolist() == [[2.0, 1.0, 1.0, -2.0]]
    assert pooled(tokens, torch.zeros(1, 3)).tolist() == [[0.0] * 6]
