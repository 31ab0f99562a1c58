"""Perturbing a share of a whole set of replies, for metrics that judge systems rather than replies.

A sound distance between distributions grows with the share that is perturbed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal, get_args

from dialeval.exchange import Exchange
from dialeval.robustness.attacks import ATTACKS, Pool, row_random

Perturbation = Literal["noise", "mismatch", "permutate", "repeat"]
PERTURBATIONS: tuple[Perturbation, ...] = get_args(Perturbation)

#: What happens to a single reply; `mismatch` is about several.
_ALONE = {"noise": "noise", "permutate": "jumble", "repeat": "generic_reply"}


def perturb(exchanges: Sequence[Exchange], kind: Perturbation, ratio: float, *, seed: int = 0) -> list[Exchange]:
    """Perturb about `ratio` of the replies.

    `noise` puts random words in, `mismatch` passes replies on to other contexts, `permutate` shuffles
    the words, `repeat` says something generic instead. Which rows are chosen depends on each row
    alone, and a larger ratio chooses the same rows and more.
    """
    if kind not in PERTURBATIONS:
        raise ValueError(f"there is no perturbation {kind!r}; there are {', '.join(PERTURBATIONS)}")
    if not 0 <= ratio <= 1:
        raise ValueError(f"ratio is {ratio}; it is a share between 0 and 1")
    drawn = [row_random(exchange, kind, seed).random() for exchange in exchanges]
    chosen = [row for row in range(len(exchanges)) if drawn[row] < ratio]
    perturbed = list(exchanges)
    if kind == "mismatch":
        order = sorted(chosen, key=lambda row: (drawn[row], row))
        for row, giver in zip(order, order[1:] + order[:1], strict=True):
            perturbed[row] = replace(exchanges[row], response=exchanges[giver].response)
        return perturbed
    attack, pool = ATTACKS[_ALONE[kind]], Pool(exchanges)
    for row in chosen:
        perturbed[row] = attack.apply(exchanges[row], pool, seed=seed) or exchanges[row]
    return perturbed


def degradation(
    judge: Callable[[Sequence[Exchange]], float],
    exchanges: Sequence[Exchange],
    *,
    ratios: Sequence[float] = (0.0, 0.25, 0.5, 0.75, 1.0),
    seed: int = 0,
) -> dict[Perturbation, list[float]]:
    """A system-level value for each kind of perturbation and each ratio."""
    return {kind: [judge(perturb(exchanges, kind, ratio, seed=seed)) for ratio in ratios] for kind in PERTURBATIONS}
