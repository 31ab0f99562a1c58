"""An encoder learns from judges: how they rank candidates, and how they rate replies of real systems.

    python training/distil.py --teach --corpora CORPORA --ratings RATINGS --encoder FOLDER --out runs/distil
    python training/distil.py --corpora CORPORA --ratings RATINGS --encoder FOLDER --out runs/distil --processes 2

`--teach` has the teachers, embedded judges, score contexts with their candidates and replies that systems gave, part
after part into OUT/teacher; the same command goes on where it was stopped. Ratings of these replies are not read as
labels. Without it the encoder in FOLDER learns from all parts that are there, beside the tasks of
`training/aspects.py`, whose output this has too; held-out parts say how far it agrees with the teachers.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.stats import spearmanr
from torch import Tensor
from torch.nn import functional as F

from aspect_rows import PhaseStep, Row, Sources
from aspects import LastPhase, parser_of, recipes_of, run
from dialeval.core.exchange import Exchange
from dialeval.encoders.batching import PairEncoder
from dialeval.encoders.layout import PairTokenizer
from dialeval.io.files import read_json_lines, write_atomically
from dialeval.judge.network import JudgeNetwork
from dialeval.judge.rule import Matrix
from trunk import in_processes, log
from trunk_network import JUDGE_HEADS
from trunk_network import TRUNK_HEADS as HEADS

#: The task of rows that the teacher scored: no head has that name, so that no label is asked for.
TASK = "taught"


class Group(NamedTuple):
    """The replies to one context, and what the teacher's heads say of each: `[replies, heads]`."""

    exchanges: list[Exchange]
    scores: Tensor


def read_groups(folder: Path) -> dict[str, list[Group]]:
    """The teacher's scores, by split."""
    groups: dict[str, list[Group]] = {"train": [], "dev": []}
    for path in sorted(folder.glob("*.jsonl")):
        for row in read_json_lines(path):
            exchanges = [Exchange(tuple(row["context"]), reply, facts=tuple(row["facts"])) for reply in row["replies"]]
            groups[row["split"]].append(Group(exchanges, torch.tensor(row["scores"])))
    if not all(groups.values()):
        raise SystemExit(f"{folder} lacks rows to train on or held-out ones; run the same command with --teach first")
    return groups


def replies_by_context(sources: Sources, name: str, split: str) -> list[list[Exchange]]:
    """What systems said, by context, of a source that is rated; facts only where there is no context."""
    if name in sources.graded:
        read = [exchange for exchange, _ in sources.graded[name].rows[split]]
    else:
        read = [row.exchange for row in sources.of_split(name, split)]
    by_context: dict[tuple[Any, ...], dict[str, Exchange]] = {}
    for exchange in read:
        bare = Exchange(exchange.context, exchange.response, facts=() if exchange.context else exchange.facts)
        by_context.setdefault((bare.context, bare.facts), {})[bare.response] = bare
    return [list(replies.values()) for replies in by_context.values()]


class Teacher:
    """An embedded judge, and what its heads say of replies."""

    def __init__(self, name: str, settings: dict[str, Any], arguments: argparse.Namespace) -> None:
        self.network = JudgeNetwork.from_pretrained(name, device=arguments.device, dtype=arguments.dtype)
        layout = replace(self.network.config.layout, **settings["layout"])
        self.tokenizer = PairTokenizer(self.network.tokenizer, layout)
        self.engine, self.heads = PairEncoder(self.network, self.tokenizer), settings["heads"]

    def scores(self, exchanges: list[Exchange]) -> Matrix:
        """`[replies, heads]`."""
        logits = self.network.split(self.engine.encode(exchanges).rows)[1]
        return np.stack([logits[head] for head in self.heads], axis=1)


def mean_scores(scores: Sequence[Matrix]) -> Matrix:
    """What several teachers say together: the mean of their logits, those of all on the scale of the first."""
    first, *others = scores
    scaled = [
        (other - other.mean(axis=0)) / other.std(axis=0) * first.std(axis=0) + first.mean(axis=0) for other in others
    ]
    mean: Matrix = np.mean([first, *scaled], axis=0)
    return mean


def teach(recipe: dict[str, Any], trunk: dict[str, Any], arguments: argparse.Namespace) -> None:
    """Let the teachers score part after part; some are held out, and drawn from what no step reads."""
    settings = recipe["teaching"]
    teachers = [Teacher(name, settings, arguments) for name in settings["teachers"]]
    sources = Sources(recipe, trunk, arguments)
    size = 1 + sum(recipe["negatives"].values())
    held_out = [corpus for corpus in sources.held_out.values() if len(corpus)]
    replies = {
        split: [replies_by_context(sources, name, split) for name in settings["replies_of"]]
        for split in ("train", "dev")
    }
    (arguments.out / "teacher").mkdir(exist_ok=True)
    for part in range(settings["parts"]):
        path, begun = arguments.out / "teacher" / f"{part:05d}.jsonl", time.monotonic()
        if path.exists():
            continue
        draw = np.random.default_rng([recipe["seed"], part, 1])
        split = "train" if part % settings["held_out_every"] else "dev"
        if split == "train":
            groups = sources.candidates(draw, settings["contexts"], part)
            chosen = draw.integers(len(sources.long), size=2 * settings["answers"])
            long = [sources.long[int(index)] for index in chosen]
            pairs = zip(long[::2], long[1::2], strict=True)
            groups += [[answer, replace(answer, response=other.response)] for answer, other in pairs]
        else:
            sets = [held_out[int(index)] for index in draw.integers(len(held_out), size=settings["contexts"])]
            groups = [corpus.get(int(draw.integers(len(corpus)))).exchanges()[:size] for corpus in sets]
        roots = np.sqrt([len(of_source) for of_source in replies[split]])
        for number in draw.choice(len(roots), size=settings["replies"], p=roots / roots.sum()):
            group = replies[split][number][int(draw.integers(len(replies[split][number])))]
            groups.append([group[int(index)] for index in draw.permutation(len(group))[:size]])
        # Of a long reply the first part that the layout holds, for both to read the same.
        for group in groups:
            windows = teachers[0].tokenizer.windows([exchange.response for exchange in group])
            group[:] = [replace(exchange, response=parts[0]) for exchange, parts in zip(group, windows, strict=True)]
        read = [exchange for group in groups for exchange in group]
        scores = iter(mean_scores([teacher.scores(read) for teacher in teachers]).round(4).tolist())
        lines = [
            {"split": split, "context": group[0].context, "facts": group[0].facts,
             "replies": [exchange.response for exchange in group], "scores": [next(scores) for _ in group]}
            for group in groups
        ]  # fmt: skip
        write_atomically(path, map(json.dumps, lines))
        rows, seconds = sum(map(len, groups)), round(time.monotonic() - begun)
        log(arguments.out, "taught", part=part, rows=rows, seconds=seconds)


class TaughtSources(Sources):
    """The rows of the last phase, and in every step some that the teacher scored."""

    def __init__(self, recipe: dict[str, Any], trunk: dict[str, Any], arguments: argparse.Namespace) -> None:
        super().__init__(recipe, trunk, arguments)
        self.taught = read_groups(arguments.out / "teacher")

    def step(self, step: int) -> tuple[list[list[Exchange]], list[Row]]:
        """A row that was taught has for its truth its number in the group, and the group's number for its origin."""
        contexts, rows = super().step(step)
        draw = np.random.default_rng([self.recipe["seed"], step, 2])
        for index in draw.permutation(len(self.taught["train"]))[: self.counts[TASK]]:
            exchanges = self.taught["train"][int(index)].exchanges
            rows += [(TASK, exchange, float(number), str(index)) for number, exchange in enumerate(exchanges)]
        return contexts, rows


class Distillation(LastPhase):
    """The last phase with the teacher's choice among candidates, and its ratings, as two more losses."""

    terms = (*HEADS, "choice", "rating")

    def sources(self, trunk: dict[str, Any], arguments: argparse.Namespace) -> TaughtSources:
        """What the steps are drawn from, and what the teacher said."""
        sources = TaughtSources(self.recipe, trunk, arguments)
        self.groups = sources.taught
        return sources

    def losses(self, step: PhaseStep, logits: Tensor) -> dict[str, Tensor]:
        """Softened cross-entropy within a context; squared error of ratings, but for a constant, which no rank sees."""
        losses = super().losses(step, logits)
        softness, heads = self.recipe["teaching"]["softness"], self.recipe["teaching"]["heads"]
        rest = logits[len(logits) - len(step.tasks) :, [HEADS.index(JUDGE_HEADS[head]) for head in heads]]
        choices, errors = [], []
        groups: dict[str, list[int]] = {}
        for row, task in enumerate(step.tasks):
            if task == TASK:
                groups.setdefault(step.origins[row], []).append(row)
        for index, rows in groups.items():
            target = self.groups["train"][int(index)].scores[step.truth[rows].long()].to(rest.device)
            errors.append(rest[rows, 1:] - target[:, 1:])
            if len(rows) > 1:
                share = (target / softness).softmax(dim=0)
                choices.append(F.cross_entropy(rest[rows].T / softness, share.T) * softness**2)
        if choices:
            losses["choice"] = torch.stack(choices).mean()
        if errors:
            losses["rating"] = torch.cat(errors).var(dim=0, correction=0).sum()
        return losses

    @torch.inference_mode()
    def figures(self, sources: Sources, tokenizer: PairTokenizer) -> dict[str, float]:
        """Also how far the heads agree with the teacher's on what was held out."""
        figures, groups = super().figures(sources, tokenizer), self.groups["dev"]
        read = [exchange for group in groups for exchange in group.exchanges]
        logits = self.logits(tokenizer.pairs(read), tokenizer.pad_id).cpu()
        targets = torch.cat([group.scores for group in groups])
        for number, head in enumerate(JUDGE_HEADS[name] for name in self.recipe["teaching"]["heads"]):
            scores = logits[:, HEADS.index(head)]
            figures[f"teacher_{head}"] = round(float(spearmanr(scores, targets[:, number]).statistic), 4)
            parts = zip(torch.split(scores, [len(group.scores) for group in groups]), groups, strict=True)
            same = [float(part.argmax() == group.scores[:, number].argmax()) for part, group in parts if len(part) > 1]
            figures[f"teacher_{head}_first"] = round(float(np.mean(same)), 4)
        return figures


def main() -> None:
    """Teach, or learn."""
    parser = parser_of(__doc__, "distil.yaml")
    parser.add_argument("--teach", action="store_true", help="have the teachers score rows, and train nothing")
    arguments = parser.parse_args()
    recipe, trunk = recipes_of(arguments)
    if arguments.teach:
        teach(recipe, trunk, arguments)
    else:
        in_processes(run, arguments.processes, recipe, trunk, arguments, Distillation)


if __name__ == "__main__":
    main()
