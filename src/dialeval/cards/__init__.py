"""Model cards, rendered from a checkpoint's own config and from `results/`, so that they cannot drift from them.

`python -m dialeval.cards` renders those of the embedded checkpoints into `model_cards/`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dialeval.cards.about import ABOUT
from dialeval.cards.corpora import CORPORA
from dialeval.cards.history import stages_of, total
from dialeval.cards.measured import confidence, model_index, results_of, table
from dialeval.cards.ratings import rated_sources, stack_tables
from dialeval.cards.spread import Spread, spread_in
from dialeval.registry import metric_class
from dialeval.weights.config import CheckpointConfig
from dialeval.weights.find import weights_digest

if TYPE_CHECKING:
    from dialeval.agreement.results import Result

TEMPLATE = Path(__file__).with_name("template.md")


@dataclass(frozen=True)
class Measurements:
    """What is known of one set of weights: its name in signatures, and its rows of `results/`."""

    checkpoint: str
    rows: Sequence[Result]
    #: The logs of runs, to tell the stages of checkpoints whose record does not list them.
    logs: Path | None = None
    spread: Spread | None = None

    @classmethod
    def of(cls, folder: Path, config: CheckpointConfig, results: Path | None) -> Measurements:
        """The rows below `results` that the weights in a checkpoint's folder gave."""
        checkpoint = f"{config.name or folder.name}@{weights_digest(folder)[:12]}"
        rows = [] if results is None else results_of(config.approach, checkpoint, results)
        spread = spread_in(folder) if config.approach == "density" else None
        return cls(checkpoint, rows, None if results is None else results / "training", spread)


def render_card(
    config: CheckpointConfig, measured: Measurements | None = None, *, org: str = "dialeval", merged_from: str = ""
) -> str:
    """The text of a checkpoint's README.md.

    Args:
        config: the checkpoint's own.
        measured: what its weights reached; for a merged checkpoint, what the adapter reached.
        org: the namespace that the card tells readers to load from.
        merged_from: the name of the adapter that a full model was merged from.
    """
    from huggingface_hub import ModelCard, ModelCardData

    info = metric_class(config.approach)[0].info
    training = config.training
    rows = measured.rows if measured else []
    stages = stages_of(training, measured.logs if measured else None)
    name = config.name or config.approach
    card = ModelCard.from_template(
        ModelCardData(
            language="en",
            license="apache-2.0",
            library_name="dialeval",
            tags=["dialogue", "evaluation", "metric", config.approach],
            base_model=config.encoder.id if is_hub_id(config.encoder.id) else None,
            base_model_relation=None if not is_hub_id(config.encoder.id) else _relation(config),
            pipeline_tag="text-classification",
            model_name=name if rows else None,
            eval_results=model_index(rows, org) if rows else None,
        ),
        template_path=str(TEMPLATE),
        name=name,
        org=org,
        approach=config.approach,
        info=info,
        about=ABOUT[config.approach],
        direction="higher is better" if info.higher_is_better else "lower is better",
        low=f"{info.range[0]:g}",
        high=f"{info.range[1]:g}",
        needs=", ".join(sorted(info.needs)),
        encoder=config.encoder,
        layout=config.layout,
        training=training,
        stages=stages,
        total=total(stages),
        spread=measured.spread if measured else None,
        recipe_text=json.dumps(training.get("recipe", {}), indent=2, ensure_ascii=False),
        corpora=[{"name": one, **CORPORA.get(one, _UNKNOWN)} for one in training.get("corpora", ())],
        ratings=rated_sources(training),
        stacks=stack_tables(training),
        left_out=training.get("recipe", {}).get("leave_out"),
        figures=_flat(training.get("validation", {})),
        contaminated=", ".join(config.contaminated_by) or "none",
        merged_from=merged_from,
        checkpoint=measured.checkpoint if measured else "",
        results=table(rows) if rows else [],
        confidence=confidence(rows[0]) if rows else "",
        metric_signature=rows[0].metric_signature if rows else "",
        has_percentile=_has_percentile(config),
        versions=config.versions,
    )
    return str(card.content).rstrip() + "\n"


def write_cards(weights: Path, results: Path, target: Path) -> list[Path]:
    """The cards of all checkpoints below `weights`; cards of checkpoints that are gone go too."""
    target.mkdir(parents=True, exist_ok=True)
    folders = sorted(path.parent for path in weights.glob("*/config.json"))
    written = []
    for folder in folders:
        config = CheckpointConfig.read(folder)
        path = target / f"{folder.name}.md"
        path.write_text(render_card(config, Measurements.of(folder, config, results)), encoding="utf-8")
        written.append(path)
    for path in set(target.glob("*.md")) - set(written):
        path.unlink()
    return written


def is_hub_id(encoder: str) -> bool:
    """Whether a base encoder is named as on the Hub, not as a folder of some machine."""
    return encoder.count("/") <= 1 and not encoder.startswith((".", "/", "~")) and "\\" not in encoder


_UNKNOWN = {"title": "a corpus of the user's", "licence": "not known to dialeval"}


def _has_percentile(config: CheckpointConfig) -> bool:
    """A judge that was tuned may know human replies by some aspects only."""
    if config.approach == "judge":
        return "turn.overall" in config.quantiles
    return bool(config.quantiles)


def _relation(config: CheckpointConfig) -> str:
    return "adapter" if config.encoder.tuning == "lora" else "finetune"


def _flat(figures: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Nested figures as one level, numbers with four digits."""
    flat: dict[str, str] = {}
    for key, value in figures.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{prefix}{key} ")
        else:
            flat[f"{prefix}{key}"] = f"{value:.4g}" if isinstance(value, float) else str(value)
    return flat
