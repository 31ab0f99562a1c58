"""Which conversations share text: for finding out whether what is trained on holds what is measured on.

Two signs count. A *run* is thirteen words in a row, over the borders of turns; a *pair* is two neighbouring turns of
together eight words or more, compared letter by letter. Both are taken of lower-case letters and digits, so that copies
of one corpus that differ in case, punctuation or tokenisation ("is n't", "I ’ m") are alike.

What two conversations share by chance is left: a sentence that many people say. So signs make a finding only where they
cover twenty words or more, or half of the rated conversation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Whole = NDArray[np.int64]
Keys = NDArray[np.uint64]

RUN_WORDS = 13
PAIR_WORDS = 8
#: Shared text shorter than this, and than half of the rated conversation, is a stock sentence.
STOCK_WORDS = 20

_WORD = re.compile(r"[^\W_]+")
_APOSTROPHE = re.compile(r"\s*['’‘`´]\s*")
_SPLIT_NOT = re.compile(r"\b(is|are|was|were|do|does|did|have|has|had|wo|ca|would|could|should|must|need|ai) nt\b")


def words(text: str) -> list[str]:
    """Lower-case words of letters and digits; contractions are one word, however a tokenizer took them apart."""
    return _WORD.findall(_SPLIT_NOT.sub(r"\1nt", _APOSTROPHE.sub("", text.lower())))


@dataclass(frozen=True)
class Signs:
    """The signs of some conversations: a hash each, whose it is, and which of its words it covers."""

    keys: Keys
    owners: Whole
    starts: Whole
    ends: Whole
    #: Words of each conversation.
    lengths: Whole

    def kept(self, wanted: NDArray[Any]) -> Signs:
        """Some of the signs."""
        return Signs(self.keys[wanted], self.owners[wanted], self.starts[wanted], self.ends[wanted], self.lengths)

    def first_of_each(self) -> Signs:
        """Every conversation's signs without repetitions: a sentence said twice is shared once."""
        order = np.lexsort((self.starts, self.keys, self.owners))
        keys, owners = self.keys[order], self.owners[order]
        new = np.ones(len(order), dtype=np.bool_)
        new[1:] = (keys[1:] != keys[:-1]) | (owners[1:] != owners[:-1])
        return self.kept(order[new])


def signs_of(conversations: Iterable[Sequence[str]]) -> Signs:
    """All signs of conversations, each a sequence of turns."""
    flat: list[int] = []
    lengths: list[int] = []
    pairs: list[tuple[int, int, int, int]] = []
    # A context stands beside each of its replies, so most turns come several times.
    hashed = cache(lambda turn: _hashed(words(turn)))
    for owner, turns in enumerate(conversations):
        start, before, size = 0, 0, 0
        begun = len(flat)
        for turn in turns:
            hashes, letters = hashed(turn)
            flat += hashes
            end = len(flat) - begun
            if before and letters and size + len(hashes) >= PAIR_WORDS:
                pairs.append((hash((before, letters)), owner, start - size, end))
            start, before, size = end, letters, len(hashes)
        lengths.append(len(flat) - begun)
    sizes = np.array(lengths, dtype=np.int64)
    runs = _runs(np.array(flat, dtype=np.int64).astype(np.uint64), sizes)
    table = np.array(pairs, dtype=np.int64).reshape(-1, 4)
    paired = Signs(table[:, 0].astype(np.uint64), table[:, 1], table[:, 2], table[:, 3], sizes)
    both = [np.concatenate([getattr(runs, name), getattr(paired, name)]) for name in ("keys", "owners")]
    places = [np.concatenate([getattr(runs, name), getattr(paired, name)]) for name in ("starts", "ends")]
    return Signs(both[0], both[1], places[0], places[1], sizes)


def _hashed(turn: list[str]) -> tuple[list[int], int]:
    """Hashes of the words, and one of all their letters (0 for a turn without any)."""
    return [hash(word) for word in turn], hash("".join(turn)) if turn else 0


def _runs(flat: Keys, lengths: Whole) -> Signs:
    """Polynomial hashes of every run inside one conversation, modulo 2**64."""
    owners = np.repeat(np.arange(len(lengths)), lengths)
    starts = np.arange(len(flat)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    inside = starts + RUN_WORDS <= lengths[owners]
    begins = np.flatnonzero(inside)
    keys = np.zeros(len(begins), dtype=np.uint64)
    factor = np.uint64(0x9E3779B97F4A7C15)
    for offset in range(RUN_WORDS):
        keys = keys * factor + flat[begins + offset]
    return Signs(keys, owners[begins], starts[begins], starts[begins] + RUN_WORDS, lengths)


class Index:
    """The signs of rated conversations, to be looked up by what is read."""

    def __init__(self, conversations: Iterable[Sequence[str]]) -> None:
        signs = signs_of(conversations).first_of_each()
        order = np.argsort(signs.keys, kind="stable")
        self.lengths = signs.lengths
        self._keys, self._owners = signs.keys[order], signs.owners[order]
        self._starts, self._ends = signs.starts[order], signs.ends[order]

    def shared(self, read: Signs) -> Iterator[tuple[int, int]]:
        """Every rated and read conversation, by their numbers, that share more than a stock sentence."""
        left = np.searchsorted(self._keys, read.keys, "left")
        known = left < len(self._keys)
        known[known] = self._keys[left[known]] == read.keys[known]
        read = read.kept(known).first_of_each()
        left, right = (np.searchsorted(self._keys, read.keys, side) for side in ("left", "right"))
        counts = right - left
        others = np.repeat(read.owners, counts)
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        runs = np.repeat(left, counts) + within
        for row, other, covered in _covered(self._owners[runs], others, self._starts[runs], self._ends[runs]):
            if covered >= STOCK_WORDS or 2 * covered >= self.lengths[row]:
                yield row, other


def _covered(rows: Whole, others: Whole, starts: Whole, ends: Whole) -> Iterator[tuple[int, int, int]]:
    """The words that the spans of every two conversations cover together."""
    order = np.lexsort((starts, others, rows))
    rows, others, starts, ends = rows[order], others[order], starts[order], ends[order]
    new = np.ones(len(rows), dtype=np.bool_)
    new[1:] = (rows[1:] != rows[:-1]) | (others[1:] != others[:-1])
    pair = np.cumsum(new) - 1
    # Spans of later pairs lie behind those of earlier ones, so that one running maximum serves all of them.
    far = int(ends.max(initial=0)) + 1
    reached = np.maximum.accumulate(ends + pair * far)
    before = np.where(new, 0, np.concatenate([[0], reached[:-1]]) - pair * far)
    gained = np.maximum(0, ends - np.maximum(starts, before))
    total = np.bincount(pair, gained).astype(np.int64)
    for first, covered in zip(np.flatnonzero(new).tolist(), total.tolist(), strict=True):
        yield int(rows[first]), int(others[first]), covered
