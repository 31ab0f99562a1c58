"""Model cards, rendered from a checkpoint's own config and from `results/`, so that they cannot drift; and licences."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dialeval.checkpoints.config import CheckpointConfig
from dialeval.checkpoints.find import weights_digest
from dialeval.core.scores import Signature
from dialeval.io.harmless import for_markdown, one_line
from dialeval.registry import metric_class

if TYPE_CHECKING:
    from huggingface_hub import EvalResult

    from dialeval.agreement.results import Result

_TEMPLATE = Path(__file__).with_name("card_template.md")
#: What a card shows, under which name, and what the Hub calls it.
_SHOWN = {
    "pearson": ("Pearson", "pearsonr"),
    "spearman": ("Spearman", "spearmanr"),
    "auc": ("AUC", "roc_auc"),
    "accuracy": ("accuracy", "accuracy"),
}
_LEVELS = {"turns": "Single replies", "dialogues": "Whole conversations"}


@dataclass(frozen=True)
class CardResults:
    """The name of one set of weights in signatures, and its rows of `results/`."""

    checkpoint: str
    rows: Sequence[Result] = ()

    @classmethod
    def of(cls, folder: Path, config: CheckpointConfig, results: Path | None) -> CardResults:
        """The rows of all tables below `results` that exactly these weights gave, in the metric's default variant.

        That bears the metric's name; weights that are not its default ones were measured by another name.
        The same question asked in several runs is answered once, by the table nearest to `results`.
        """
        from dialeval.agreement.results import read_results

        checkpoint = f"{config.name or folder.name}@{weights_digest(folder, config.encoder.layers)[:12]}"
        tables = sorted(results.rglob("agreement.jsonl"), key=lambda path: (len(path.parts), path)) if results else []
        measured = []
        for row in (row for path in tables for row in read_results(path.parent)):
            signature = Signature.parse(row.metric_signature)
            is_own = signature.get("metric") == config.approach and signature.get("checkpoint") == checkpoint
            if is_own and row.statistic in _SHOWN and row.value == row.value:
                measured.append(row)
        names = {row.metric for row in measured}
        name = config.approach if config.approach in names else min(names, default="")
        answers: dict[tuple[str, ...], Result] = {}
        for row in measured:
            if row.metric == name:
                answers.setdefault(row.question, row)
        rows = sorted(answers.values(), key=lambda row: (row.benchmark, row.protocol, row.level, row.aspect))
        return cls(checkpoint, rows)


def render_card(
    config: CheckpointConfig, measured: CardResults | None = None, *, org: str = "dialeval", merged_from: str = ""
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
    training, rows = _shown(config.training), measured.rows if measured else ()
    name, on_hub = config.name or config.approach, is_hub_id(config.encoder.id)
    card = ModelCard.from_template(
        ModelCardData(
            language="en",
            license=licence_of(training),
            library_name="dialeval",
            tags=["dialogue", "evaluation", "metric", config.approach],
            base_model=config.encoder.id if on_hub else None,
            base_model_relation=("adapter" if config.encoder.tuning == "lora" else "finetune") if on_hub else None,
            pipeline_tag="text-classification",
            model_name=name if rows else None,
            eval_results=_model_index(rows, org) if rows else None,
        ),
        template_path=str(_TEMPLATE),
        name=name,
        org=org,
        approach=config.approach,
        info=info,
        about=facts()["approaches"].get(config.approach, {"measures": info.summary, "bibtex": info.citation}),
        direction="higher is better" if info.higher_is_better else "lower is better",
        low=f"{info.range[0]:g}",
        high=f"{info.range[1]:g}",
        needs=", ".join(sorted(info.needs)),
        encoder=config.encoder,
        layout=config.layout,
        training=training,
        recipe_text=json.dumps(config.training.get("recipe", {}), indent=2, ensure_ascii=False).replace("`", "'"),
        licence=licence_of(training),
        corpora=[_source("corpora", corpus) for corpus in training.get("corpora", ())],
        ratings=[{**_source("ratings", source), "uses": ", ".join(uses)} for source, uses in rated(training).items()],
        votes=_votes(config) if config.approach == "judge" else [],
        rated_families=[(_LEVELS[level], training["fit"][level]) for level in _LEVELS if "fit" in training],
        faults=training.get("fit", {}).get("heads", {}),
        figures=_flat(training.get("validation", {})),
        contaminated=", ".join(_shown(config.contaminated_by)) or "none",
        merged_from=merged_from,
        checkpoint=measured.checkpoint if measured else "",
        results=_table(rows) if rows else [],
        metric_signature=rows[0].metric_signature if rows else "",
        # A judge that was tuned may know human replies by some aspects only.
        has_percentile="turn.overall" in config.quantiles if config.approach == "judge" else bool(config.quantiles),
        versions=_shown(config.versions),
    )
    return str(card.content).rstrip() + "\n"


def _shown(value: Any) -> Any:
    """What somebody else's configuration says, with nothing live in its texts."""
    if isinstance(value, str):
        return for_markdown(one_line(value))
    if isinstance(value, Mapping):
        return {_shown(name): _shown(inner) for name, inner in value.items()}
    return [_shown(inner) for inner in value] if isinstance(value, list | tuple) else value


def is_hub_id(encoder: str) -> bool:
    """Whether a base encoder is named as on the Hub, not as a folder of some machine."""
    return encoder.count("/") <= 1 and not encoder.startswith((".", "/", "~")) and "\\" not in encoder


def _source(kind: str, name: str) -> dict[str, str]:
    return {
        "name": name,
        **facts()[kind].get(name, {"title": "data of the user's", "licence": "not known to dialeval"}),
    }


def _votes(config: CheckpointConfig) -> list[tuple[str, list[tuple[str, float, bool]]]]:
    """What the features count for in this judge, by level."""
    from dialeval.judge.rule import DIALOGUE, TURN, votes_of

    of_replies = votes_of(config.architecture)
    return [
        (_LEVELS["turns"], [(name, of_replies[name], vote.veto) for name, vote in TURN.items()]),
        (_LEVELS["dialogues"], [(name, vote.votes, vote.veto) for name, vote in DIALOGUE.items()]),
    ]


def _flat(figures: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Nested figures as one level, numbers with four digits."""
    flat: dict[str, str] = {}
    for key, value in figures.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{prefix}{key} ")
        else:
            flat[f"{prefix}{key}"] = f"{value:.4g}" if isinstance(value, float) else str(value)
    return flat


def _table(results: Sequence[Result]) -> list[list[str]]:
    """Header and one line per question, statistics beside each other, each with its interval."""
    from dialeval.agreement.sections import with_interval

    statistics = [name for name in _SHOWN if any(row.statistic == name for row in results)]
    lines: dict[tuple[str, ...], dict[str, Result]] = {}
    for row in results:
        lines.setdefault(row.question[:-1], {})[row.statistic] = row
    body = [["benchmark", "aspect", "level", "n", *(_SHOWN[name][0] for name in statistics), ""]]
    for (benchmark, protocol, level, aspect), cells in lines.items():
        first = next(iter(cells.values()))
        shown = [with_interval(cells[name]) if name in cells else "" for name in statistics]
        name = benchmark if protocol == "standard" else f"{benchmark} ({protocol})"
        size = f"{first.n} systems" if level == "system" else str(first.n)
        body.append([name, aspect, level, size, *shown, "contaminated" if first.contaminated else ""])
    return body


def _model_index(results: Sequence[Result], org: str) -> list[EvalResult]:
    from huggingface_hub import EvalResult

    return [
        EvalResult(
            task_type="text-classification",
            task_name="Agreement with human judgement",
            dataset_type=f"{org}/{row.benchmark}",
            dataset_name=row.benchmark,
            dataset_config=f"{row.aspect}, {row.level}, {row.protocol}",
            dataset_revision=row.revision,
            metric_type=_SHOWN[row.statistic][1],
            metric_value=round(row.value, 4),
            metric_name=_SHOWN[row.statistic][0] + (" (contaminated: trained on it)" if row.contaminated else ""),
        )
        for row in results
    ]


_USES = {
    "train": "encoder and heads", "labelled": "heads for faults",
    "stack": "ranks and interval of replies", "dialogues": "of conversations", "taught": "its teacher",
}  # fmt: skip
#: From what a company may use to what it may not; a checkpoint has the last that one of its sources asks for.
_LICENCES = ("apache-2.0", "cc-by-nc-4.0", "cc-by-nc-sa-4.0")


@cache
def facts() -> Mapping[str, Mapping[str, Any]]:
    """What no config can say: of approaches what they measure and where they fail, of data titles and licences."""
    read: dict[str, dict[str, Any]] = json.loads(
        Path(__file__).with_name("card_facts.json").read_text(encoding="utf-8")
    )
    return read


def licence_of(training: Mapping[str, Any]) -> str:
    """Of the weights: the strictest that a source asks for; one that states none counts as non-commercial."""
    stated = [
        facts()[kind].get(name, {"licence": "none stated"})["licence"]
        for kind, names in (("corpora", training.get("corpora", ())), ("ratings", rated(training)))
        for name in names
    ]
    unknown = ("NC", "none stated", "not stated")
    asked = [2 if "NC-SA" in licence else 1 if any(mark in licence for mark in unknown) else 0 for licence in stated]
    return _LICENCES[max(asked, default=0)]


def rated(training: Mapping[str, Any]) -> dict[str, list[str]]:
    """Sources of ratings, and what each was used for."""
    sources: dict[str, list[str]] = {}
    ratings, taught = training.get("recipe", {}).get("ratings", {}), {"taught": training.get("taught", ())}
    for settings in (training.get("ratings_before", {}), ratings, taught):
        for use, shown in _USES.items():
            for name in settings.get(use, ()) if isinstance(settings, Mapping) else ():
                sources.setdefault(name, []).append(shown)
    return sources
