"""Would the metrics gain by reading more of a long conversation? R@1 among eight replies, by the tokens that are read.

    python training/lengths.py --corpora CORPORA --out results/training/lengths.json

Contexts are the last ones of held-out conversations (Topical-Chat) that an embedded checkpoint has to cut. Wrong
replies are from other conversations, or else from earlier in the same one, which only the part that is cut may show.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import track

import dialeval
from common import left_out
from dialeval.approaches.learned import LearnedMetric
from dialeval.corpora.batches import Candidates, CandidateSet
from dialeval.corpora.dialogues import CorpusDialogue, read_corpus
from dialeval.corpora.negatives import NegativeCounts

LENGTHS = (160, 256)
METRICS = ("density", "deb", "judge")
KINDS = {
    "other dialogues": NegativeCounts(random=7, same_dialogue=0, shared_word=0, corrupted=0),
    "same dialogue": NegativeCounts(random=0, same_dialogue=7, shared_word=0, corrupted=0),
}
#: A resampled context is a resampled dialogue, since each gives one.
RESAMPLES = 10_000


def long_candidates(dialogues: list[CorpusDialogue], metric: LearnedMetric, kind: str, count: int) -> list[Candidates]:
    """The last long context of each dialogue, with the true reply first."""
    drawn = CandidateSet(dialogues, KINDS[kind], seed=7)
    last = {number: index for index, (number, _) in enumerate(drawn.turns)}
    found = []
    for index in last.values():
        one = drawn.get(index)
        if metric.score_exchanges([one.exchange]).n_truncated:
            found.append(one)
        if len(found) == count:
            break
    return found


def hits(metric: dialeval.Metric, drawn: list[Candidates]) -> np.ndarray:
    """Which contexts have the true reply on top; a tie is lost."""
    values = metric.score_exchanges([row for one in drawn for row in one.exchanges()]).values.reshape(len(drawn), -1)
    return np.asarray(values[:, 0] > values[:, 1:].max(axis=1))


def main() -> None:
    """Score, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpora", required=True, type=Path, help="folder with NAME/SPLIT.jsonl.gz of each corpus")
    parser.add_argument("--out", type=Path, help="JSON file for the table")
    parser.add_argument("--contexts", type=int, default=100, help="how many conversations (default: %(default)s)")
    arguments = parser.parse_args()
    away = left_out({"leave_out": "overlaps.json.gz"}, arguments.corpora)
    dialogues = read_corpus(arguments.corpora, "topical_chat", "test", leave_out=away)
    console, table = Console(stderr=True), []
    steps = [(name, kind) for name in METRICS for kind in KINDS]
    for name, kind in track(steps, description="scoring", console=console):
        usual = dialeval.load(name)
        drawn = long_candidates(dialogues, usual, kind, arguments.contexts)
        found = {length: hits(dialeval.load(name, max_length=length), drawn) for length in LENGTHS}
        draws = np.random.default_rng(0).integers(len(drawn), size=(RESAMPLES, len(drawn)))
        now = found[usual.layout.max_length].astype(float)
        for length, right in found.items():
            gains = (right - now)[draws].mean(axis=1)
            low, high = np.quantile(gains, [0.025, 0.975])
            figures = {"r1": right.mean(), "gain": (right - now).mean(), "low": low, "high": high}
            row = {"metric": name, "wrong replies from": kind, "tokens": length, "contexts": len(drawn)}
            table.append(row | {key: round(float(value), 4) for key, value in figures.items()})
            print(json.dumps(table[-1]), flush=True)
    if arguments.out is not None:
        arguments.out.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
