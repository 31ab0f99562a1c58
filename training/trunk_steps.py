"""What the shared encoder is trained on, step by step, and what is held out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar
from zlib import crc32

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from corpora.batches import CandidateSet
from corpora.dialogues import CorpusDialogue, overlapping_ids, read_corpus
from corpora.negatives import NegativeCounts
from dialeval.encoders.batching import collate, token_batches
from dialeval.encoders.layout import PairTokenizer, TokenPair

#: Pairs that go through the encoder together: their numbers among all, and the tensors.
Batch = tuple[Tensor, dict[str, Tensor]]
Step = TypeVar("Step")


def read_sets(recipe: dict[str, Any], root: Path) -> tuple[dict[str, CandidateSet], dict[str, CandidateSet]]:
    """Training contexts and held-out ones by corpus; which dialogues are held out follows from their ids."""
    leave_out = overlapping_ids(root / recipe["leave_out"])
    train, held_out = {}, {}
    share, candidates = recipe["validation"]["dialogues"], recipe["validation"]["candidates"]
    few = NegativeCounts(**recipe["negatives"])
    many = NegativeCounts(random=candidates - 3, same_dialogue=1, shared_word=1)
    wanted = {name for stage in recipe["stages"] for name in stage["corpora"]}
    for name, splits in recipe["corpora"].items():
        if name not in wanted:
            continue
        dialogues = [dialogue for split in splits for dialogue in read_corpus(root, name, split, leave_out=leave_out)]
        kept = [dialogue for dialogue in dialogues if not _is_held_out(dialogue, share)]
        others = [dialogue for dialogue in dialogues if _is_held_out(dialogue, share)]
        train[name] = CandidateSet(kept, few, seed=recipe["seed"], fact_share=recipe["facts_share"])
        held_out[name] = CandidateSet(others, many, seed=recipe["seed"], fact_share=0.5)
    return train, held_out


def _is_held_out(dialogue: CorpusDialogue, share: float) -> bool:
    return crc32(dialogue.id.encode()) % 10_000 < share * 10_000


class Steps(Dataset[list[Batch]]):
    """Step by number: this process's share of its contexts, each with its candidates in a row, the true one first."""

    def __init__(
        self,
        recipe: dict[str, Any],
        sets: dict[str, CandidateSet],
        tokenizer: PairTokenizer,
        share: slice,
        batch_tokens: int,
    ) -> None:
        self.recipe, self.sets, self.tokenizer, self.share = recipe, sets, tokenizer, share
        self.batch_tokens = batch_tokens
        self.ends = np.cumsum([stage["contexts"] for stage in recipe["stages"]])
        self.shares = [corpus_shares(stage, sets) for stage in recipe["stages"]]

    def __getitem__(self, step: int) -> list[Batch]:
        size = self.recipe["batch_contexts"]
        stage = min(int(np.searchsorted(self.ends, step * size, side="right")), len(self.ends) - 1)
        names, shares = self.shares[stage]
        rng = np.random.default_rng([self.recipe["seed"], step])
        drawn = []
        for name in rng.choice(len(names), size=size, p=shares):
            corpus = self.sets[names[name]]
            drawn.append(corpus.get(int(rng.integers(len(corpus))), epoch=step))
        pairs = self.tokenizer.pairs([exchange for corpus in drawn for exchange in corpus.exchanges()])
        each = len(pairs) // size
        grouped = [pairs[start : start + each] for start in range(0, len(pairs), each)]
        grouped.sort(key=lambda group: sum(len(pair.ids) for pair in group))
        kept = [pair for group in grouped[self.share] for pair in group]
        return padded(kept, self.tokenizer.pad_id, self.batch_tokens)


def prefetched(steps: Dataset[Step], wanted: range, device: torch.device) -> DataLoader[Step]:
    """The wanted steps in order; for a GPU other processes make them, ahead of time."""
    on_gpu = device.type == "cuda"
    return DataLoader(steps, sampler=wanted, batch_size=None, num_workers=8 if on_gpu else 0, pin_memory=on_gpu)


def corpus_shares(stage: dict[str, Any], sets: dict[str, CandidateSet]) -> tuple[list[str], Any]:
    """The corpora of a stage, and how often each is drawn: by the root of its contexts, doubled ones twice as often."""
    names = stage["corpora"]
    weights = np.array([len(sets[name]) ** 0.5 * (2 if name in stage.get("doubled", ()) else 1) for name in names])
    return names, weights / weights.sum()


def padded(pairs: Sequence[TokenPair], pad_id: int, batch_tokens: int) -> list[Batch]:
    """As tensors, neighbours in length together, as many as stay within the budget when padded."""
    return [
        (torch.tensor(batch), collate([pairs[number] for number in batch], pad_id, segment_ids=False))
        for batch in token_batches([len(pair.ids) for pair in pairs], batch_tokens)
    ]
