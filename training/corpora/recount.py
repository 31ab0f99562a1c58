"""Counts which rows of the benchmarks stand in dialogues that are trained on."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from corpora.overlap import Index, Signs, signs_of

if TYPE_CHECKING:
    from dialeval.benchmarks import BenchmarkInfo

Turns = tuple[str, ...]
#: Leaked rows by benchmark, and for each the dialogues that hold them.
Leaks = dict[str, dict[str, set[str]]]


class Recount:
    """The rated conversations of some benchmarks, to be looked for in what is read."""

    def __init__(
        self,
        names: Sequence[str] | None = None,
        *,
        mirror: str | os.PathLike[str] | None = None,
        tell: Callable[[str], None] = lambda name: None,
    ) -> None:
        from dialeval import benchmarks

        texts: dict[Turns, list[tuple[str, str]]] = {}
        for name in benchmarks.available() if names is None else names:
            tell(name)
            data = benchmarks.load(name, mirror=mirror)
            for row in data.dataset:
                for text in conversations_of(row, data.info):
                    texts.setdefault(text, []).append((data.info.name, row["id"]))
        self.rows = list(texts.values())
        self.index = Index(texts)

    def leaks(self, dialogues: Iterable[tuple[str, Sequence[Turns]]]) -> Leaks:
        """The rows that stand in dialogues, each an id and one or several texts of it (a context with each reply)."""
        ids: list[str] = []
        owners: list[int] = []
        texts: list[Turns] = []
        for number, (identity, versions) in enumerate(dialogues):
            ids.append(identity)
            owners += [number] * len(versions)
            texts += versions
        signs = signs_of(texts)
        of_dialogue = np.array(owners, dtype=np.int64)[signs.owners]
        read = Signs(signs.keys, of_dialogue, signs.starts, signs.ends, signs.lengths)
        leaks: Leaks = {}
        for rated, number in self.index.shared(read):
            for benchmark, row in self.rows[rated]:
                leaks.setdefault(benchmark, {}).setdefault(row, set()).add(ids[number])
        return leaks


def conversations_of(row: Mapping[str, Any], info: BenchmarkInfo) -> set[Turns]:
    """What people wrote of a row: its context, with the reply and the references where these are theirs; the dialogue.

    What a system said is left out: a retrieval system's reply is a sentence of its own training data.
    """
    if info.level == "dialogue":
        return {tuple(row["dialogue"])}
    context = tuple(row["context"])
    replies = list(row["references"])
    if info.kind == "pairs" or row.get("kind_of_reply") == "positive" or row["system"] in info.human_systems:
        replies.append(row["response"])
    conversations = {(*context, reply) for reply in replies} or {context}
    return conversations | {tuple(row["adversarial_context"])} if info.kind == "pairs" else conversations


def merged(*parts: Leaks) -> Leaks:
    """What several corpora leak together."""
    together: Leaks = {}
    for leaks in parts:
        for benchmark, rows in leaks.items():
            for row, dialogues in rows.items():
                together.setdefault(benchmark, {}).setdefault(row, set()).update(dialogues)
    return together
