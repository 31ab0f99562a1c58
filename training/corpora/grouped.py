"""Contexts with several replies of each kind, and the labelled rows and batches made of them.

A grouped corpus holds one context a line with `positive_responses`, `adversarial_negative_responses`
(written or chosen by people to look right) and `random_negative_responses` (replies of other contexts).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

import numpy as np

from corpora.batches import Candidates, bucketed, in_shares
from corpora.dialogues import BadCorpus, find_split, open_text, read_rows
from dialeval.core.exchange import Exchange
from dialeval.io.files import parse_json

Negatives = Literal["random", "adversarial", "both"]
ReplyKind = Literal["positive", "adversarial", "random", "mined"]
T = TypeVar("T")

#: Shorter replies fit too many contexts to be drawn as wrong ones.
_FEWEST_WORDS = 3
#: A turn of this many words that two contexts share means that they are of one dialogue.
_TELLING_WORDS = 6


@dataclass(frozen=True)
class Group:
    """One context and its replies, the wrong ones by where they come from."""

    id: str
    context: tuple[str, ...]
    positives: tuple[str, ...]
    adversarial: tuple[str, ...] = ()
    random: tuple[str, ...] = ()
    #: Replies of other contexts that a search found close to this one. Nobody checked that they are wrong.
    mined: tuple[str, ...] = ()
    #: What is known of the speaker.
    facts: tuple[str, ...] = ()


@dataclass(frozen=True)
class LabelledRow:
    """One reply, whether it is valid, and of which kind it is."""

    exchange: Exchange
    valid: bool
    kind: ReplyKind


class GroupSet:
    """Groups as a source of batches: one right reply a context, the next one in the next epoch, and all wrong ones.

    Another right reply, where there is one, is the reference.
    """

    def __init__(self, groups: Sequence[Group]) -> None:
        self.groups = groups

    def __len__(self) -> int:
        return len(self.groups)

    def get(self, index: int, epoch: int = 0) -> Candidates:
        """The context with a right reply first."""
        group = self.groups[index]
        turn = epoch % len(group.positives)
        right, *others = group.positives[turn:] + group.positives[:turn]
        exchange = Exchange(context=group.context, response=right, references=tuple(others[:1]), id=group.id)
        return Candidates(exchange, (right, *group.adversarial, *group.random, *group.mined))

    def length(self, index: int) -> int:
        """Characters of the context and a reply."""
        group = self.groups[index]
        return sum(map(len, group.context)) + len(group.positives[0])


def read_groups(root: Path, name: str, split: str, *, leave_out: frozenset[str] = frozenset()) -> list[Group]:
    """All contexts of one split with a positive reply, without those in `leave_out`.

    A wrong reply that is also given as a right one contradicts itself and is dropped.
    """
    path = find_split(root, name, split)
    groups = []
    for number, row in enumerate(read_rows(path), start=1):
        where = f"{path} line {number}"
        context = _texts(row, "context", where)
        positives = _texts(row, "positive_responses", where)
        identity = str(row.get("id", f"{name}-{split}-{number}"))
        if identity in leave_out or not context or not positives:
            continue
        wrong = {
            kind: tuple(reply for reply in _texts(row, key, where) if reply not in positives)
            for kind, key in (
                ("adversarial", "adversarial_negative_responses"),
                ("random", "random_negative_responses"),
            )
        }
        groups.append(Group(identity, context, positives, **wrong))
    if not groups:
        raise BadCorpus(f"{path} holds no context with a positive response that may be trained on")
    return groups


def sharing_dialogues(path: Path, split: str, others: Sequence[str], *, corpus: str = "dailydialog_pp") -> set[str]:
    """Ids of `split` whose context comes from the same dialogue as a context of one of the `others`.

    Read from the section of an overlaps file that lists, per context, the dialogues it was found in.
    """
    with open_text(path) as stream:
        sections: Mapping[str, Any] = parse_json(stream.read()).get(corpus, {})

    def found_in(name: str) -> Iterator[tuple[str, list[str]]]:
        for section, contexts in sections.items():
            if section.startswith(f"{corpus} {name} in "):
                yield from contexts.items()

    taken = {dialogue for name in others for _, dialogues in found_in(name) for dialogue in dialogues}
    return {identity for identity, dialogues in found_in(split) if taken.intersection(dialogues)}


def hold_out(groups: Sequence[Group], share: float, seed: int) -> tuple[list[Group], list[Group]]:
    """A training part and a held-out part that share no dialogue.

    Contexts with a long turn in common are taken for one dialogue; those beside a held-out one are in neither part.
    """
    count = round(len(groups) * share)
    if not 0 < count < len(groups):
        raise ValueError(f"{share:g} of {len(groups)} contexts cannot be held out; give a share between 0 and 1")
    order = np.random.default_rng(seed).permutation(len(groups))
    held = [groups[int(index)] for index in order[:count]]
    telling = {turn for group in held for turn in _telling_turns(group)}
    kept = [groups[int(index)] for index in sorted(order[count:])]
    kept = [group for group in kept if not telling.intersection(_telling_turns(group))]
    if not kept:
        raise BadCorpus("every context shares a turn with a held-out one; give more dialogues or a smaller share")
    return kept, held


def with_random(groups: Sequence[Group], count: int, seed: int) -> list[Group]:
    """Draw random wrong replies for groups that have fewer than `count`: positives of other contexts."""
    pool = sorted({reply for group in groups for reply in group.positives if len(reply.split()) >= _FEWEST_WORDS})
    known = max(len(group.positives) + len(group.adversarial) + len(group.context) for group in groups)
    if len(pool) < 2 * (count + known):
        raise BadCorpus(f"{len(pool)} distinct replies are too few to draw {count} random ones for each context")
    filled = []
    for number, group in enumerate(groups):
        rng = np.random.default_rng([seed, number])
        random = list(group.random)
        taken = {*group.positives, *group.adversarial, *random, *group.context}
        while len(random) < count:
            reply = pool[int(rng.integers(len(pool)))]
            if reply not in taken:
                taken.add(reply)
                random.append(reply)
        filled.append(replace(group, random=tuple(random)))
    return filled


def labelled_rows(
    groups: Sequence[Group],
    *,
    negatives: Negatives = "both",
    repeat_positives: bool = True,
    adversarial_percent: float = 100.0,
    seed: int = 0,
) -> list[LabelledRow]:
    """Every reply as one row, in file order.

    With both kinds of negatives the positives are repeated until there are as many as wrong replies,
    unless `repeat_positives` is off. `adversarial_percent` keeps the adversarial and mined replies of
    that share of the contexts only; a larger share contains the smaller ones.
    """
    if negatives not in get_args(Negatives):
        raise ValueError(f"negatives is {negatives!r}; it is one of {', '.join(get_args(Negatives))}")
    if not 0 <= adversarial_percent <= 100:
        raise ValueError(f"adversarial_percent is {adversarial_percent}; it is between 0 and 100")
    order = np.random.default_rng(seed).permutation(len(groups))
    chosen = set(order[: round(len(groups) * adversarial_percent / 100)].tolist())
    rows: list[LabelledRow] = []
    for number, group in enumerate(groups):
        wrong: list[tuple[ReplyKind, str]] = []
        if negatives != "adversarial":
            wrong += [("random", reply) for reply in group.random]
        if negatives != "random" and number in chosen:
            wrong += [("adversarial", reply) for reply in group.adversarial]
            wrong += [("mined", reply) for reply in group.mined]
        times = max(1, round(len(wrong) / len(group.positives))) if repeat_positives else 1
        right: list[tuple[ReplyKind, str]] = [("positive", reply) for reply in group.positives * times]
        rows += [
            LabelledRow(
                Exchange(context=group.context, response=reply, facts=group.facts, id=group.id),
                kind == "positive",
                kind,
            )
            for kind, reply in right + wrong
        ]
    return rows


def mixed_item_batches(
    sources: Sequence[Sequence[T]],
    shares: Sequence[float],
    *,
    size: int,
    seed: int,
    length: Callable[[T], int],
    shuffle: bool = True,
) -> Iterator[list[T]]:
    """An endless, seeded stream of batches, each from one source, source `i` having `shares[i]` of them.

    A source that runs out starts over in another order. An incomplete last batch is dropped. Without
    `shuffle` a source keeps its order.
    """
    for items in sources:
        if len(items) < size:
            raise BadCorpus(f"a source of {len(items)} rows gives no batch of {size}; use a smaller batch")
    streams = [
        _batches_of(items, size, seed=seed + 1000 * number, length=length, shuffle=shuffle)
        for number, items in enumerate(sources)
    ]
    return in_shares(streams, shares, seed)


def _batches_of(
    items: Sequence[T], size: int, *, seed: int, length: Callable[[T], int], shuffle: bool
) -> Iterator[list[T]]:
    whole = len(items) - len(items) % size
    for epoch in count():
        rng = np.random.default_rng([seed, epoch])
        if shuffle:
            batches = bucketed(rng.permutation(len(items))[:whole], size, lambda index: length(items[index]), rng)
        else:
            batches = (list(range(start, start + size)) for start in range(0, whole, size))
        for batch in batches:
            yield [items[index] for index in batch]


def _texts(row: Mapping[str, Any], key: str, where: str) -> tuple[str, ...]:
    values = row.get(key, ())
    if not isinstance(values, list | tuple) or not all(isinstance(value, str) for value in values):
        raise BadCorpus(f"{where}: {key} must be a list of strings")
    return tuple(value.strip() for value in values if value.strip())


def _telling_turns(group: Group) -> set[str]:
    return {turn for turn in group.context if len(turn.split()) >= _TELLING_WORDS}
