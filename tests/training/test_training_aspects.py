"""The last phase of the encoder's training and metrics on it, on a tiny encoder; faults and losses by hand."""

import json
import math
import random
from argparse import Namespace
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from transformers import AutoTokenizer

import aspects
import dialeval
import distil
import judge
import judge_heads
import trunk
from aspect_rows import PhaseStep, PhaseSteps, Sources, faulty_rows
from common import read_recipe, read_trunk
from corpora.faults import DAMAGES, civil, contradicted, damage, insult, insulting, statement_of
from corpora.ratings import Rated
from dialeval.checkpoints.config import CheckpointConfig
from dialeval.checkpoints.load import packed, unpacked
from dialeval.core.exchange import Exchange
from dialeval.encoders.base import tuned_state
from dialeval.encoders.batching import PairEncoder
from dialeval.encoders.layout import PairFormat, PairTokenizer
from dialeval.hub.card import rated as rated_by
from dialeval.judge.metric import Judge
from dialeval.judge.rule import ASPECTS
from history import TrainingRun
from shell import write_rows
from small_checkpoints import small_checkpoint
from starts import start_weights
from tiny_words import WORDS
from training_runs import TRAINING, run_here, settings

GROUPS = {"name": "pp", "split": "dev", "held_out": 0.25, "seed": 0}
FAULTS = (
    "{dialogues: 0.3, contexts: 40, fluent: 32, insults: 8, convabuse: 12, consistent: 6, faithful: 6, begin: 12, "
    "informative: 8, followed: 12}"
)
NEGATIVES = "{random: 1, same_dialogue: 1, shared_word: 1}"
STRENGTH = "{respectful: 0.01, faithful: 0, consistent: 0.01, fluent: 0.1, satisfied: 0.01, informative: 0.01}"
LAYOUT = {"max_length": 48, "response_budget": 16, "facts_budget": 12, "separator": "[unused0]",
          "facts_separator": "[SEP]"}  # fmt: skip


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
        ("I can't swim.", {"I can swim."}),
        ("I won't go.", {"I will go."}),
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
    for write in (insulting, civil):
        assert all(write("fine", np.random.default_rng(seed)) != "fine" for seed in range(20))


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
    rows = faulty_rows(np.random.default_rng(0), [[one]], counts)
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
    write_rows(root / "pp" / "dev.jsonl", groups)
    for split in ("train", "validation"):
        chat = [
            {"id": f"{split}{at}", "utterances": [text("i have two dogs and") for _ in range(5)],
             "speakers": list("ababa"), "persona": [["i like two dogs"], ["i have a cat"]]}
            for at in range(60)
        ]  # fmt: skip
        write_rows(root / "chat" / f"{split}.jsonl", chat)

    answers = [{"id": f"a{at}", "utterances": [text(), ". ".join(text() for _ in range(5))]} for at in range(12)]
    write_rows(root / "answers" / "train.jsonl", answers)

    often = [{"id": f"o{at}", "utterances": [text(), "i like dogs", text(), "i like cats"]} for at in range(30)]
    write_rows(root / "often" / "train.jsonl", often)

    def rated(source: str, scores: dict[str, float], **more: Any) -> list[dict[str, Any]]:
        return [
            {"id": f"{source}-{at}", "source": source, "family": source, "level": "turn",
             "split": "dev" if at % 2 else "train", "context": [text(), text()], "response": text(),
             "scores": {name: round(rng.random() * top, 2) for name, top in scores.items()}, **more}
            for at in range(40)
        ]  # fmt: skip

    write_rows(root / "ratings" / "dbdc3.jsonl", rated("dbdc3", {"no_breakdown": 1}))
    write_rows(root / "ratings" / "begin.jsonl", rated("begin", {"attributable": 1}, facts=["i have a cat"]))
    write_rows(root / "ratings" / "convabuse.jsonl", rated("convabuse", {"respectful": 1}))
    pairs = [
        {**row, "response_a": text(), "response_b": text(), "preferred": rng.choice("ab")} for row in rated("liked", {})
    ]
    write_rows(root / "ratings" / "liked.jsonl", pairs)
    chats = {"level": "dialogue", "response": None, "context": [text() for _ in range(4)]}
    write_rows(
        root / "ratings" / "chats.jsonl", rated("chats", {"overall": 5}, **chats, speakers=["user", "system"] * 2)
    )
    (root / "ratings" / "overlaps.json").write_text(json.dumps({"dbdc3-0": ["x"], "dbdc3-2": ["x"]}))
    (root / "overlaps.json").write_text(json.dumps({"pp": {}}))
    return root


def recipe_of(name: str, folder: Path, **changes: Any) -> Path:
    chosen = yaml.safe_load((TRAINING / "recipes" / f"{name}.yaml").read_text()) | changes
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(chosen))
    return path


def started(script: Any, *words: Any) -> None:
    run_here([TRAINING / f"{script.__name__}.py", *words])


@pytest.fixture(scope="module")
def given(data: Path, tiny_encoder: Path) -> list[Any]:
    """What both phases are told alike."""
    return ["--corpora", data, "--encoder", tiny_encoder, "--dtype", "float32"]


@pytest.fixture(scope="module")
def rated(given: list[Any], data: Path) -> list[Any]:
    return [*given, "--ratings", data / "ratings"]


@pytest.fixture(scope="module")
def encoders(given: list[Any], rated: list[Any], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The folders of both runs: next replies alone, and the last phase after it."""
    out = tmp_path_factory.mktemp("encoders")
    layers = recipe_of(
        "trunk", out, leave_out="overlaps.json", layout=LAYOUT, corpora={"chat": ["train"]},
        stages=[{"name": "all", "contexts": 8, "corpora": ["chat"]}], batch_contexts=4, save_every=2,
        validation={"dialogues": 0.3, "contexts": 4, "candidates": 5, "every_processor_hours": 1.0},
    )  # fmt: skip
    phase = recipe_of(
        "aspects", out, steps=4, warmup=1, leave_out="overlaps.json", groups=GROUPS,
        start_from=[str(out / "trunk" / "trunk.safetensors")],
        ratings={"leave_out": "overlaps.json", "train": ["dbdc3"], "labelled": ["begin", "convabuse"]},
        rows={"contexts": 4, "rated": 6, "valid": 6, "fluent": 4, "insults": 2, "convabuse": 4, "consistent": 3,
              "faithful": 3, "begin": 4},
        validation={"contexts": 3, "rows": 12, "every": 2},
    )  # fmt: skip
    started(trunk, *given, "--recipe", layers, "--out", out / "trunk")
    started(aspects, *rated, "--recipe", phase, "--out", out / "aspects")
    return out / "trunk", out / "aspects"


@pytest.fixture(scope="module")
def judged(encoders: tuple[Path, Path], data: Path, tiny_encoder: Path) -> Path:
    pairs, out = "[{name: chat, splits: [%s], pairs: 30}]", encoders[1].parent / "judge"
    chosen = settings((
        f"start_from={encoders[1] / 'trunk.safetensors'}", f"encoder={tiny_encoder}", "leave_out=overlaps.json",
        f"layout={json.dumps(LAYOUT)}", f"density={pairs % 'train'}", f"human={pairs % 'validation'}",
        "ratings.leave_out=overlaps.json", "ratings.stack=[dbdc3]", "ratings.dialogues=[chats]",
        "ratings.train=[dbdc3]", "ratings.labelled=[begin, convabuse]",
        "sound=[{name: chat, splits: [train], replies: 24}]",
        "preferences={pairs: {liked: {train: 16, dev: 8}}, wrong: {answers: 12, chats: 8}, strength: 0.01}",
        f"faults={{corpora: {{chat: [train], often: [train]}}, negatives: {NEGATIVES}, "
        f"followed: {{dbdc3: no_breakdown}}, rows: {FAULTS}, held_out: {FAULTS}, beside: 2, strength: {STRENGTH}}}",
    ))  # fmt: skip
    started(judge, "--cpu", "--corpora", data, "--ratings", data / "ratings", "--out", out, *chosen)
    return out / "checkpoint"


@pytest.fixture
def fitted(judged: Path, data: Path) -> tuple[dict[str, Any], Namespace]:
    return CheckpointConfig.read(judged).training["recipe"], Namespace(corpora=data, ratings=data / "ratings")


@pytest.mark.slow
def test_wrong_answers_are_to_other_questions_or_said_often(fitted: tuple[dict[str, Any], Namespace]) -> None:
    recipe, given = fitted
    sources = judge_heads.fault_sources(recipe, given)
    # Three answers to each of four questions.
    asked = [(f"why are dogs {word}", f"dogs {word} {number}") for word in WORDS[:4] for number in range(3)]
    write_rows(given.corpora / "asked" / "train.jsonl",
               ({"id": f"q{at}", "utterances": pair} for at, pair in enumerate(asked)))  # fmt: skip
    pairs = judge_heads.wrong_answers(recipe | {"preferences": {"wrong": {"asked": 80}}}, given, sources)
    assert len(pairs) > 50
    often = 0
    for answer, wrong, share in pairs:
        question = answer.context[0]
        assert (wrong.context, share, (question, answer.response) in asked) == (answer.context, 1.0, True)
        assert (question, wrong.response) not in asked
        is_often = wrong.response in sources.generic
        assert is_often or wrong.response in dict(map(reversed, asked))
        often += is_often
    assert 0.15 < often / len(pairs) < 0.5
    chats = judge_heads.wrong_answers(recipe | {"preferences": {"wrong": {"chats": 20}}}, given, sources)
    assert len(chats) > 10
    assert all(true.context == other.context and true.response != other.response for true, other, _ in chats)


@pytest.mark.slow
def test_sound_replies_for_one_head_move_no_other(judged: Path, fitted: tuple[dict[str, Any], Namespace]) -> None:
    recipe, given = fitted
    sources = judge_heads.fault_sources(recipe, given)
    more = [*recipe["sound"], {"name": "answers", "splits": ["train"], "replies": 12, "heads": ["respectful"]}]
    heads = []
    for sound in (recipe["sound"], more):
        fresh = Judge(judged, device="cpu")
        judge_heads.fit_heads(fresh, recipe | {"sound": sound}, given, sources)
        state = fresh.network.heads.state_dict()
        heads.append({name: [*state["weight"][place].tolist(), float(state["bias"][place])]
                      for place, name in enumerate(fresh.network.head_names)})  # fmt: skip
        heads[-1]["fluent"] += fresh.network.get_buffer("fluency").tolist()
    before, after = heads  # other batches leave other last digits
    moved = {name for name in before if not np.allclose(before[name], after[name], rtol=1e-3, atol=1e-4)}
    assert moved == {"respectful"}


@pytest.mark.slow
def test_one_phase_teaches_all_heads(encoders: tuple[Path, Path]) -> None:
    ended = encoders[1]
    start, *_, last = [json.loads(line) for line in (ended / "log.jsonl").open()]
    # Of twenty rated rows to train on two share text with an evaluation set.
    assert start["rated_rows"]["dbdc3"] == 18
    assert last["step"] == 4
    assert {"next_accuracy", "dbdc3_rated", "fluent_auc", "consistent_auc", "respectful_convabuse_auc"} <= last.keys()
    # All heads have learned something, and the encoder is another one than it began with.
    before, after = (load_file(folder / "trunk.safetensors") for folder in encoders)
    assert after["head.weight"].shape[0] == len(aspects.HEADS)
    assert bool((after["head.weight"].float().abs().sum(dim=1) > 0)[:7].all())  # the others are the large encoder's
    layers_before = {name for name in before if name.startswith("encoder.encoder.layer.")}
    assert layers_before <= set(after)
    assert any(not torch.equal(before[name], after[name]) for name in layers_before)


@pytest.mark.slow
def test_processes_share_the_rows_of_a_step(encoders: tuple[Path, Path], data: Path, tiny_encoder: Path) -> None:
    phase, layers = (read_recipe(encoders[1].parent / f"{name}.yaml") for name in ("aspects", "trunk"))
    sources = Sources(phase, layers, Namespace(corpora=data, ratings=data / "ratings"))
    tokenizer = PairTokenizer(AutoTokenizer.from_pretrained(tiny_encoder), PairFormat(**LAYOUT))
    whole, one, two = (
        PhaseSteps(sources, tokenizer, share, 64)[3] for share in (slice(None), slice(0, None, 2), slice(1, None, 2))
    )
    assert one.n_replies == two.n_replies == whole.n_replies == sum(len(numbers) for numbers, _ in whole.batches)
    assert one.n_contexts + two.n_contexts == whole.n_contexts == phase["rows"]["contexts"]
    assert (one.tasks, two.tasks) == (whole.tasks[::2], whole.tasks[1::2])
    torch.testing.assert_close(one.truth, whole.truth[::2])
    read = [sum(len(numbers) for numbers, _ in part.batches) for part in (one, two)]
    assert sum(read) == whole.n_replies


@pytest.mark.slow
def test_no_steps_keep_the_mean(encoders: tuple[Path, Path], rated: list[Any], tmp_path: Path) -> None:
    parts = [str(folder / "trunk.safetensors") for folder in encoders]
    chosen = settings(("steps=0", f"start_from=[{', '.join(parts)}]"))
    started(aspects, *rated, "--recipe", encoders[1].parent / "aspects.yaml", "--out", tmp_path, *chosen)
    trunk_alone, phase_alone, mean = (load_file(part) for part in (*parts, str(tmp_path / "trunk.safetensors")))
    name = "encoder.encoder.layer.0.output.LayerNorm.bias"
    assert not torch.equal(trunk_alone[name], phase_alone[name])
    half = (trunk_alone[name].float() + phase_alone[name].float()) / 2
    torch.testing.assert_close(mean[name].float(), half, rtol=1e-3, atol=1e-4)
    # The trunk has a head for the next reply alone; of the others there is nothing to take the mean of.
    next_reply, rating = aspects.HEADS.index("next"), aspects.HEADS.index("rated")
    both = (trunk_alone["head.weight"][0].float() + phase_alone["head.weight"][next_reply].float()) / 2
    torch.testing.assert_close(mean["head.weight"][next_reply].float(), both, rtol=1e-3, atol=1e-4)
    assert torch.equal(mean["head.weight"][rating], phase_alone["head.weight"][rating])
    with safe_open(tmp_path / "trunk.safetensors", framework="pt") as stored:
        made = json.loads(stored.metadata()["made"])
    assert [stage["name"] for stage in made["stages"]] == ["trunk", "aspects"]


def test_a_run_as_long_as_an_earlier_one_counts(tmp_path: Path) -> None:
    own = TrainingRun("aspects", 480, 480, 0.67, {"replies": 9})
    made = {"stages": [asdict(own)], "corpora": ["chat"], "hardware": "two cores"}
    save_file({"head.bias": torch.zeros(1)}, tmp_path / "before.safetensors", {"made": json.dumps(made)})
    sources = SimpleNamespace(names=["chat"], groups=[], recipe={})
    found = aspects.history_of([str(tmp_path / "before.safetensors")], own, sources, ["a GPU"])
    assert found == {"stages": [asdict(own), asdict(own)], "corpora": ["chat"], "hardware": "two cores; a GPU"}


@pytest.mark.slow
def test_a_judge_stands_on_the_encoder(judged: Path, encoders: tuple[Path, Path], tiny_encoder: Path) -> None:
    record = CheckpointConfig.read(judged).training
    assert [stage["name"] for stage in record["stages"]] == ["trunk", "aspects"]
    assert set(record["fit"]) == {"heads", "turns", "dialogues"}
    assert set(record["fit"]["turns"]) == {"dbdc3"}
    wanted = {"respectful_insult", "fluent_mashed", "faithful_begin", "consistent", "fluent_charges_per_1000"}
    wanted |= {"informative", "preferred_liked"}
    assert wanted <= record["fit"]["heads"].keys()
    scorer = Judge(judged, device="cpu")
    scores = scorer.score(["fish and chips"], [["what do you like to eat"]], facts=[["i like fish"]])
    assert 0 < scores.values[0] < 1
    assert set(scores.aspects) == set(ASPECTS)
    assert scores.explain(0).endswith(".")
    assert scores.interval is not None
    assert scores.interval[0, 0] <= scores.interval[0, 1]
    assert 0 <= scorer.score(["fish"], [["hello"]], scale="human_percentile").values[0] <= 1
    assert np.isfinite(scorer.score_dialogues([["hello", "how are you", "fine thanks", "nice"]]).values).all()
    # Its layers are those of the run, its embeddings the base's.
    tuned = load_file(encoders[1] / "trunk.safetensors")
    held = tuned_state(scorer.network.encoder)
    stored = unpacked(packed({name: tuned[f"encoder.{name}"] for name in held}))
    assert all(torch.equal(held[name], stored[name]) for name in held)
    base = load_file(tiny_encoder / "model.safetensors")
    name = "embeddings.word_embeddings.weight"
    known = next(one for key, one in base.items() if key.endswith(name))
    assert torch.equal(scorer.network.encoder.get_parameter(name), known)


@pytest.mark.slow
def test_an_earlier_judge_keeps_its_encoder(judged: Path) -> None:
    recipe = read_recipe(TRAINING / "recipes" / "judge-minilm.yaml")
    network = judge.begin(recipe | {"start_from": str(judged)})
    kept = {name for name in start_weights(str(judged)) if name.startswith("head.")}
    assert kept == {"head.faithful", "head.next", "head.preferred", "head.rated", "head.respectful", "head.valid"}
    assert network.encoder_id == Judge(judged, device="cpu").network.encoder_id


@pytest.mark.slow
def test_metrics_on_one_encoder_cost_one_pass(
    judged: Path, encoders: tuple[Path, Path], data: Path, tiny_encoder: Path, tmp_path: Path
) -> None:
    begun = [f"start_from={encoders[1] / 'trunk.safetensors'}", f"encoder={tiny_encoder}"]
    begun += [f"layout={json.dumps(LAYOUT)}", "leave_out=overlaps.json"]
    validation = "validation={corpus: chat, split: validation, contexts: 10, candidates: 3}"
    corpora, groups = "[{name: chat, splits: [train], %s}]", f"groups={json.dumps(GROUPS)}"
    own = {
        "density": ["training.steps=0", validation, f"corpora={corpora % 'share: 1.0'}", "fit.held_out_pairs=20",
                    f"fit.corpora={corpora % 'pairs: 30'}"],
        "deb": ["fine_tuning.steps=0", groups, "augmentation=[]"],
        # Its own heads are trained, the encoder stays as it is in both stages.
        "quantidce": ["pretraining.steps=2", "pretraining.per_level=1", "pretraining.evaluate_every=1", groups,
                      "augmentation=[]", "ratings=null"],
    }  # fmt: skip
    for approach, more in own.items():
        chosen = settings((*begun, *more))
        run_here([f"{approach}.py", "--cpu", "--corpora", data, "--out", tmp_path / approach, *chosen])
    folders = {"judge": judged, **{name: tmp_path / name / "checkpoint" for name in own}}
    suite = dialeval.load(list(folders), checkpoints={name: str(one) for name, one in folders.items()}, device="cpu")
    assert len({id(suite[name].network.encoder) for name in folders}) == 1
    passes: list[int] = []
    words = suite["deb"].network.encoder.get_input_embeddings()
    words.register_forward_pre_hook(lambda module, given: passes.append(len(given[0])))
    together = suite.score(["fish is nice", "see you"], [["hello there"], ["shall we go for a walk"]])
    assert sum(passes) == 2
    for name, folder in folders.items():
        alone = dialeval.load(name, checkpoint=folder, device="cpu")
        values = alone.score(["fish is nice", "see you"], [["hello there"], ["shall we go for a walk"]]).values
        assert together[name].values == pytest.approx(values, abs=1e-5)


@pytest.mark.slow
def test_a_phase_that_was_interrupted_tells_all_that_it_read(
    encoders: tuple[Path, Path], rated: list[Any], tmp_path: Path
) -> None:
    words = [*rated, "--recipe", encoders[1].parent / "aspects.yaml", "--out", tmp_path]
    for steps in (2, 4):
        started(aspects, *words, *settings(("save_every=1", f"steps={steps}")))
    whole, resumed = (
        read_trunk(str(folder / "trunk.safetensors"))[1]["stages"][-1] for folder in (encoders[1], tmp_path)
    )
    assert resumed["seen"] == whole["seen"]


@pytest.mark.slow
def test_the_encoder_learns_from_a_judge(
    encoders: tuple[Path, Path], data: Path, rated: list[Any], tiny_encoder: Path, tmp_path: Path
) -> None:
    teacher, begun = small_checkpoint("judge", tiny_encoder, tmp_path / "judge"), encoders[1] / "trunk.safetensors"
    weights = load_file(teacher / "model.safetensors")
    weights["heads.weight"] *= 100  # replies differ to an encoder that learned nothing, but little
    save_file(weights, teacher / "model.safetensors")
    chosen = recipe_of(
        "distil", encoders[1].parent, based_on="aspects.yaml", start_from=[str(begun)], steps=20, warmup=1,
        mean_over=5, encoder_rate=1e-3, head_rate=0.02, long={"answers": ["train"]},
        validation={"contexts": 3, "rows": 12, "every": 99},
        graded={"chats": {"head": "rated", "score": "overall", "level": "dialogue", "most": 5}},
        teaching={"teachers": [str(teacher)], "layout": {"max_length": 40, "response_budget": 12}, "parts": 3,
                  "contexts": 3, "replies": 6, "answers": 2, "held_out_every": 2, "replies_of": ["dbdc3", "chats"],
                  "softness": 2.0, "heads": ["next", "follows", "respectful"]},
        rows=yaml.safe_load((encoders[1].parent / "aspects.yaml").read_text())["rows"] | {"taught": 8},
    )  # fmt: skip
    words = [*rated, "--recipe", chosen, "--out", tmp_path]
    with pytest.raises(SystemExit, match="--teach first"):
        started(distil, *words)
    started(distil, *words, "--teach")
    parts = sorted((tmp_path / "teacher").glob("*.jsonl"))
    kept = [part.read_bytes() for part in parts]
    rows = [[json.loads(line) for line in text.splitlines()] for text in kept]
    assert [{row["split"] for row in part} for part in rows] == [{"dev"}, {"train"}, {"dev"}]
    # What went missing is scored again, the same; what is there stays.
    parts[1].unlink()
    started(distil, *words, "--teach")
    assert [part.read_bytes() for part in parts] == kept
    judge_of_all = Judge(teacher, device="cpu")
    layout = PairFormat(max_length=40, response_budget=12)
    for row in rows[1]:
        read = [Exchange(tuple(row["context"]), one, facts=tuple(row["facts"])) for one in row["replies"]]
        tokenizer = PairTokenizer(judge_of_all.network.tokenizer, layout)
        assert not any(pair.cut and not row["context"] for pair in tokenizer.pairs(read))
        logits = judge_of_all.network.split(PairEncoder(judge_of_all.network, tokenizer).encode(read).rows)[1]
        told = np.stack([logits[head] for head in ("next", "follows", "respectful")], axis=1)
        np.testing.assert_allclose(row["scores"], told, atol=2e-4)
    # Ratings split by their rows, and two rated replies share text with an evaluation set.
    of_people = {row["id"]: row for row in map(json.loads, (data / "ratings" / "dbdc3.jsonl").open())}
    replies = {reply for row in rows[1] for reply in row["replies"]}
    assert replies & {row["response"] for row in of_people.values() if row["split"] == "train"}
    assert not replies & {row["response"] for row in of_people.values() if row["split"] == "dev"}
    assert not replies & {of_people[name]["response"] for name in ("dbdc3-0", "dbdc3-2")}

    started(distil, *words)
    *_, first, last, figures = [json.loads(line) for line in (tmp_path / "log.jsonl").open()]
    assert last["rating"] < first["rating"]
    assert {"dbdc3_rated", "dbdc3_next", "teacher_next", "teacher_rated_first"} <= figures.keys()
    assert set(start_weights(str(tmp_path / "trunk.safetensors"))) == set(start_weights(str(begun)))
    # What the teacher was rated by is told on: licences follow from it.
    made = read_trunk(str(tmp_path / "trunk.safetensors"))[1]
    assert made["taught"] == list(rated_by(judge_of_all.network.config.training))


def test_teachers_count_alike_whatever_the_scale_of_their_heads() -> None:
    one, other = np.array([[1.0, 5.0], [3.0, 5.5], [2.0, 4.5]]), np.array([[-70.0, 0.0], [-50.0, 4.0], [-30.0, 2.0]])
    np.testing.assert_allclose(distil.mean_scores([one]), one)
    mean = distil.mean_scores([one, other])
    np.testing.assert_allclose(mean, [[1.0, 4.75], [2.5, 5.5], [2.5, 4.75]])
    np.testing.assert_allclose(distil.mean_scores([one, 9 * other + 2]), mean)


def test_the_losses_of_a_pupil_that_says_what_its_teacher_says(tiny_encoder: Path) -> None:
    recipe = read_recipe(TRAINING / "recipes" / "distil.yaml")
    pupil = distil.Distillation(recipe, tiny_encoder, torch.float32, torch.device("cpu"))
    scores = torch.tensor([[2.0, 1.0], [0.0, -1.0], [-2.0, 3.0]])
    pupil.groups = {"train": [distil.Group([], scores), distil.Group([], scores[:1])]}
    step = PhaseStep([], 1, ["taught"] * 3, torch.tensor([2.0, 0.0, 0.0]), ["0", "0", "1"], 5)
    # Two candidates of a context, then rows: the last and the first of a group.
    logits = torch.zeros(5, len(aspects.HEADS))
    following, rated = aspects.HEADS.index("next"), aspects.HEADS.index("rated")
    logits[2:, following], logits[2:, rated] = torch.tensor([-2.0, 2.0, 2.0]), torch.tensor([8.0, 6.0, 6.0])
    losses = pupil.losses(step, logits)
    assert float(losses["rating"]) == pytest.approx(0.0)  # every rating is higher by five
    shares = (scores[[2, 0]] / 2.0).softmax(dim=0)
    assert float(losses["choice"]) == pytest.approx(float(-(shares * shares.log()).sum(dim=0).mean() * 4.0))
    logits[2, rated] = 11.0  # errors of 8, 5 and 5
    assert float(pupil.losses(step, logits)["rating"]) == pytest.approx(2.0)

    recipe["teaching"]["heads"].append("preferred")
    preferred = torch.tensor([[1.0], [0.0], [4.0]])
    pupil.groups = {"train": [distil.Group([], torch.cat([scores, preferred], 1)), distil.Group([], torch.zeros(1, 3))]}
    logits[2:, aspects.HEADS.index("preferred")] = torch.tensor([4.0, 1.0, 3.0])  # errors of 0, 0 and 3
    logits[2:, rated] = torch.tensor([3.0, 1.0, 0.0])  # and none
    assert float(pupil.losses(step, logits)["rating"]) == pytest.approx(2.0)


def test_what_ratings_ask_for() -> None:
    def row(source: str, **scores: float) -> Rated:
        return Rated(Exchange(("hi",), "hello"), source, source, "dev", scores)

    assert judge.target_of(row("abc_eval", irrelevant=0.25, redundant=0.75)) == 0.25
    assert judge.target_of(row("dbdc3", no_breakdown=0.6)) == 0.6
    assert judge.target_of(row("other", politeness=1.0)) is None
