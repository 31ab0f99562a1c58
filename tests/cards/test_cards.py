"""Cards: everything in them comes from the checkpoint and from `results/`, and the Hub accepts them."""

from __future__ import annotations

import json
import math
import re
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import yaml
from huggingface_hub import ModelCard, parse_eval_result_entries

from card_rows import result
from dialeval.agreement.results import Result
from dialeval.approaches import _NETWORKS
from dialeval.cards import Measurements, is_hub_id, render_card, write_cards
from dialeval.cards.about import ABOUT
from dialeval.cards.corpora import CORPORA
from dialeval.cards.measured import eval_results, results_of
from dialeval.cards.ratings import rated_sources
from dialeval.registry import metric_class
from dialeval.weights.config import CheckpointConfig, EncoderSource
from dialeval.weights.find import WEIGHTS, embedded_checkpoints, weights_digest

ROOT = Path(__file__).parents[2]
TRAINING = {
    "command": "training/deb.py --recipe training/recipes/deb-minilm.yaml --corpora CORPORA --out RUN",
    "hardware": "1 process(es), CPU, 2 threads",
    "hours": 0.75,
    "steps": 900,
    "corpora": ["dailydialog", "my_chats"],
    "recipe": {"name": "deb-minilm", "leave_out": "overlaps.json.gz"},
    "validation": {"accuracy": {"random": 0.91234}, "r1": 0.5},
    "started_from": "trunk-minilm (900 steps, 0.5 hours)",
}


def config(approach: str = "deb", **changes: Any) -> CheckpointConfig:
    given = {"name": f"{approach}-minilm", "training": TRAINING, "quantiles": {"native": {}}} | changes
    return CheckpointConfig(approach=approach, versions={"dialeval": "0.1.0", "torch": "2.13.0"}, **given)


def measured(*rows: Result) -> Measurements:
    return Measurements("deb-minilm@0123456789ab", rows)


@pytest.mark.parametrize("approach", list(_NETWORKS))
def test_a_card_of_every_approach(approach: str) -> None:
    text = render_card(config(approach, contaminated_by=("dailydialog_grade",)))
    info = metric_class(approach)[0].info
    for shown in (
        info.title,
        info.summary,
        "higher is better",
        f"{info.range[0]:g} to {info.range[1]:g}",
        ABOUT[approach].measures,
        ABOUT[approach].bibtex,
        *ABOUT[approach].limits,
        TRAINING["command"],
        "Hardware: 1 process(es), CPU, 2 threads.",
        "| deb-minilm | 900 steps | 0.75 |",
        "started from trunk-minilm",
        CORPORA["dailydialog"]["licence"],
        "a corpus of the user's | not known to dialeval",
        "listed in `overlaps.json.gz`",
        "they were trained on: dailydialog_grade",
        "| accuracy random | 0.9123 |",
        f'evaluate.load("dialeval/{approach}")',
        "Not measured with these weights yet",
        "torch 2.13.0",
    ):
        assert str(shown) in text, shown
    assert ("references=" in text) == ("references" in info.needs)
    assert "{{" not in text
    assert "{%" not in text


def test_code_in_a_card_runs_as_python() -> None:
    for approach in _NETWORKS:
        blocks = re.findall(r"```python\n(.*?)```", render_card(config(approach)), flags=re.S)
        assert len(blocks) == 2
        for block in blocks:
            compile(block, "card", "exec")


def test_the_header_is_what_the_hub_knows() -> None:
    card = ModelCard(render_card(config(), measured(result())))
    data = card.data.to_dict()
    assert data["license"] == "apache-2.0"
    assert data["pipeline_tag"] == "text-classification"
    assert (data["base_model"], data["base_model_relation"]) == (config().encoder.id, "adapter")
    assert data["tags"] == ["dialogue", "evaluation", "metric", "deb"]
    (entry,) = card.data.eval_results or []
    assert (entry.metric_type, entry.metric_value, entry.dataset_revision) == ("pearsonr", 0.5, "abc")
    assert (data["model-index"][0]["name"]) == "deb-minilm"


def test_an_encoder_of_this_machine_is_not_linked() -> None:
    assert "base_model" not in ModelCard(render_card(config(encoder=EncoderSource(id="/tmp/x")))).data.to_dict()
    assert is_hub_id("bert-base-uncased")
    assert is_hub_id("sentence-transformers/all-MiniLM-L6-v2")
    assert not any(is_hub_id(name) for name in ("./here", "/there/it", "~/x", "a/b/c", "C:\\x"))


def test_results_stand_beside_each_other_with_their_intervals() -> None:
    text = render_card(
        config(),
        measured(
            result(),
            result(statistic="spearman", value=0.25, low=math.nan, high=math.nan),
            result(benchmark="dailydialogpp_test", aspect="random", statistic="accuracy", value=0.8, contaminated=True),
            result(level="system", n=8, value=-0.125, low=-0.5, high=0.25),
        ),
    )
    assert (
        "| benchmark | aspect | level | n | Pearson | Spearman | accuracy |  |\n|---|---|---|---|---|---|---|---|\n"
        in text
    )
    assert "| convai2_grade | coherence | turn | 600 | 0.500 [0.400, 0.600] | 0.250 |  |  |" in text
    assert "| dailydialogpp_test | random | turn | 600 |  |  | 0.800 [0.400, 0.600] | contaminated |" in text
    assert "| convai2_grade | coherence | system | 8 systems | -0.125 [-0.500, 0.250] |  |  |  |" in text
    assert "95% bootstrap intervals" in text
    assert "Signature of the metric: `metric:deb|checkpoint:deb-minilm@0123456789ab|dtype:float32`" in text


def test_only_rows_of_these_weights_count(tmp_path: Path) -> None:
    rows = [
        result(),
        result(metric_signature="metric:deb|checkpoint:deb-minilm@ffffffffffff"),
        result(metric_signature="metric:density|checkpoint:deb-minilm@0123456789ab"),
        result(metric="deb?threshold=0.4", aspect="variant"),
        result(aspect="undefined", value=math.nan),
        result(statistic="kendall"),
        result(metric="scores", metric_signature="file:x.jsonl"),
    ]
    for folder, value in ((tmp_path / "later", 0.1), (tmp_path, 0.5)):
        folder.mkdir(exist_ok=True)
        lines = [json.dumps(asdict(row) | ({"value": value} if row.value == 0.5 else {})) for row in rows]
        (folder / "agreement.jsonl").write_text("\n".join(lines).replace("NaN", "null") + "\n")
    found = results_of("deb", "deb-minilm@0123456789ab", tmp_path)
    assert [(row.statistic, row.value, row.aspect) for row in found] == [("pearson", 0.5, "coherence")]
    assert results_of("deb", "deb-minilm@0123456789ab", tmp_path / "later")[0].value == 0.1
    assert results_of("deb", "deb-minilm@0123456789ab", tmp_path / "nowhere") == []


def test_the_hubs_result_files() -> None:
    rows = [result(statistic=name) for name in ("pearson", "spearman", "auc")] + [
        result(benchmark="b", statistic="accuracy")
    ]
    files = eval_results(rows, "my-lab")
    assert list(files) == [".eval_results/convai2_grade.yaml", ".eval_results/b.yaml"]
    (entry,) = parse_eval_result_entries(yaml.safe_load(files[".eval_results/convai2_grade.yaml"]))
    assert entry.dataset_id == "my-lab/convai2_grade"
    assert entry.task_id == "standard-turn-coherence-spearman"
    assert entry.value == 0.5
    assert entry.notes == "coherence, turn level, n = 600, 95% interval 0.400 to 0.600"


def test_cards_of_checkpoints_that_are_gone_go(tmp_path: Path) -> None:
    weights, cards = tmp_path / "weights", tmp_path / "cards"
    for name in ("deb-minilm", "old"):
        (weights / name).mkdir(parents=True)
        (weights / name / "config.json").write_text(config(name=name).to_json())
        (weights / name / "model.safetensors").write_bytes(b"x")
    assert {path.name for path in write_cards(weights, tmp_path, cards)} == {"deb-minilm.md", "old.md"}
    assert f"deb-minilm@{weights_digest(weights / 'deb-minilm')[:12]}" in (cards / "deb-minilm.md").read_text()
    (weights / "old" / "config.json").unlink()
    write_cards(weights, tmp_path, cards)
    assert [path.name for path in cards.iterdir()] == ["deb-minilm.md"]


def test_committed_cards_are_what_the_checkpoints_and_results_say(tmp_path: Path) -> None:
    rendered = {path.name: path.read_text() for path in write_cards(WEIGHTS, ROOT / "results", tmp_path)}
    committed = {path.name: path.read_text() for path in (ROOT / "model_cards").glob("*.md")}
    assert set(committed) == {f"{name}.md" for name in embedded_checkpoints()}, "run: python -m dialeval.cards"
    for name, text in rendered.items():
        assert committed[name] == text, f"{name} has drifted; run: python -m dialeval.cards"
        assert ModelCard(text).data.to_dict()["library_name"] == "dialeval"


def test_a_judges_card_tells_its_weights_and_ratings() -> None:
    stack = {
        "turns": {
            "weights": {"valid": 0.1, "fluent": 0.3},
            "strength": 300.0,
            "families_left_out": {"dbdc": {"spearman": 0.317, "rows": 2380.0, "coverage": 0.913}},
        }
    }
    recipe = {"ratings": {"train": ["dbdc3"], "stack": ["dbdc3", "mine"], "dialogues": ["uss"]}}
    text = render_card(config("judge", training={**TRAINING, "stack": stack, "recipe": recipe}))
    assert "## What a value is made of" in text
    assert text.index("| `fluent` | 75% |") < text.index("| `valid` | 25% |")
    assert "| dbdc | 0.32 | 2,380 | 91% |" in text
    assert "turn of the bot? | adapter and heads, weights and interval of replies | MIT; the para" in text
    assert "| mine: ratings of the user's | weights and interval of replies | not known to dialeval |" in text
    assert "| uss: User satisfaction" in text
    assert "| of conversations | none stated; the texts" in text
    assert "What a value is made of" not in render_card(config("deb"))
    assert "ratings by people" not in render_card(
        config("quantidce", training={**TRAINING, "recipe": {"ratings": {"benchmark": "x"}}})
    )
    # Tables stand apart from what is above them, or Markdown shows their bars.
    lines = text.splitlines()
    for at, line in enumerate(lines):
        if line.startswith("|---"):
            assert lines[at - 1].startswith("|")
            assert not lines[at - 2].strip()


def test_every_rated_source_of_the_recipe_is_described() -> None:
    recipe = yaml.safe_load((ROOT / "training" / "recipes" / "judge-minilm.yaml").read_text(encoding="utf-8"))
    assert {one["licence"] for one in rated_sources({"recipe": recipe})} & {"not known to dialeval"} == set()
