"""Train the judge: opinions from human ratings, then the stack that combines them with plain signs.

    python training/judge.py --corpora CORPORA --ratings RATINGS --out runs/judge-minilm
    torchrun --nproc_per_node 2 training/judge.py --cpu --corpora CORPORA --ratings RATINGS --out runs/judge
    python training/judge.py --corpora CORPORA --ratings RATINGS --out runs/judge-minilm --resume

The adapter begins from DEB's. A batch holds rows of one task: right and wrong replies as DEB saw them, replies with
damaged words, or the ratings of one source. The network that agrees best with the dev split of dbdc3 gets its tables,
weights and interval from the dev splits of all sources and is saved as OUT/checkpoint. No benchmark is read.
"""

from __future__ import annotations

import interruptible  # noqa: F401  # isort: skip
import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate.utils import set_seed
from numpy.typing import NDArray
from scipy.stats import spearmanr
from torch import Tensor

from common import Recipe, Run, left_out, parse_arguments, plain_errors
from corpora.batches import CandidateSet
from corpora.dialogues import CorpusDialogue, read_corpus
from corpora.grouped import labelled_rows, mixed_item_batches
from corpora.negatives import NegativeCounts, corrupt
from corpora.ratings import Rated, overlapping_ratings, read_ratings
from dialeval.approaches import signs, stack
from dialeval.approaches.density import fit_gaussian
from dialeval.approaches.judge import (
    DIALOGUE_FEATURES,
    FEATURES,
    HEADS,
    VOTES,
    Judge,
    JudgeNetwork,
    ranking_loss,
    soft_label_loss,
)
from dialeval.approaches.learned import QUANTILE_GRID
from dialeval.card import render_card
from dialeval.engine.encoding import PairEncoder
from dialeval.engine.moments import Moments
from dialeval.exchange import Dialogue, Exchange
from dialeval.statistics.discrimination import auc
from dialeval.weights.config import current_versions
from stages import (
    Collator,
    Forward,
    corpora_of,
    count_kinds,
    network_rows,
    new_network,
    read_grouped,
    record,
    run_stage,
)
from trainer import Figures


@dataclass(frozen=True)
class Example:
    """One row of one task."""

    task: str
    exchange: Exchange
    #: What the heads of the task are to say, in their order.
    targets: tuple[float, ...]
    raters: int = 1


#: The heads that each task trains.
TASKS = {"replay": ("valid",), "fluency": ("fluent",), "dbdc": ("follows",), "dstc7": ("fits", "informative")}


# --- data ------------------------------------------------------------------------------------------


def rated_rows(recipe: Recipe, root: Path, source: str, *, level: str = "turn") -> list[Rated]:
    """Rows of one source that no evaluation set shares text with."""
    unwanted = (
        overlapping_ratings(root / recipe["ratings"]["leave_out"]) if recipe["ratings"]["leave_out"] else frozenset()
    )
    return read_ratings(root, source, level=level, leave_out=unwanted)


def examples_of(source: str, rows: Sequence[Rated], recipe: Recipe) -> list[Example]:
    """Training rows of a source of ratings; facts are left out of some, so that replies are judged without them too."""
    rng = np.random.default_rng([recipe["seed"], 31])
    found = []
    for row in rows:
        exchange = row.exchange
        if exchange.facts and exchange.context and rng.random() < recipe["ratings"]["fact_dropout"]:
            exchange = replace(exchange, facts=())
        if source.startswith("dbdc"):
            counts = row.ratings.get("no_breakdown", {})
            found.append(Example("dbdc", exchange, (row.scores["no_breakdown"],), sum(counts.values()) or 1))
        elif source == "dstc7":
            raters = len(row.ratings.get("relevance", ())) or 1
            found.append(Example("dstc7", exchange, (row.scores["relevance"], row.scores["informativeness"]), raters))
        else:
            raise SystemExit(f"ratings.train names {source}; there is a head for dbdc3, dbdc4 and dstc7")
    return found


def damaged(rows: Sequence[Example], seed: int) -> list[Example]:
    """Replies to ordinary contexts as they are, and with words dropped, repeated, shuffled or cut off."""
    found = []
    for number, row in enumerate(rows):
        broken = corrupt(row.exchange.response, np.random.default_rng([seed, number]))
        if broken is not None:
            found.append(replace(row, task="fluency", targets=(1.0,)))
            found.append(replace(row, task="fluency", exchange=replace(row.exchange, response=broken), targets=(0.0,)))
    return found


def read_examples(
    recipe: Recipe, arguments: argparse.Namespace
) -> tuple[list[list[Example]], list[float], dict[str, Any]]:
    """All tasks' rows, their shares of the batches, and what they are made of."""
    groups, shares, _ = read_grouped(recipe, arguments.corpora)
    settings = recipe["ratings"]
    sources: list[list[Example]] = []
    for number, part in enumerate(groups.values()):
        rows = labelled_rows(part, seed=recipe["seed"] + number)
        sources.append([Example("replay", row.exchange, (float(row.valid),)) for row in rows])
    weights = [settings["replay_share"] * share / sum(shares) for share in shares]
    # Wrong replies are damaged, too: if only right ones were, a reply that fits nothing would look the most fluent.
    whole = [row for rows in sources for row in rows]
    chosen = np.random.default_rng(recipe["seed"]).permutation(len(whole))[: settings["damaged"]]
    sources.append(damaged([whole[int(at)] for at in chosen], recipe["seed"]))
    weights.append(settings["fluency_share"])
    rated = {
        name: [row for row in rated_rows(recipe, arguments.ratings, name) if row.split == "train"]
        for name in settings["train"]
    }
    # In proportion to the root of their size: a large source does not drown a small one.
    roots = {name: np.sqrt(len(rows)) for name, rows in rated.items()}
    left = 1 - settings["replay_share"] - settings["fluency_share"]
    for name, own in rated.items():
        sources.append(examples_of(name, own, recipe))
        weights.append(left * roots[name] / sum(roots.values()))
    made_of = {
        "available": count_kinds(groups),
        "rated_rows": {name: len(rows) for name, rows in rated.items()},
        "damaged_rows": len(sources[len(groups)]),
        "corpora": corpora_of(groups),
    }
    return sources, weights, made_of


# --- training --------------------------------------------------------------------------------------


def begin_from_deb(network: JudgeNetwork, recipe: Recipe) -> None:
    """The head for valid replies begins as the difference of DEB's two logits, where DEB's head is linear."""
    from safetensors.torch import load_file

    from dialeval.weights.find import find_checkpoint

    if recipe["start_from"] is None:
        return
    folder = find_checkpoint(recipe["start_from"], default=recipe["start_from"]).folder
    stored = load_file(folder / "model.safetensors")
    if "pooler.weight" in stored or "classifier.weight" not in stored:
        return
    with torch.no_grad():
        at = HEADS.index("valid")
        network.heads.weight[at] = stored["classifier.weight"][0] - stored["classifier.weight"][1]
        network.heads.bias[at] = stored["classifier.bias"][0] - stored["classifier.bias"][1]


def loss_of(logits: Tensor, batch: Sequence[Example]) -> tuple[Tensor, Figures]:
    """The loss of one task: shares where raters voted or the truth is known, ranks where they gave points."""
    task = batch[0].task
    targets = torch.tensor([row.targets for row in batch], device=logits.device)
    raters = torch.tensor([float(row.raters) for row in batch], device=logits.device)
    parts = []
    for number, head in enumerate(TASKS[task]):
        said = logits[:, HEADS.index(head)]
        wanted = targets[:, number]
        parts.append(ranking_loss(said, wanted, raters) if task == "dstc7" else soft_label_loss(said, wanted))
    return torch.stack(parts).sum(), {
        f"{task}_{head}": part.item() for head, part in zip(TASKS[task], parts, strict=True)
    }


def head_logits(network: JudgeNetwork, rows: Sequence[Exchange]) -> NDArray[np.float32]:
    """What the heads say in evaluation mode."""
    return network_rows(network, list(rows))[:, -len(HEADS) :]


def train(recipe: Recipe, arguments: argparse.Namespace) -> tuple[Run, dict[str, Any]]:
    """Leaves OUT/best."""
    settings = recipe["training_steps"]
    set_seed(recipe["seed"])
    network = new_network(JudgeNetwork, recipe, {})
    begin_from_deb(network, recipe)
    collator = Collator(network, recipe["training"]["max_length"])
    sources, shares, made_of = read_examples(recipe, arguments)
    batches = mixed_item_batches(
        sources,
        shares,
        size=settings["batch_size"],
        seed=recipe["seed"],
        length=lambda row: min(500, sum(map(len, (*row.exchange.facts, *row.exchange.context, row.exchange.response)))),
    )
    early = [
        row for row in rated_rows(recipe, arguments.ratings, recipe["ratings"]["early_stopping"]) if row.split == "dev"
    ]
    # Unlabelled by the breakdown task: what the head for relevance says there is only logged.
    other = [row for row in rated_rows(recipe, arguments.ratings, "dstc7") if row.split == "dev"]
    # Held-out human turns, whole and damaged; logged too.
    pairs = [pair for part in human_pairs(recipe, arguments.corpora, "human") for pair in part]
    spoken = [Example("fluency", pair, (1.0,)) for pair in pairs]
    broken = damaged(spoken[:: max(1, len(spoken) // 200)], recipe["seed"] + 1)

    def loss(forward: Forward, batch: list[Example]) -> tuple[Tensor, Figures]:
        rows = collator.rows_of(forward, [row.exchange for row in batch])
        return loss_of(rows[:, -len(HEADS) :].float(), batch)

    def validate() -> tuple[float, Figures]:
        logits = head_logits(network, [row.exchange for row in early])
        truth = [row.scores["no_breakdown"] for row in early]
        said = head_logits(network, [row.exchange for row in other])
        whole = head_logits(network, [row.exchange for row in broken])[:, HEADS.index("fluent")]
        figures = {
            f"{recipe['ratings']['early_stopping']}_follows": spearmanr(
                logits[:, HEADS.index("follows")], truth
            ).statistic,
            f"{recipe['ratings']['early_stopping']}_valid": spearmanr(logits[:, HEADS.index("valid")], truth).statistic,
            "dstc7_fits": spearmanr(said[:, HEADS.index("fits")], [row.scores["relevance"] for row in other]).statistic,
            "dstc7_informative": spearmanr(
                said[:, HEADS.index("informative")], [row.scores["informativeness"] for row in other]
            ).statistic,
            "fluency_auc": auc([row.targets[0] for row in broken], whole).value,
        }
        plain = {name: float(value) for name, value in figures.items()}
        return plain[f"{recipe['ratings']['early_stopping']}_follows"], plain

    run = run_stage(
        arguments.out,
        recipe,
        settings,
        arguments,
        model=network,
        batches=batches,
        loss=loss,
        validate=validate,
        keep=network.save_pretrained,
        first_token_only=True,
    )
    return run, made_of


# --- tables, weights, interval ---------------------------------------------------------------------


def human_pairs(recipe: Recipe, root: Path, part: str) -> list[list[Exchange]]:
    """Human turns with what stands before them, by corpus; `part` names the recipe's list of corpora."""
    found = []
    for number, corpus in enumerate(recipe[part]):
        dialogues: list[CorpusDialogue] = []
        for split in corpus["splits"]:
            dialogues += read_corpus(root, corpus["name"], split, leave_out=left_out(recipe, root))
        pairs = CandidateSet(
            dialogues, NegativeCounts(random=1), seed=recipe["seed"] + number, fact_share=corpus.get("facts", 1.0)
        )
        chosen = np.random.default_rng([recipe["seed"], number]).permutation(len(pairs))[: corpus["pairs"]]
        found.append([pairs.get(int(index)).exchange for index in chosen])
    return found


def rotated(pairs: Sequence[Exchange]) -> list[Exchange]:
    """The same contexts with one another's replies."""
    return [replace(one, response=other.response) for one, other in zip(pairs, [*pairs[1:], pairs[0]], strict=True)]


def fit_density(network: JudgeNetwork, engine: PairEncoder, recipe: Recipe, root: Path) -> None:
    """A Gaussian of human pairs and one of random ones, on the features that `engine` encodes."""
    corpora = human_pairs(recipe, root, "density")
    for name, parts in (("human", corpora), ("random", [rotated(part) for part in corpora])):
        moments = Moments()
        for part in parts:
            moments.update(engine.encode(part, progress=True).rows[:, : -len(HEADS)])
        mean, precision = fit_gaussian(moments, shrinkage=recipe["shrinkage"])
        network.set_array(f"{name}_mean", mean)
        network.set_array(f"{name}_precision", precision)


#: Behaviours of ABC-Eval that nobody wants.
_FAULTS = (
    "irrelevant",
    "ignore",
    "redundant",
    "self contradiction",
    "partner contradiction",
    "commonsense contradiction",
)


def target_of(row: Rated) -> float | None:
    """One rating per row, higher is better; None where the source asks about something else."""
    scores = row.scores
    if row.source == "abc_eval":
        return 1 - max(scores.get(name, 0.0) for name in _FAULTS)
    for name in ("no_breakdown", "overall", "satisfaction", "thumb"):
        if name in scores:
            return scores[name]
    return None


#: Heads that a family of sources trained: on its own rows they know more than they will know of others.
TAUGHT_BY = {"dbdc": ("follows",), "dstc7": ("fits", "informative")}


def rated_features(judge: Judge, rows: Sequence[Rated]) -> tuple[stack.RatedFeatures, NDArray[np.float64]]:
    """Features of rated replies to fit on, where what a family's own ratings taught counts as missing; and whole."""
    features, _, _ = judge.features_of([row.exchange for row in rows], progress=True)
    whole = features.copy()
    for number, row in enumerate(rows):
        for name in TAUGHT_BY.get(row.family, ()):
            features[number, FEATURES.index(name)] = np.nan
    return with_ratings(features, rows), whole


def with_ratings(features: NDArray[np.float64], rows: Sequence[Rated]) -> stack.RatedFeatures:
    """Features beside what people said."""
    return stack.RatedFeatures(
        features,
        np.array([target_of(row) for row in rows], dtype=np.float64),
        tuple(row.source for row in rows),
        tuple(row.family for row in rows),
    )


def fit_turns(judge: Judge, recipe: Recipe, arguments: argparse.Namespace) -> tuple[stack.Stack, float]:
    """The stack of single replies, from the dev splits of all sources; human replies stand in its tables.

    Beside it the agreement that equal votes would have reached with the families left out.
    """
    settings = recipe["ratings"]
    rows: list[Rated] = []
    for name in settings["stack"]:
        dev = [row for row in rated_rows(recipe, arguments.ratings, name) if row.split == "dev"]
        order = np.random.default_rng(recipe["seed"]).permutation(len(dev))[: settings["stack_rows"]]
        rows += [dev[int(at)] for at in sorted(order)]
    rated, whole = rated_features(judge, rows)
    human = [one for part in human_pairs(recipe, arguments.corpora, "human") for one in part]
    theirs, _, _ = judge.features_of(human, progress=True)
    votes = np.array([VOTES[name] for name in FEATURES])
    reference = np.concatenate([whole, theirs])
    fitted = stack.fit_stack(rated, reference=reference, prior=votes / votes.sum())
    equal = stack.fit_stack(rated, reference=reference)
    store(judge.network, "turn", fitted)
    judged = judge.judge(human)
    write_quantiles(judge.network, "turn", {"overall": judged.values, **judged.aspects})
    shuffled = judge.judge(rotated(human))
    add_random(judge.network, "turn.overall", shuffled.values)
    return fitted, equal.agreement


def fit_dialogues(judge: Judge, recipe: Recipe, arguments: argparse.Namespace) -> stack.Stack:
    """The stack of whole conversations, from the ratings of whole conversations."""
    settings = recipe["ratings"]
    rows: list[Rated] = []
    for name in settings["dialogues"]:
        there = rated_rows(recipe, arguments.ratings, name, level="dialogue")
        there = [row for row in there if len(set(row.speakers)) == 2 and len(row.exchange.context) >= 4]
        order = np.random.default_rng(recipe["seed"]).permutation(len(there))[: settings["dialogue_rows"]]
        rows += [there[int(at)] for at in sorted(order)]
    dialogues = [Dialogue(row.exchange.context, row.exchange.facts, speakers=row.speakers) for row in rows]
    features, _, _ = judge.dialogue_features_of(dialogues, progress=True)
    fitted = stack.fit_stack(with_ratings(features, rows), reference=features)
    store(judge.network, "dialogue", fitted)
    return fitted


def store(network: JudgeNetwork, level: str, fitted: stack.Stack) -> None:
    """Write a stack into the network's buffers."""
    network.set_array(f"{level}_tables", fitted.tables)
    network.set_array(f"{level}_weights", fitted.weights)
    ends = [np.append(end, end[-1]) for end in (fitted.interval.low, fitted.interval.high)]
    network.set_array(f"{level}_interval", np.stack([fitted.interval.edges, *ends]))


def write_quantiles(network: JudgeNetwork, level: str, columns: dict[str, NDArray[np.float64]]) -> None:
    """Quantiles of human replies, overall and by aspect."""
    curves = dict(network.config.quantiles)
    for name, values in columns.items():
        known = values[np.isfinite(values)]
        if len(known):
            curves[f"{level}.{name}"] = {"human": [float(one) for one in np.quantile(known, QUANTILE_GRID)]}
    network.config = replace(network.config, quantiles=curves)


def add_random(network: JudgeNetwork, key: str, values: NDArray[np.float64]) -> None:
    """Quantiles of random replies beside those of human ones."""
    curves = {**network.config.quantiles[key], "random": [float(one) for one in np.quantile(values, QUANTILE_GRID)]}
    network.config = replace(network.config, quantiles={**network.config.quantiles, key: curves})


def stack_record(fitted: stack.Stack, names: Sequence[str]) -> dict[str, Any]:
    """A stack in the checkpoint's record."""
    weights = {name: round(float(weight), 4) for name, weight in zip(names, fitted.weights, strict=True)}
    left = {
        family: {key: round(value, 4) for key, value in figures.items()} for family, figures in fitted.left_out.items()
    }
    return {
        "weights": weights,
        "strength": fitted.strength,
        "families_left_out": left,
        "agreement": round(fitted.agreement, 4),
    }


def finish(run: Run, arguments: argparse.Namespace, made_of: dict[str, Any]) -> None:
    """Fit everything that stands on the best network and write OUT/checkpoint."""
    recipe = run.recipe
    network = JudgeNetwork.from_pretrained(run.folder / "best", device=run.accelerator.device, trainable=True)
    network.round_adapters()
    # Scoring merges the adapters and runs fused: the Gaussians stand where its rows lie, in a third of the time.
    network.save_pretrained(run.folder / "fitted")
    fit_density(network, Judge(run.folder / "fitted").encoder, recipe, arguments.corpora)
    corpora = human_pairs(recipe, arguments.corpora, "density")
    network.set_array("rarity", signs.idf_table([one.response for part in corpora for one in part]))
    network.save_pretrained(run.folder / "fitted")
    judge = Judge(run.folder / "fitted")
    turns, with_equal_votes = fit_turns(judge, recipe, arguments)
    dialogues = fit_dialogues(judge, recipe, arguments)
    for name, buffer in judge.network.named_buffers():
        if name in dict(network.named_buffers()) and not name.startswith("encoder"):
            network.get_buffer(name).copy_(buffer)
    figures = {
        "turns": stack_record(turns, FEATURES) | {"agreement_with_equal_votes": round(with_equal_votes, 4)},
        "dialogues": stack_record(dialogues, DIALOGUE_FEATURES),
    }
    network.config = replace(
        network.config,
        quantiles=judge.network.config.quantiles,
        training=record(run, arguments, earlier=network.config.training, **made_of, stack=figures),
        versions=current_versions(),
    )
    network.save_pretrained(run.folder / "checkpoint")
    run.log("final", **{f"left_out_{family}": one["spearman"] for family, one in turns.left_out.items()})
    Judge(run.folder / "checkpoint")  # what was written can be loaded
    (run.folder / "checkpoint" / "README.md").write_text(render_card(network.config), "utf-8")


def main() -> None:
    """Adapter, then stack."""
    recipe, arguments = parse_arguments(
        __doc__ or "", "judge-minilm.yaml", ratings="folder with SOURCE.jsonl.gz of each source of ratings"
    )
    if arguments.ratings is None:
        raise SystemExit("--ratings is missing; name the folder of the rated sources")
    run, made_of = train(recipe, arguments)
    if run.accelerator.is_main_process:
        finish(run, arguments, made_of)


if __name__ == "__main__":
    plain_errors(main)
