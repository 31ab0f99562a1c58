"""Model cards, rendered from a checkpoint's own config so that they cannot drift from it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dialeval.cards.corpora import CORPORA
from dialeval.checkpoints import CheckpointConfig
from dialeval.metric import metric_class

TEMPLATE = Path(__file__).with_name("template.md")


def render_card(config: CheckpointConfig, results: Sequence[Mapping[str, Any]] = ()) -> str:
    """The text of a checkpoint's README.md; `results` are rows of the agreement table for this metric."""
    from huggingface_hub import ModelCard, ModelCardData

    info = metric_class(config.approach)[0].info
    training = config.training
    recipe = training.get("recipe", {})
    corpora = [{"name": name, **CORPORA.get(name, _UNKNOWN)} for name in training.get("corpora", ())]
    card = ModelCard.from_template(
        ModelCardData(
            language="en",
            license="apache-2.0",
            library_name="dialeval",
            tags=["dialogue", "evaluation", "metric", config.approach],
            base_model=config.encoder.id if "/" in config.encoder.id or "-" in config.encoder.id else None,
            pipeline_tag="text-classification",
        ),
        template_path=str(TEMPLATE),
        name=config.name or config.approach,
        approach=config.approach,
        info=info,
        direction="higher is better" if info.higher_is_better else "lower is better",
        low=f"{info.range[0]:g}",
        high=f"{info.range[1]:g}",
        needs=", ".join(sorted(info.needs)),
        encoder=config.encoder,
        layout=config.layout,
        training=training,
        recipe_text=json.dumps(recipe, indent=2, ensure_ascii=False),
        corpora=corpora,
        figures=_flat(training.get("validation", {})),
        contaminated=", ".join(config.contaminated_by) or "none",
        results=[_result(row) for row in results],
        versions=config.versions,
    )
    return str(card.content).rstrip() + "\n"


_UNKNOWN = {"title": "a corpus of the user's", "licence": "not known to dialeval"}


def _flat(figures: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Nested figures as one level, numbers with four digits."""
    flat: dict[str, str] = {}
    for key, value in figures.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{prefix}{key} ")
        else:
            flat[f"{prefix}{key}"] = f"{value:.4g}" if isinstance(value, float) else str(value)
    return flat


def _result(row: Mapping[str, Any]) -> dict[str, str]:
    return {
        "benchmark": f"{row['benchmark']} ({row['aspect']}, {row['level']})",
        "statistic": str(row["statistic"]),
        "value": f"{row['value']:.3f} [{row['low']:.3f}, {row['high']:.3f}]",
        "n": str(row["n"]),
        "note": "contaminated" if row.get("contaminated") else "",
    }
