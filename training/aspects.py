"""The last phase of the shared encoder: it learns from ratings, and to see the faults that the judge names.

    python training/aspects.py --corpora CORPORA --ratings RATINGS --encoder FOLDER --out runs/aspects --processes 2
    python training/aspects.py --corpora CORPORA --ratings RATINGS --encoder FOLDER --out runs/aspects-faults \
        --processes 2 --recipe training/recipes/aspects-faults.yaml

One head a task on the first token: which reply is next, which of two replies people rated higher, is it a valid
reply, is it sound English, do the facts bear it out, does it agree with what its speaker said, is it civil. Every step
holds rows of all tasks; the rate falls to zero. OUT/trunk.safetensors holds encoder and heads in float16, OUT/log.jsonl
the losses and, on held-out rows of each task, AUC, rank correlation, or accuracy and loss among ten. A recipe of no
steps keeps the mean of what it begins from.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
import yaml
from safetensors import safe_open
from scipy.stats import spearmanr
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import AutoTokenizer

from common import read_recipe, recounted
from corpora.faults import DAMAGES, Draw, civil, contradicted, damage, insulting, statement_of
from corpora.grouped import Group
from corpora.ratings import Rated, overlapping_ratings, read_ratings
from dialeval.approaches.row_signs import own_turns
from dialeval.engine.formatting import PairFormat, PairTokenizer
from dialeval.exchange import Exchange
from dialeval.statistics.discrimination import auc
from dialeval.weights.config import CheckpointConfig
from dialeval.weights.find import find_checkpoint
from history import TrainingRun, joined, stages_of
from stages import split_groups
from starts import mean_weights
from trunk import Trainer, commit, in_processes, log
from trunk_network import TRUNK_HEADS as HEADS
from trunk_network import next_reply_loss
from trunk_steps import corpus_shares, read_sets

FAULTS = (*DAMAGES, "glued")
#: Sources with right and wrong rows, the task that each of them is for, and the score that says so.
RATED = {"begin": ("faithful", "attributable"), "convabuse": ("respectful", "respectful")}
#: What `corpora.dialogues` puts before the facts of a speaker.
PERSONA = "your persona: "

#: A row of a task: what is read, what the head of the task is to say, and (ratings) where it comes from.
Row = tuple[str, Exchange, float, str]


class Sources:
    """Rows of every task by step, training or held-out ones."""

    def __init__(self, recipe: dict[str, Any], trunk: dict[str, Any], arguments: argparse.Namespace) -> None:
        self.recipe = recipe
        self.train, self.held_out = read_sets(trunk | {"negatives": recipe["negatives"]}, arguments.corpora)
        self.names, self.shares = corpus_shares(trunk["stages"][-1], self.train)
        rated = recipe["ratings"]
        unwanted = overlapping_ratings(arguments.ratings / rated["leave_out"]) | frozenset(recounted()["leave_out"])
        self.rated = rated["train"]
        self.ratings: dict[tuple[str, str], list[Rated]] = {}
        for name in (*self.rated, *rated["labelled"]):
            rows = read_ratings(arguments.ratings, name, leave_out=unwanted)
            for split in ("train", "dev"):
                self.ratings[name, split] = [row for row in rows if row.split == split]
        self.groups, self.held_groups = split_groups(recipe, arguments.corpora) if recipe["rows"]["valid"] else ([], [])

    def of_split(self, name: str, split: str) -> list[Rated]:
        """Rated rows of one source."""
        return self.ratings[name, split]

    def candidates(self, draw: Draw, count: int, step: int) -> list[list[Exchange]]:
        """Contexts of all corpora, each with its candidates, the true one first."""
        drawn = []
        for number in draw.choice(len(self.names), size=count, p=self.shares):
            one = self.train[self.names[number]]
            drawn.append(one.get(int(draw.integers(len(one))), epoch=step).exchanges())
        return drawn

    def step(self, step: int) -> tuple[list[list[Exchange]], list[Row]]:
        """Contexts with their candidates, and the rows of all other tasks."""
        draw = np.random.default_rng([self.recipe["seed"], step])
        counts = self.recipe["rows"]
        contexts = self.candidates(draw, counts["contexts"], step)
        rows: list[Row] = []
        # In one source at a time, so that pairs can be compared; in turn, by the root of their size.
        roots = np.sqrt([len(self.of_split(name, "train")) for name in self.rated])
        source = self.rated[int(draw.choice(len(self.rated), p=roots / roots.sum()))]
        chosen = self.of_split(source, "train")
        for at in draw.integers(len(chosen), size=counts["rated"]):
            row = chosen[int(at)]
            known = replace(row.exchange, facts=()) if row.exchange.context else row.exchange
            rows.append(("rated", known, rating_of(row), source))
        rows += self.valid_rows(draw, self.groups, counts["valid"])
        rows += faulty_rows(draw, contexts, counts)
        for name, (task, score) in RATED.items():
            there = self.of_split(name, "train")
            for at in draw.integers(len(there), size=counts[name]):
                if score in there[int(at)].scores:
                    rows.append((task, there[int(at)].exchange, float(there[int(at)].scores[score] > 0.7), name))
        return contexts, rows

    @staticmethod
    def valid_rows(draw: Draw, groups: Sequence[Group], count: int) -> list[Row]:
        """Of one context a right reply, an adversarial and a random one."""
        rows: list[Row] = []
        while groups and len(rows) < count:
            group = groups[int(draw.integers(len(groups)))]
            kinds = ((group.positives, 1.0), (group.adversarial, 0.0), (group.random, 0.0))
            for replies, right in kinds:
                if replies:
                    reply = replies[int(draw.integers(len(replies)))]
                    rows.append(("valid", Exchange(context=group.context, response=reply), right, "dailydialog_pp"))
        return rows


def rating_of(row: Rated) -> float:
    """The share of people who could go on after this reply, which the sources of the recipe asked for."""
    return row.scores["no_breakdown"]


def faulty_rows(
    draw: Draw, contexts: Sequence[Sequence[Exchange]], counts: dict[str, int], *, held_out: bool = False
) -> list[Row]:
    """Sound replies and ones with a fault. Wrong replies are as fluent and civil as right ones, so both are read."""
    rows: list[Row] = []
    made = 0
    for number in range(20 * counts["fluent"]):
        if made >= counts["fluent"]:
            break
        candidates = contexts[int(draw.integers(len(contexts)))]
        one = candidates[int(draw.integers(len(candidates)))]
        kind = FAULTS[number % len(FAULTS)]
        broken = damage(one.response, kind, draw)
        if broken:
            rows += [("fluent", one, 1.0, ""), ("fluent", replace(one, response=broken), 0.0, kind)]
            made += 2
    for _ in range(counts["insults"] // 2):
        candidates = contexts[int(draw.integers(len(contexts)))]
        one = candidates[int(draw.integers(len(candidates)))]
        rude = replace(one, response=insulting(one.response, draw, held_out=held_out))
        if draw.random() < 0.5:  # no word is rude by itself
            one = replace(one, response=civil(one.response, draw, held_out=held_out))
        rows += [("respectful", one, 1.0, ""), ("respectful", rude, 0.0, "insult")]
    for task, count in (("consistent", counts["consistent"]), ("faithful", counts["faithful"])):
        made = 0
        for _ in range(30 * count):
            if made >= count:
                break
            one = contexts[int(draw.integers(len(contexts)))][0]
            # What a speaker knows of themselves stands behind "your persona:" in the corpora.
            said = own_turns(one) if task == "consistent" else [fact.removeprefix(PERSONA) for fact in one.facts]
            statements = [found for text in said if (found := statement_of(text))]
            if not statements:
                continue
            kept = statements[int(draw.integers(len(statements)))]
            otherwise = contradicted(kept, draw)
            if otherwise is None or otherwise == kept:
                continue
            reply = (lambda text: text) if draw.random() < 0.5 else (lambda text, one=one: f"{one.response} {text}")
            # Half of the time the denied form is what was said before, so that a denial alone tells nothing.
            if draw.random() < 0.5 and task == "consistent":
                swapped = tuple(turn.replace(kept, otherwise) for turn in one.context)
                one, kept, otherwise = replace(one, context=swapped), otherwise, kept
            elif draw.random() < 0.5 and task == "faithful":
                swapped = tuple(fact.replace(kept, otherwise) for fact in one.facts)
                one, kept, otherwise = replace(one, facts=swapped), otherwise, kept
            rows += [(task, replace(one, response=reply(kept)), 1.0, ""), (task, one, 1.0, "")]
            rows += [(task, replace(one, response=reply(otherwise)), 0.0, "contradicted")]
            made += 3
    return rows


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

    def __init__(self, recipe: dict[str, Any], encoder: Path, dtype: torch.dtype, device: torch.device) -> None:
        super().__init__(recipe, encoder, dtype, device, heads=len(HEADS))
        heads = list(self.master.head.parameters())
        tuned = [one for one in self.weights if not any(one is head for head in heads)]
        self.optimizer = torch.optim.AdamW(
            [{"params": tuned}, {"params": heads}], lr=0.0, betas=tuple(recipe["betas"]),
            weight_decay=recipe["weight_decay"], fused=True,
        )  # fmt: skip

    def begin(self, starts: Sequence[str]) -> None:
        """Take over the mean of some encoders, and of each head the mean of those that have it; others are zero."""
        means = mean_weights(starts)
        self.master.load_state_dict({name: one for name, one in means.items() if "head" not in name}, strict=False)
        nn.init.zeros_(self.master.head.weight)
        nn.init.zeros_(self.master.head.bias)
        with torch.no_grad():
            for number, head in enumerate(HEADS):
                if f"head.{head}" in means:
                    row = means[f"head.{head}"]
                    self.master.head.weight[number], self.master.head.bias[number] = row[:-1], row[-1]
        self.copy_weights()

    def learn(
        self, contexts: list[list[Exchange]], rows: list[Row], tokenizer: PairTokenizer, rates: Sequence[float]
    ) -> dict[str, float]:
        """One step over all tasks; the loss of each."""
        exchanges = [one for candidates in contexts for one in candidates]
        pairs = tokenizer.pairs([*exchanges, *(row[1] for row in rows)])
        logits = self.logits(pairs, tokenizer.pad_id)
        following = logits[: len(exchanges), HEADS.index("next")].view(len(contexts), -1)
        losses = {"next": next_reply_loss(following, self.recipe["binary_weight"]).mean()}
        rest, truth = logits[len(exchanges) :], torch.tensor([row[2] for row in rows], device=logits.device)
        for number, task in enumerate(HEADS[1:], start=1):
            chosen = torch.tensor([at for at, row in enumerate(rows) if row[0] == task], dtype=torch.long)
            if not len(chosen):
                continue
            said, wanted = rest[chosen, number], truth[chosen]
            ranked = task == "rated"
            losses[task] = (
                ranking_loss(said, wanted, self.recipe["least_gap"]) if ranked else balanced_loss(said, wanted)
            )
        share = dist.get_world_size() if dist.is_initialized() else 1
        whole = torch.stack([self.recipe["weights"][task] * loss for task, loss in losses.items()]).sum() / share
        none = whole.new_zeros(())
        found = torch.stack([losses[task].detach() if task in losses else none for task in HEADS]) / share
        figures = self.update(whole, found, rates)
        return {task: round(float(value), 4) for task, value in zip(HEADS, figures, strict=True)}

    @torch.inference_mode()
    def figures(self, sources: Sources, tokenizer: PairTokenizer) -> dict[str, float]:
        """On held-out rows of each task: accuracy among ten, rank correlation, AUC (by kind of damage, too)."""
        settings = self.recipe["validation"]
        found: dict[str, float] = {}

        def said(rows: Sequence[Exchange], *heads: str) -> Any:
            logits = self.logits(tokenizer.pairs(list(rows)), tokenizer.pad_id).cpu().numpy()
            return [logits[:, HEADS.index(head)] for head in heads]

        hits, losses, contexts = [], [], []
        for one in sources.held_out.values():
            chosen = np.random.default_rng(2026).permutation(len(one))[: settings["contexts"]]
            own = [one.get(int(at)).exchanges() for at in chosen]
            (scores,) = said([each for candidates in own for each in candidates], "next")
            scores = scores.reshape(len(own), -1)
            hits.append(float((scores[:, 0] > scores[:, 1:].max(axis=1)).mean()))
            losses.append(float(next_reply_loss(torch.from_numpy(scores), 0.0).mean()))
            contexts += [candidates[:4] for candidates in own]
        found["next_accuracy"], found["next_loss"] = float(np.mean(hits)), float(np.mean(losses))
        for name in sources.rated:
            dev = sources.of_split(name, "dev")[: settings["rows"] * 2]
            truth = [rating_of(row) for row in dev]
            plain = [replace(row.exchange, facts=()) if row.exchange.context else row.exchange for row in dev]
            for head, scores in zip(("rated", "next"), said(plain, "rated", "next"), strict=True):
                found[f"{name}_{head}"] = float(spearmanr(scores, truth).statistic)
        draw = np.random.default_rng(7)
        many = dict.fromkeys(("fluent", "insults", "consistent", "faithful"), settings["rows"])
        rows = faulty_rows(draw, contexts, many, held_out=True)
        rows += sources.valid_rows(draw, sources.held_groups, settings["rows"])
        for name, (task, score) in RATED.items():
            there = [row for row in sources.of_split(name, "dev") if score in row.scores][: settings["rows"]]
            rows += [(task, row.exchange, float(row.scores[score] > 0.7), name) for row in there]
        for task in HEADS[2:]:
            own_rows = [row for row in rows if row[0] == task]
            if not own_rows:
                continue
            (scores,) = said([row[1] for row in own_rows], task)
            right = np.array([row[2] for row in own_rows])
            kinds = sorted({row[3] for row in own_rows if row[3]})
            rated = [name for name in kinds if name in RATED]
            plain_rows = np.array([row[3] not in rated for row in own_rows])
            found[f"{task}_auc"] = float(auc(right[plain_rows], scores[plain_rows]).value)
            for kind in kinds:
                of_kind = np.array([row[3] == kind for row in own_rows])
                beside = of_kind if kind in rated else of_kind | (right == 1) & plain_rows
                if task != "valid" and 0 < right[beside].mean() < 1:
                    found[f"{task}_{kind}_auc"] = float(auc(right[beside], scores[beside]).value)
        # No corpus has rows of every kind.
        return {name: round(value, 4) for name, value in found.items() if value == value}


def history_of(starts: Sequence[str], own: TrainingRun, sources: Sources) -> dict[str, Any]:
    """The stages of what a run began from and its own, and the corpora of all."""
    stages, corpora = [], [*sources.names, *(["dailydialog_pp"] if sources.groups else [])]
    for start in starts:
        if start.endswith(".safetensors"):
            with safe_open(start, framework="pt") as stored:
                said = {name: json.loads(text) for name, text in stored.metadata().items()}
            training = said.get("made") or trunk_history(said["stood"])
        else:
            training = CheckpointConfig.read(find_checkpoint(start, default=start).folder).training
        stages.append(stages_of(training))
        corpora += training["corpora"]
    return {
        # The own run counts even where it is as long as an earlier one.
        "stages": [asdict(one) for one in (*joined(*stages), *([own] if own.steps else []))],
        "corpora": list(dict.fromkeys(corpora)),
    }


def trunk_history(stood: dict[str, Any]) -> dict[str, Any]:
    """What a run of `training/trunk.py` is, in the form of a checkpoint's record."""
    run = TrainingRun("trunk", stood["step"], stood["step"], round(stood["seconds"] / 3600, 2))
    return {"stages": [asdict(run)], "corpora": []}


def rates_at(recipe: dict[str, Any], step: int) -> list[float]:
    """Of the encoder and the heads: up during the warm-up, then down to zero."""
    share = min(1.0, (step + 1) / recipe["warmup"]) * (recipe["steps"] - step) / recipe["steps"]
    return [float(recipe["encoder_rate"]) * share, float(recipe["head_rate"]) * share]


def run(rank: int, recipe: dict[str, Any], trunk: dict[str, Any], arguments: argparse.Namespace) -> None:
    """All steps in one of the processes."""
    torch.set_flush_denormal(True)
    if arguments.processes > 1:
        torch.set_num_threads(1)
        dist.init_process_group("gloo", rank=rank, world_size=arguments.processes)
    phase = LastPhase(recipe, arguments.encoder, getattr(torch, arguments.dtype), torch.device(arguments.device))
    phase.begin(recipe["start_from"])
    tokenizer = PairTokenizer(AutoTokenizer.from_pretrained(arguments.encoder), PairFormat(**trunk["layout"]))
    sources = Sources(recipe, trunk, arguments)
    rated = {name: len(rows) for (name, split), rows in sources.ratings.items() if split == "train"}
    log(arguments.out, "start", commit=commit(), recipe=recipe, rated_rows=rated)
    begun, seen = time.process_time(), 0
    share = slice(rank, None, arguments.processes)
    for step in range(recipe["steps"] + 1):
        last = step == recipe["steps"]
        if rank == 0 and (last or (step > 0 and step % recipe["validation"]["every"] == 0)):
            seconds = round(arguments.processes * (time.process_time() - begun))
            figures = phase.figures(sources, tokenizer)
            log(arguments.out, "validation", step=step, seconds=seconds, **figures)
            own = TrainingRun(recipe["name"], step, step, round(seconds / 3600, 2), {"replies": seen})
            made = {"recipe": recipe, **history_of(recipe["start_from"], own, sources), "rated_rows": rated}
            made |= {"validation": figures, "hardware": f"{arguments.processes} process(es), {arguments.device}"}
            phase.save_weights(arguments.out / "trunk.safetensors", made=made)
        if last:
            break
        contexts, rows = sources.step(step)
        seen += sum(len(candidates) for candidates in contexts) + len(rows)
        losses = phase.learn(contexts[share], rows[share], tokenizer, rates_at(recipe, step))
        if (step + 1) % 10 == 0:
            log(arguments.out, "train", step=step + 1, **losses)


def main() -> None:
    """Read the recipes and start the processes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    recipes = Path(__file__).parent / "recipes"
    parser.add_argument("--corpora", type=Path, required=True, help="folder of NAME/SPLIT.jsonl.gz")
    parser.add_argument("--ratings", type=Path, required=True, help="folder of SOURCE.jsonl.gz")
    parser.add_argument("--encoder", type=Path, required=True, help="folder of the base encoder")
    parser.add_argument("--out", type=Path, required=True, help="weights and log.jsonl")
    parser.add_argument("--recipe", type=Path, default=recipes / "aspects.yaml")
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default="bfloat16", help="in what to compute")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--processes", type=int, default=1, help="of one thread each, on a CPU")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="override the recipe")
    arguments = parser.parse_args()
    recipe = read_recipe(arguments.recipe)
    trunk = read_recipe(arguments.recipe.parent / f"{recipe['corpora_of']}.yaml")
    recipe.update({name: yaml.safe_load(value) for name, value in (one.split("=", 1) for one in arguments.set)})
    arguments.out.mkdir(parents=True, exist_ok=True)
    in_processes(run, arguments.processes, recipe, trunk, arguments)


if __name__ == "__main__":
    main()
