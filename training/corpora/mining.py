"""Mined hard negatives: replies of other contexts that look as if they answered this one.

People wrote adversarial replies for few contexts. A search finds more: replies that share rare words
with a context, or lie near it in an embedding. Some of them will be valid by chance, so they are kept
apart as `Group.mined` wherever they go.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corpora.grouped import Group

#: Embeds texts as one unit row each; sparse rows are welcome.
Embed = Callable[[Sequence[str]], Any]

#: From how many of the closest replies the negatives are drawn.
_NEAREST = 40
#: Contexts, or replies, more alike than this may well be exchanged.
_TOO_ALIKE = 0.5
_FEWEST_WORDS = 4
_CHUNK = 256


def with_mined(groups: Sequence[Group], count: int, embed: Embed, *, seed: int) -> list[Group]:
    """Add `count` mined replies to every group: drawn from those closest to the end of its context.

    Replies of a context much like this one, and replies much like a valid one, are passed over,
    because they may be valid here too. A context may get fewer than `count`.
    """
    owners = [
        (number, reply)
        for number, group in enumerate(groups)
        for reply in group.positives
        if len(reply.split()) >= _FEWEST_WORDS
    ]
    if len(owners) < count + 1:
        raise ValueError(f"{len(owners)} replies are too few to mine {count} from; give more contexts")
    texts = [reply for _, reply in owners]
    owner_of = np.array([number for number, _ in owners])
    contexts, replies = embed([ending(group) for group in groups]), embed(texts)
    mined: list[Group] = []
    for start in range(0, len(groups), _CHUNK):
        alike = _dense(contexts[start : start + _CHUNK] @ contexts.T) > _TOO_ALIKE
        close = _dense(contexts[start : start + _CHUNK] @ replies.T)
        close[alike[:, owner_of]] = -1.0
        for row, similarity in enumerate(close):
            number = start + row
            nearest = _highest(similarity, 4 * _NEAREST)
            valid = replies[np.flatnonzero(owner_of == number)]
            likely_valid = (_dense(replies[nearest] @ valid.T) > _TOO_ALIKE).any(axis=1)
            candidates = [texts[index] for index in nearest[~likely_valid] if similarity[index] > 0]
            chosen = _draw(groups[number], candidates, count, np.random.default_rng([seed, number]))
            mined.append(replace(groups[number], mined=(*groups[number].mined, *chosen)))
    return mined


def ending(group: Group) -> str:
    """The last two turns: what a reply that seems to fit would refer to."""
    return " ".join(group.context[-2:])


def word_overlap(texts: Sequence[str]) -> Embed:
    """TF-IDF rows over the words of `texts`: a shared rare word counts for more than a shared frequent one."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectorizer = TfidfVectorizer(stop_words="english", sublinear_tf=True, token_pattern=r"(?u)\b[^\W\d_]{3,}\b")
    try:
        vectorizer.fit(texts)
    except ValueError:
        raise ValueError("the replies hold no word that could be shared; mine by embedding instead") from None
    return vectorizer.transform  # type: ignore[no-any-return]


def _highest(values: NDArray[Any], count: int) -> NDArray[np.intp]:
    """Positions of the highest values, highest first."""
    kept = np.argpartition(-values, count)[:count] if count < len(values) else np.arange(len(values))
    ordered: NDArray[np.intp] = kept[np.lexsort((kept, -values[kept]))]
    return ordered


def _draw(group: Group, candidates: Sequence[str], count: int, rng: np.random.Generator) -> list[str]:
    taken = {*group.positives, *group.adversarial, *group.random, *group.mined, *group.context}
    pool = [reply for reply in dict.fromkeys(candidates) if reply not in taken][:_NEAREST]
    return [pool[int(index)] for index in rng.permutation(len(pool))[:count]]


def _dense(product: Any) -> NDArray[Any]:
    return np.array(product.toarray() if hasattr(product, "toarray") else product, dtype=np.float32)
