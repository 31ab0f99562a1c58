"""Cards: everything in them comes from the checkpoint and from `results/`, and the Hub accepts them."""

import math
import re
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import ModelCard

from cards import write_cards
from dialeval.agreement.results import Result
from dialeval.checkpoints.config import CheckpointConfig, EncoderSource
from dialeval.checkpoints.find import WEIGHTS, weights_digest
from dialeval.hub.card import CardResults, facts, is_hub_id, licence_of, render_card
from dialeval.io.files import plain
from dialeval.registry import metric_class
from shell import write_rows

ROOT = Path(__file__).parents[2]
TRAINING = {
    "command": "training/deb.py --recipe training/recipes/deb-minilm.yaml --corpora CORPORA --out RUN",
    "hardware": "1 process(es), CPU, 2 threads",
    "corpora": ["dailydialog", "my_chats"],
    "stages": [{"name": "deb-minilm", "steps": 900, "steps_run": 1200, "hours": 0.75, "seen": {"replies": 4800}}],
    "recipe": {"name": "deb-minilm", "leave_out": "overlaps.json.gz"},
    "validation": {"accuracy": {"random": 0.91234}},
}


def result(**changes: Any) -> Result:
    row: dict[str, Any] = {
        "metric": "deb", "benchmark": "convai2_grade", "protocol": "standard", "level": "turn", "aspect": "coherence",
        "statistic": "pearson", "value": 0.5, "low": 0.4, "high": 0.6, "p": 0.001, "p_method": "t",
        "n": 600, "n_excluded": 0, "n_left_out": 0, "n_groups": 150, "n_systems": 4, "n_truncated": 0, "n_empty": 0,
        "contaminated": False, "in_best_group": None, "ceiling": 0.7, "attainable": 0.9, "alpha": 0.3,
        "threshold": math.nan, "threshold_method": "", "resamples": 10_000, "higher_is_better": True,
        "selection": "all rows", "revision": "abc",
        "signature": signed("metric:deb|checkpoint:deb-minilm@0123456789ab|dtype:float32"),
    }  # fmt: skip
    return Result(**row | changes)


def signed(metric: str) -> str:
    """The signature of a number that a metric with this one gave."""
    return f"benchmark:convai2_grade@1|interval:0.95 percentile, 10000 resamples|metric:[{metric}]|dialeval:0.2.0"


def config(approach: str = "deb", **changes: Any) -> CheckpointConfig:
    given = {"name": f"{approach}-minilm", "training": TRAINING, "quantiles": {"native": {}}} | changes
    return CheckpointConfig(approach=approach, versions={"dialeval": "0.1.0", "torch": "2.13.0"}, **given)


def measured(*rows: Result) -> CardResults:
    return CardResults("deb-minilm@0123456789ab", rows)


@pytest.mark.parametrize("approach", list(facts()["approaches"]))
def test_a_card_of_every_approach(approach: str) -> None:
    text = render_card(config(approach, contaminated_by=("dailydialog_grade",)))
    info, about = metric_class(approach)[0].info, facts()["approaches"][approach]
    licence = facts()["corpora"]["dailydialog"]["licence"]
    for shown in (
        info.title, info.summary, about["measures"], about["bibtex"], *about["limits"], TRAINING["command"], licence,
        "| deb-minilm | 900 of 1,200 steps, 4,800 replies | 0.75 |", "my_chats", "overlaps.json.gz", "torch 2.13.0",
        "dailydialog_grade", "| accuracy random | 0.9123 |", f'evaluate.load("dialeval/{approach}")',
    ):  # fmt: skip
        assert shown in text, shown
    assert ("references=" in text) == ("references" in info.needs)
    assert "{{" not in text
    assert "{%" not in text
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.S)
    assert len(blocks) == 2
    for block in blocks:
        compile(block, "card", "exec")


def test_the_header_is_what_the_hub_knows() -> None:
    card = ModelCard(render_card(config(), measured(result())))
    data = card.data.to_dict()
    assert data["license"] == "cc-by-nc-sa-4.0"
    assert (data["base_model"], data["base_model_relation"]) == (config().encoder.id, "adapter")
    assert data["tags"] == ["dialogue", "evaluation", "metric", "deb"]
    (entry,) = card.data.eval_results or []
    assert (entry.metric_type, entry.metric_value, entry.dataset_revision) == ("pearsonr", 0.5, "abc")
    assert "base_model" not in ModelCard(render_card(config(encoder=EncoderSource(id="/tmp/x")))).data.to_dict()
    assert is_hub_id("bert-base-uncased")
    assert not any(is_hub_id(name) for name in ("./here", "/there/it", "~/x", "a/b/c", "C:\\x"))


@pytest.mark.parametrize(
    ("training", "licence"),
    [
        ({}, "apache-2.0"),
        ({"corpora": ["self_dialogue", "topical_chat", "persuasion_for_good", "redial"]}, "apache-2.0"),
        ({"corpora": ["self_dialogue", "empathetic_dialogues"]}, "cc-by-nc-4.0"),
        ({"corpora": ["mutual"]}, "cc-by-nc-4.0"),
        ({"corpora": ["my_chats"]}, "cc-by-nc-4.0"),
        ({"corpora": ["empathetic_dialogues", "dailydialog"]}, "cc-by-nc-sa-4.0"),
        ({"recipe": {"ratings": {"train": ["dbdc3"], "stack": ["dstc7"]}}}, "apache-2.0"),
        ({"recipe": {"ratings": {"train": ["dbdc3", "dbdc4"]}}}, "cc-by-nc-4.0"),
        ({"ratings_before": {"train": ["dbdc3", "dbdc4"]}}, "cc-by-nc-4.0"),
        ({"taught": ["dbdc3", "dbdc4"]}, "cc-by-nc-4.0"),
    ],
)
def test_the_licence_is_the_strictest_of_the_sources(training: dict[str, Any], licence: str) -> None:
    assert licence_of(training) == licence


def test_only_rows_of_these_weights_count(tmp_path: Path) -> None:
    weights = tmp_path / "weights"
    weights.mkdir()
    (weights / "model.safetensors").write_bytes(b"x")
    own = f"deb-minilm@{weights_digest(weights)[:12]}"
    named = signed(f"metric:deb|checkpoint:{own}")
    rows = [
        result(signature=named),
        result(signature=signed("metric:deb|checkpoint:deb-minilm@ffffffffffff")),
        result(signature=signed(f"metric:density|checkpoint:{own}")),
        result(metric="deb?threshold=0.4", aspect="variant", signature=named),
        result(statistic="kendall", signature=named),
    ]

    def write(folder: str, *some: Result) -> None:
        write_rows(tmp_path / folder / "agreement.jsonl", [plain(asdict(row)) for row in some])

    write("results/later", *(replace(row, value=0.1) for row in rows))
    write("results", *rows)
    found = CardResults.of(weights, config(), tmp_path / "results")
    assert (found.checkpoint, [(row.statistic, row.value) for row in found.rows]) == (own, [("pearson", 0.5)])
    assert CardResults.of(weights, config(), tmp_path / "nowhere").rows == []
    # Weights that no metric takes by default were measured by a name of their own.
    write("other", replace(rows[0], metric="deb_large"))
    assert [row.metric for row in CardResults.of(weights, config(), tmp_path / "other").rows] == ["deb_large"]


def test_committed_cards_are_what_the_checkpoints_and_results_say(tmp_path: Path) -> None:
    (tmp_path / "of-a-checkpoint-that-is-gone.md").touch()
    write_cards(WEIGHTS, ROOT / "results", tmp_path)
    committed = {path.name: path.read_text() for path in (ROOT / "model_cards").glob("*.md")}
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == committed, "run: python training/cards.py"


def test_a_judge_s_card_shows_its_own_votes() -> None:
    config = CheckpointConfig.read(WEIGHTS / "judge-large")
    card = render_card(config)
    for vote in config.architecture["votes"].split():
        name, count = vote.split("=")
        assert f"| `{name}` | {count} |" in card
    assert "| `follows` | 2.5 |" in render_card(CheckpointConfig.read(WEIGHTS / "judge-minilm"))
