"""Candidate replies that are wrong: random ones as in the papers, and harder kinds as options.

Everything is drawn from a generator seeded by (seed, pair number), so that a pair's candidates do
not depend on batches, processes or where a run was resumed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from corpora.dialogues import BadCorpus, CorpusDialogue

_WORD = re.compile(r"[a-z]{4,}")
#: A word in more replies than this says little about the topic.
_COMMON = 400


@dataclass(frozen=True)
class NegativeCounts:
    """How many negatives of each kind a context gets."""

    random: int = 15
    #: Another turn of the same dialogue: right topic, wrong moment.
    same_dialogue: int = 0
    #: A reply of another dialogue that shares a rare word with the context.
    shared_word: int = 0
    #: The true reply with its words shuffled, repeated or cut.
    corrupted: int = 0

    @property
    def total(self) -> int:
        """Negatives per context."""
        return self.random + self.same_dialogue + self.shared_word + self.corrupted


class NegativeSampler:
    """Draws negatives for the turns of one corpus from the same corpus, so that style gives nothing away."""

    def __init__(self, dialogues: Sequence[CorpusDialogue], counts: NegativeCounts) -> None:
        self.counts = counts
        self.replies = sorted({turn for dialogue in dialogues for turn in dialogue.turns})
        if len(self.replies) <= counts.total + max(len(dialogue.turns) for dialogue in dialogues):
            raise BadCorpus(
                f"{len(self.replies)} distinct utterances are too few to draw {counts.total} negatives from"
            )
        self._postings = _index(self.replies) if counts.shared_word else {}

    def draw(self, dialogue: CorpusDialogue, turn: int, rng: np.random.Generator) -> list[str]:
        """Negatives for turn `turn`, no two alike and none the answer; the context's turns as echoes only."""
        taken = {*dialogue.turns[: turn + 1]}
        drawn: list[str] = []

        def add(count: int, propose: Callable[[], str | None]) -> None:
            wanted = len(drawn) + count
            for _ in range(20 * count):
                if len(drawn) == wanted:
                    return
                reply = propose()
                if reply is not None and reply.strip() and reply not in taken:
                    taken.add(reply)
                    drawn.append(reply)

        add(self.counts.shared_word, lambda: self._sharing_a_word(dialogue.turns[:turn], rng))
        add(self.counts.corrupted, lambda: corrupt(dialogue.turns[turn], rng))
        # An echo of the context is a wrong reply too, so here the context's own turns are allowed.
        # What was drawn already, or stands in the dialogue more than once, comes in once.
        echoes = [reply for reply in dict.fromkeys(dialogue.turns) if reply not in {dialogue.turns[turn], *drawn}]
        chosen = [echoes[int(index)] for index in rng.permutation(len(echoes))[: self.counts.same_dialogue]]
        drawn.extend(chosen)
        taken.update(chosen)
        add(self.counts.total - len(drawn), lambda: self.replies[int(rng.integers(len(self.replies)))])
        return drawn

    def shares_word(self, context: Sequence[str], reply: str) -> bool:
        """Whether a reply shares a rare word with the context, as the kind `shared_word` does unless there is none."""
        return not self._rare_words(context).isdisjoint(_WORD.findall(reply.lower()))

    def _sharing_a_word(self, context: Sequence[str], rng: np.random.Generator) -> str | None:
        words = sorted(self._rare_words(context))
        if not words:
            return None
        posting = self._postings[words[int(rng.integers(len(words)))]]
        return self.replies[posting[int(rng.integers(len(posting)))]]

    def _rare_words(self, context: Sequence[str]) -> set[str]:
        """Words of the last two turns that other replies have as well, but few of them."""
        return {word for text in context[-2:] for word in _WORD.findall(text.lower()) if word in self._postings}


def corrupt(reply: str, rng: np.random.Generator) -> str | None:
    """A reply damaged as weak generators damage theirs; None if it is too short to tell."""
    words = reply.split()
    if len(words) < 4:
        return None
    kind = int(rng.integers(4))
    if kind == 0:
        rng.shuffle(words)
    elif kind == 1:
        start = int(rng.integers(len(words) - 2))
        span = words[start : start + int(rng.integers(1, 4))]
        words[start:start] = span * int(rng.integers(1, 3))
    elif kind == 2:
        words = words[: max(2, len(words) * int(rng.integers(3, 7)) // 10)]
    else:
        kept = sorted(rng.permutation(len(words))[: max(2, len(words) * int(rng.integers(5, 8)) // 10)])
        words = [words[place] for place in kept]
    damaged = " ".join(words)
    return damaged if damaged != reply else None


def _index(replies: Sequence[str]) -> dict[str, list[int]]:
    postings: dict[str, list[int]] = {}
    for number, reply in enumerate(replies):
        for word in set(_WORD.findall(reply.lower())):
            postings.setdefault(word, []).append(number)
    return {word: posting for word, posting in postings.items() if 2 <= len(posting) <= _COMMON}
