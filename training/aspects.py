"""The last phase of the shared encoder: it learns from ratings, and to see the faults that the judge names.

    python training/aspects.py --corpora CORPORA --ratings RATINGS --encoder FOLDER --out runs/aspects --processes 2
    python training/aspects.py --corpora CORPORA --ratings RATINGS --encoder FOLDER --out runs/aspects-open \
        --processes 2 --recipe training/recipes/aspects-open.yaml

One head a task on the first token: which reply is next, which of two replies people rated higher, is it a valid
reply, is it sound English, do the facts bear it out, does it agree with what its speaker said, is it civil. Every step
holds rows of all tasks; the rate falls to zero. OUT/trunk.safetensors holds encoder and heads in float16, OUT/log.jsonl
the losses and, on held-out rows of each task, AUC, rank correlation, or accuracy and loss among ten. A recipe of no
steps measures and keeps the mean of what it begins from.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from safetensors import safe_open
from scipy.stats import spearmanr
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import AutoTokenizer

from aspect_rows import (
    GROUP,
    RATED,
    PhaseStep,
    PhaseSteps,
    Sources,
    beside_other_facts,
    faulty_rows,
    long_twins,
    rating_of,
    without_facts,
)
from common import override, read_recipe
from dialeval.checkpoints.config import CheckpointConfig
from dialeval.checkpoints.find import find_checkpoint
from dialeval.core.exchange import Exchange
from dialeval.encoders.layout import PairFormat, PairTokenizer
from dialeval.hub.card import rated
from dialeval.statistics.discrimination import auc
from history import TrainingRun, joined, stages_of
from starts import mean_weights
from trunk import Trainer, commit, in_processes, log, save_state
from trunk_network import TRUNK_HEADS as HEADS
from trunk_network import next_reply_loss
from trunk_steps import prefetched

# --- losses ----------------------------------------------------------------------------------------


def ranking_loss(logits: Tensor, ratings: Tensor, least_gap: float) -> Tensor:
    """Logistic loss over all pairs of rows of one source, weighted by how far apart people put them."""
    gap = ratings[:, None] - ratings[None, :]
    weight = torch.where(gap > least_gap, gap, torch.zeros_like(gap))
    margin = logits[:, None] - logits[None, :]
    return (weight * F.softplus(-margin)).sum() / weight.sum().clamp(min=1e-6)


def balanced_loss(logits: Tensor, truth: Tensor) -> Tensor:
    """Binary cross-entropy in which right and wrong rows weigh the same."""
    each = F.binary_cross_entropy_with_logits(logits, truth, reduction="none")
    parts = [each[truth == label].mean() for label in (0.0, 1.0) if bool((truth == label).any())]
    return torch.stack(parts).mean()


class LastPhase(Trainer):
    """The trunk's trainer with a head a task; heads learn faster than the encoder."""

    #: What a step has losses of.
    terms: tuple[str, ...] = HEADS

    def __init__(self, recipe: dict[str, Any], encoder: Path, dtype: torch.dtype, device: torch.device) -> None:
        super().__init__(recipe, encoder, dtype, device, heads=len(HEADS), lora=recipe.get("lora"))
        heads = list(self.master.head.parameters())
        tuned = [weight for weight in self.weights if not any(weight is head for head in heads)]
        self.optimizer = torch.optim.AdamW(
            [{"params": tuned}, {"params": heads}], lr=0.0, betas=tuple(recipe["betas"]),
            weight_decay=recipe["weight_decay"], fused=True,
        )  # fmt: skip

    def begin(self, starts: Sequence[str]) -> None:
        """Take over the mean of some encoders, and of each head the mean of those that have it; others are zero."""
        means = mean_weights(starts)
        self.take_layers({name: tensor for name, tensor in means.items() if not name.startswith("head.")})
        nn.init.zeros_(self.master.head.weight)
        nn.init.zeros_(self.master.head.bias)
        with torch.no_grad():
            for number, head in enumerate(HEADS):
                if f"head.{head}" in means:
                    row = means[f"head.{head}"]
                    self.master.head.weight[number], self.master.head.bias[number] = row[:-1], row[-1]
        self.copy_weights()

    def sources(self, trunk: dict[str, Any], arguments: argparse.Namespace) -> Sources:
        """What the steps are drawn from."""
        return Sources(self.recipe, trunk, arguments)

    def losses(self, step: PhaseStep, logits: Tensor) -> dict[str, Tensor]:
        """The loss of each task that the step has rows of."""
        candidates = len(logits) - len(step.tasks)
        following = logits[:candidates, HEADS.index("next")].view(step.n_contexts, -1)
        losses = {"next": next_reply_loss(following, self.recipe["binary_weight"]).mean()}
        rest, truth = logits[candidates:], step.truth.to(logits.device)
        for number, head in enumerate(HEADS):
            parts = [losses[head]] if head in losses else []
            of_head = [row for row, task in enumerate(step.tasks) if head in task.split("+")]
            groups = dict.fromkeys(step.origins[row] for row in of_head if step.origins[row].startswith(GROUP))
            for group in groups:
                chosen = [row for row in of_head if step.origins[row] == group]
                parts.append(ranking_loss(rest[chosen, number], truth[chosen], self.recipe["least_gap"]))
            plain = [row for row in of_head if step.origins[row] not in groups]
            if plain:
                parts.append(balanced_loss(rest[plain, number], truth[plain]))
            if parts:
                losses[head] = torch.stack(parts).mean() if head != "next" else parts[0] + sum(parts[1:]) / 4
        return losses

    def learn(self, step: PhaseStep, rates: Sequence[float]) -> Tensor:
        """One step over all tasks; the loss of each."""
        losses = self.losses(step, self.through(step.batches, self.recipe["dropout"]))
        share = dist.get_world_size() if dist.is_initialized() else 1
        whole = (
            torch.stack([self.recipe["weights"].get(task, 1.0) * loss for task, loss in losses.items()]).sum() / share
        )
        none = whole.new_zeros(())
        parts = torch.stack([losses[task].detach() if task in losses else none for task in self.terms]) / share
        return self.update(whole, parts, rates)

    @torch.inference_mode()
    def figures(self, sources: Sources, tokenizer: PairTokenizer) -> dict[str, float]:
        """On held-out rows of each task: accuracy among ten, rank correlation, AUC (by kind of damage, too)."""
        settings = self.recipe["validation"]
        figures: dict[str, float] = {}

        def scores_of(rows: Sequence[Exchange], *heads: str) -> Any:
            logits = self.logits(tokenizer.pairs(list(rows)), tokenizer.pad_id).cpu().numpy()
            return [logits[:, HEADS.index(head)] for head in heads]

        hits, losses, contexts = [], [], []
        for corpus in sources.held_out.values():
            chosen = np.random.default_rng(2026).permutation(len(corpus))[: settings["contexts"]]
            sets = [corpus.get(int(index)).exchanges() for index in chosen]
            (scores,) = scores_of([each for candidates in sets for each in candidates], "next")
            scores = scores.reshape(len(sets), -1)
            hits.append(float((scores[:, 0] > scores[:, 1:].max(axis=1)).mean()))
            losses.append(float(next_reply_loss(torch.from_numpy(scores), 0.0).mean()))
            contexts += [candidates[:4] for candidates in sets]
        figures["next_accuracy"], figures["next_loss"] = float(np.mean(hits)), float(np.mean(losses))
        for name in sources.rated:
            dev = sources.of_split(name, "dev")[: settings["rows"] * 2]
            truth = [rating_of(row) for row in dev]
            read = [without_facts(row) for row in dev]
            for head, scores in zip(("rated", "next"), scores_of(read, "rated", "next"), strict=True):
                figures[f"{name}_{head}"] = float(spearmanr(scores, truth).statistic)
        draw = np.random.default_rng(7)
        many = dict.fromkeys(("fluent", "insults", "consistent", "faithful"), settings["rows"])
        rows = faulty_rows(draw, contexts, many, held_out=True)
        rows += sources.valid_rows(draw, sources.held_groups, settings["rows"])
        for name in sources.labelled:
            task, score = RATED[name]
            rated_rows = [row for row in sources.of_split(name, "dev") if score in row.scores][: settings["rows"]]
            rows += [(task, row.exchange, float(row.scores[score] > 0.7), name) for row in rated_rows]
        for task in HEADS[2:]:
            own_rows = [row for row in rows if row[0] == task]
            if not own_rows:
                continue
            (scores,) = scores_of([row[1] for row in own_rows], task)
            right = np.array([row[2] for row in own_rows])
            kinds = sorted({row[3] for row in own_rows if row[3]})
            rated = [name for name in kinds if name in RATED]
            plain_rows = np.array([row[3] not in rated for row in own_rows])
            figures[f"{task}_auc"] = float(auc(right[plain_rows], scores[plain_rows]).value)
            for kind in kinds:
                of_kind = np.array([row[3] == kind for row in own_rows])
                beside = of_kind if kind in rated else of_kind | (right == 1) & plain_rows
                if task != "valid" and 0 < right[beside].mean() < 1:
                    figures[f"{task}_{kind}_auc"] = float(auc(right[beside], scores[beside]).value)
        figures |= self.compared_figures(sources, scores_of)
        # No corpus has rows of every kind.
        return {name: round(value, 4) for name, value in figures.items() if value == value}

    def compared_figures(self, sources: Sources, scores_of: Any) -> dict[str, float]:
        """Rank correlation of graded sources, accuracy of pairs and of twins, on rows that no step reads."""
        most, figures = self.recipe["validation"]["rows"], {}
        for name, source in sources.graded.items():
            dev = source.rows["dev"][:most]
            heads = (source.head, "next") if source.head == "rated" else (source.head,)
            for head, scores in zip(heads, scores_of([row for row, _ in dev], *heads), strict=True):
                figures[f"{name}_{head}"] = float(spearmanr(scores, [share for _, share in dev]).statistic)
        for name, pairs in sources.pairs.items():
            compared = pairs.rows["dev"][: most // 4]
            (scores,) = scores_of([reply for better, worse, _ in compared for reply in (better, worse)], pairs.head)
            right = (scores[::2] > scores[1::2]) == (np.array([share for *_, share in compared]) > 0.5)
            figures[f"{name}_{pairs.head}"] = float(right.mean())
        draw = np.random.default_rng(11)
        twins_by_kind = {
            "long": [long_twins(draw, sources.long, "") for _ in range(most // 8 if sources.counts["long"] else 0)],
            "facts": [
                beside_other_facts(draw, sources.held_out, "")
                for _ in range(most // 8 if sources.counts["facts"] else 0)
            ],
        }
        for kind, made in twins_by_kind.items():
            if twins := [rows for rows in made if rows]:
                (scores,) = scores_of([row[1] for rows in twins for row in rows[:2]], "rated")
                figures[f"{kind}_twins"] = float((scores[::2] > scores[1::2]).mean())
        return figures


def history_of(
    starts: Sequence[str], current: TrainingRun, sources: Sources, hardware: Sequence[str] = ()
) -> dict[str, Any]:
    """The stages of what a run began from and its own, the corpora and the hardware of all, and what teachers read."""
    stages, used, corpora = [], [], [*sources.names, *(["dailydialog_pp"] if sources.groups else [])]
    for start in starts:
        if (Path(start) / "lora_a.npz").is_file():  # how it was made is recorded beside it, not in it
            stages.append([TrainingRun("stage 0", **sources.recipe["stage_0"])])
            continue
        if start.endswith(".safetensors"):
            with safe_open(start, framework="pt") as stored:
                metadata = {name: json.loads(text) for name, text in stored.metadata().items()}
            training = metadata.get("made") or trunk_history(metadata["stood"])
        else:
            training = CheckpointConfig.read(find_checkpoint(start, default=start).folder).training
        stages.append(stages_of(training))
        corpora += training["corpora"]
        used += [training["hardware"]] if training.get("hardware") else []
    taught: dict[str, Any] = {}
    if "teaching" in sources.recipe:
        named = sources.recipe["teaching"]["teachers"]
        learned = [CheckpointConfig.read(find_checkpoint(name, default=name).folder).training for name in named]
        taught = {"taught": list(dict.fromkeys(chain.from_iterable(map(rated, learned))))}
        corpora += chain.from_iterable(training.get("corpora", ()) for training in learned)
    return {
        "hardware": "; ".join(dict.fromkeys([*used, *hardware])),
        # The current run counts even where it is as long as an earlier one.
        "stages": [asdict(stage) for stage in (*joined(*stages), *([current] if current.steps else []))],
        "corpora": list(dict.fromkeys(corpora)),
        **taught,
    }


def trunk_history(stood: dict[str, Any]) -> dict[str, Any]:
    """What a run of `training/trunk.py` is, in the form of a checkpoint's record."""
    run = TrainingRun("trunk", stood["step"], stood["step"], round(stood["seconds"] / 3600, 2))
    return {"stages": [asdict(run)], "corpora": []}


def rates_at(recipe: dict[str, Any], step: int) -> list[float]:
    """Of the encoder and the heads: up during the warm-up, then down to zero."""
    share = min(1.0, (step + 1) / recipe["warmup"]) * (recipe["steps"] - step) / recipe["steps"]
    return [float(recipe["encoder_rate"]) * share, float(recipe["head_rate"]) * share]


def run(
    rank: int,
    recipe: dict[str, Any],
    trunk: dict[str, Any],
    arguments: argparse.Namespace,
    trainer: type[LastPhase] = LastPhase,
) -> None:
    """All steps in one of the processes."""
    torch.set_flush_denormal(True)
    if arguments.processes > 1:
        torch.set_num_threads(1)
        dist.init_process_group("gloo", rank=rank, world_size=arguments.processes)
    phase = trainer(recipe, arguments.encoder, getattr(torch, arguments.dtype), torch.device(arguments.device))
    kept = arguments.out / "state.pt"
    state: dict[str, Any] = {"step": 0}
    if kept.exists():
        state = phase.load(torch.load(kept, map_location=arguments.device))
    else:
        phase.begin(recipe["start_from"])
    layout = PairFormat(**{**trunk["layout"], **recipe.get("layout", {})})
    tokenizer = PairTokenizer(AutoTokenizer.from_pretrained(arguments.encoder), layout)
    sources = phase.sources(trunk, arguments)
    n_rated = {name: len(rows) for (name, split), rows in sources.ratings.items() if split == "train"}
    log(arguments.out, "start", commit=commit(), recipe=recipe, rated_rows=n_rated)
    # States of before have no such counts.
    begun, spent, seen = time.process_time(), float(state.get("seconds", 0)), int(state.get("seen", 0))
    first = int(state["step"])
    steps = range(first, recipe["steps"])
    share = slice(rank, None, arguments.processes)
    dataset = PhaseSteps(sources, tokenizer, share, phase.batch_tokens)
    ahead = prefetched(dataset, steps, phase.device) if steps else ()
    # One pass more than steps: the last one only validates and saves.
    for step, read in enumerate(chain(ahead, [None]), start=first):
        seconds = round(spent + arguments.processes * (time.process_time() - begun))
        if rank == 0 and (read is None or (step > first and step % recipe["validation"]["every"] == 0)):
            with phase.by_mean():
                figures = phase.figures(sources, tokenizer)
            log(arguments.out, "validation", step=step, seconds=seconds, **figures)
            stage = TrainingRun(recipe["name"], step, step, round(seconds / 3600, 2), {"replies": seen})
            hardware = [f"{arguments.processes} process(es), {arguments.device}"] if stage.steps else []
            made = {"recipe": recipe, **history_of(recipe["start_from"], stage, sources, hardware)}
            made |= {"rated_rows": n_rated, "validation": figures}
            with phase.by_mean():
                phase.save_weights(arguments.out / "trunk.safetensors", made=made)
        if read is None:
            break
        if rank == 0 and step > first and step % recipe.get("save_every", 500) == 0:
            save_state({**phase.state(), "step": step, "seconds": seconds, "seen": seen}, kept)
        seen += read.n_replies
        losses = phase.learn(read, rates_at(recipe, step))
        if (step + 1) % 10 == 0:
            named = zip(phase.terms, losses.tolist(), strict=True)
            log(arguments.out, "train", step=step + 1, **{task: round(value, 4) for task, value in named})


def parser_of(description: str | None, recipe: str) -> argparse.ArgumentParser:
    """The options of a phase."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpora", type=Path, required=True, help="folder of NAME/SPLIT.jsonl.gz")
    parser.add_argument("--ratings", type=Path, required=True, help="folder of SOURCE.jsonl.gz")
    parser.add_argument("--encoder", type=Path, required=True, help="folder of the base encoder")
    parser.add_argument("--out", type=Path, required=True, help="weights and log.jsonl")
    parser.add_argument("--recipe", type=Path, default=Path(__file__).parent / "recipes" / recipe)
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default="bfloat16", help="in what to compute")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--processes", type=int, default=1, help="of one thread each, on a CPU")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="override the recipe")
    return parser


def recipes_of(arguments: argparse.Namespace) -> tuple[dict[str, Any], dict[str, Any]]:
    """The recipe with what the command line overrides, and the one that names layout and corpora."""
    recipe = read_recipe(arguments.recipe)
    trunk = read_recipe(arguments.recipe.parent / f"{recipe['corpora_of']}.yaml")
    override(recipe, arguments.set)
    arguments.out.mkdir(parents=True, exist_ok=True)
    return recipe, trunk


def main() -> None:
    """Read the recipes and start the processes."""
    arguments = parser_of(__doc__, "aspects.yaml").parse_args()
    in_processes(run, arguments.processes, *recipes_of(arguments), arguments)


if __name__ == "__main__":
    main()
