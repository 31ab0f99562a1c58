"""Train the judge: opinions from human ratings, then what is fitted on the encoder that learned them.

    python training/judge.py --corpora CORPORA --ratings RATINGS --out runs/judge-minilm
    torchrun --nproc_per_node 2 training/judge.py --cpu --corpora CORPORA --ratings RATINGS --out runs/judge
    python training/judge.py --corpora CORPORA --ratings RATINGS --out runs/judge-minilm --resume
    python training/judge.py --corpora CORPORA --ratings RATINGS --out runs/judge-again --fitted-on judge-minilm \
        --set start_from=null

The adapter begins from DEB's. A batch holds rows of one task: right and wrong replies as DEB saw them, replies with
damaged words, or the ratings of one source. On the network that agrees best with the dev split of dbdc3 stand the heads
for insults and contradictions, the tables of words and of ranks, and the intervals, the last from the dev splits of all
sources; it is saved as OUT/checkpoint. The last line above fits these anew without training. No benchmark is read.
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

import judge_heads
from common import Recipe, Run, left_out, parse_arguments, plain_errors
from corpora.batches import CandidateSet
from corpora.dialogues import CorpusDialogue, read_corpus
from corpora.grouped import labelled_rows, mixed_item_batches
from corpora.negatives import NegativeCounts, corrupt
from corpora.ratings import Rated, overlapping_ratings, read_ratings
from dialeval.approaches import signs, stack
from dialeval.approaches.density import fit_gaussian
from dialeval.approaches.judge import (
    ASPECTS,
    DIALOGUE_VOTES,
    FEATURES,
    HEADS,
    TURN_VOTES,
    Judge,
    JudgeNetwork,
    aspect_values,
    ranking_loss,
    soft_label_loss,
    turn_ranks,
    turn_values,
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


def rated_by_source(rows: Sequence[Rated], values: NDArray[np.float64]) -> dict[str, Any]:
    """How values agree with ratings in each family of sources, and how many ratings the interval of others covers."""
    targets = within_source_ranks(rows)
    families = np.array([row.family for row in rows])
    found = {}
    for name in dict.fromkeys(row.family for row in rows):
        inside = families == name
        others = inside if inside.all() else ~inside
        interval = stack.fit_interval(values[others], targets[others])
        found[name] = {
            "rows": int(inside.sum()),
            "spearman": round(float(spearmanr(values[inside], targets[inside]).statistic), 4),
            "coverage": round(stack.covered(interval, values[inside], targets[inside]), 4),
        }
    return found


def within_source_ranks(rows: Sequence[Rated]) -> NDArray[np.float64]:
    """Ratings as ranks within their source."""
    ratings = np.array([target_of(row) for row in rows], dtype=np.float64)
    return stack.within_source_ranks(ratings, [row.source for row in rows])


def fit_turns(judge: Judge, recipe: Recipe, arguments: argparse.Namespace) -> dict[str, Any]:
    """Tables and the interval of single replies, from human replies and the dev splits of all rated sources."""
    settings = recipe["ratings"]
    rows: list[Rated] = []
    for name in settings["stack"]:
        dev = [row for row in rated_rows(recipe, arguments.ratings, name) if row.split == "dev"]
        order = np.random.default_rng(recipe["seed"]).permutation(len(dev))[: settings["stack_rows"]]
        rows += [dev[int(at)] for at in sorted(order)]
    features, read, _ = judge.features_of([row.exchange for row in rows], progress=True)
    human = [one for part in human_pairs(recipe, arguments.corpora, "human") for one in part]
    theirs, read_there, _ = judge.features_of(human, progress=True)
    reference = np.concatenate([features, theirs])
    tables = np.stack([stack.reference_table(column) for column in reference.T])
    judge.network.set_array("turn_tables", tables)
    values = turn_values(turn_ranks(features, read, tables))
    store_interval(judge.network, "turn", stack.fit_interval(values, within_source_ranks(rows)))
    ranks = turn_ranks(theirs, read_there, tables)
    aspects = aspect_values(ranks, TURN_VOTES, FEATURES, ASPECTS)
    write_quantiles(judge.network, "turn", {"overall": turn_values(ranks), **aspects})
    add_random(judge.network, "turn.overall", judge.judge(rotated(human)).values)
    return rated_by_source(rows, values)


def fit_dialogues(judge: Judge, recipe: Recipe, arguments: argparse.Namespace) -> dict[str, Any]:
    """The same of whole conversations, from the ratings of whole conversations."""
    settings = recipe["ratings"]
    rows: list[Rated] = []
    for name in settings["dialogues"]:
        there = rated_rows(recipe, arguments.ratings, name, level="dialogue")
        there = [row for row in there if len(set(row.speakers)) == 2 and len(row.exchange.context) >= 4]
        order = np.random.default_rng(recipe["seed"]).permutation(len(there))[: settings["dialogue_rows"]]
        rows += [there[int(at)] for at in sorted(order)]
    dialogues = [Dialogue(row.exchange.context, row.exchange.facts, speakers=row.speakers) for row in rows]
    features, _, _ = judge.dialogue_features_of(dialogues, progress=True)
    tables = np.stack([stack.reference_table(column) for column in features.T])
    judge.network.set_array("dialogue_tables", tables)
    values = stack.combine(stack.rank_all(features, tables), DIALOGUE_VOTES)
    store_interval(judge.network, "dialogue", stack.fit_interval(values, within_source_ranks(rows)))
    return rated_by_source(rows, values)


def store_interval(network: JudgeNetwork, level: str, fitted: stack.RankInterval) -> None:
    """Write an interval into the network's buffers."""
    ends = [np.append(end, end[-1]) for end in (fitted.low, fitted.high)]
    network.set_array(f"{level}_interval", np.stack([fitted.edges, *ends]))


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


def finish(network: JudgeNetwork, recipe: Recipe, arguments: argparse.Namespace) -> tuple[JudgeNetwork, dict[str, Any]]:
    """Fit what stands on the encoder; the network to save, and what to record of it.

    Densities and the rarity of words are known of an encoder that stays.
    """
    network.round_adapters()
    folder = arguments.out / "fitted"
    # Scoring merges the adapters and runs fused: all is fitted where its rows lie, in a third of the time.
    network.save_pretrained(folder)
    encoder = Judge(folder).encoder
    if arguments.fitted_on is None:
        fit_density(network, encoder, recipe, arguments.corpora)
        corpora = human_pairs(recipe, arguments.corpora, "density")
        network.set_array("rarity", signs.idf_table([one.response for part in corpora for one in part]))
    heads = judge_heads.fit_heads(network, encoder, recipe, arguments)
    network.save_pretrained(folder)
    judge = Judge(folder)
    figures = {
        "heads": heads,
        "turns": fit_turns(judge, recipe, arguments),
        "dialogues": fit_dialogues(judge, recipe, arguments),
    }
    for name, buffer in judge.network.named_buffers():
        if name in dict(network.named_buffers()) and not name.startswith("encoder"):
            network.get_buffer(name).copy_(buffer)
    network.config = replace(network.config, quantiles=judge.network.config.quantiles, versions=current_versions())
    return network, figures


def save(network: JudgeNetwork, folder: Path) -> None:
    """The checkpoint with its card."""
    network.save_pretrained(folder)
    Judge(folder)  # what was written can be loaded
    (folder / "README.md").write_text(render_card(network.config), "utf-8")


def main() -> None:
    """Adapter, then what stands on it."""
    recipe, arguments = parse_arguments(
        __doc__ or "",
        "judge-minilm.yaml",
        ratings="folder with SOURCE.jsonl.gz of each source of ratings",
        fitted_on="a judge whose encoder stays as it is: only heads, tables and intervals on it are fitted anew",
    )
    if arguments.ratings is None:
        raise SystemExit("--ratings is missing; name the folder of the rated sources")
    if arguments.fitted_on is not None:
        network = JudgeNetwork.from_pretrained(str(arguments.fitted_on), trainable=True)
        network, figures = finish(network, recipe, arguments)
        made = network.config.training
        corpora = list(dict.fromkeys([*made["corpora"], *recipe["faults"]["corpora"]]))
        network.config = replace(
            network.config, training={**made, "recipe": recipe, "corpora": corpora, "fit": figures}
        )
        save(network, arguments.out / "checkpoint")
        return
    run, made_of = train(recipe, arguments)
    if run.accelerator.is_main_process:
        best = JudgeNetwork.from_pretrained(run.folder / "best", device=run.accelerator.device, trainable=True)
        earlier = best.config.training
        network, figures = finish(best, recipe, arguments)
        made = record(run, arguments, earlier=earlier, **made_of, fit=figures)
        network.config = replace(network.config, training=made)
        save(network, run.folder / "checkpoint")
        run.log("final", **{f"{family}_spearman": one["spearman"] for family, one in figures["turns"].items()})


if __name__ == "__main__":
    plain_errors(main)
