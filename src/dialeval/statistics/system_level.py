"""Agreement over systems: one point per system, its mean score against its mean human judgement.

Benchmarks have few systems, so a correlation of them says little: with four, a perfect rank order
comes up by chance once in twelve. Hence the exact permutation p, and the refusal below five.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from dialeval.statistics.correlation import CORRELATIONS, ROWWISE, Estimate, Floats, is_constant, paired_columns

#: Fewer systems than this are refused unless the caller insists.
FEWEST_SYSTEMS = 5

#: Up to this many systems all orders are tried (362,880 of nine), beyond it a random sample of them.
_EXHAUSTIVE = 9
SAMPLED_ORDERS = 20_000


class TooFewSystems(ValueError):
    """There are too few systems for a correlation over systems to mean anything."""


def check_systems(count: int, *, force: bool = False) -> None:
    """Refuse a system-level correlation below five systems, and below two in any case."""
    if count < 2:
        raise TooFewSystems(f"{count} system(s) give no correlation over systems; use the turn level")
    if count < FEWEST_SYSTEMS and not force:
        raise TooFewSystems(
            f"{count} systems are too few for a correlation over systems (at least {FEWEST_SYSTEMS}); "
            "use the turn level, or force it"
        )


def system_means(values: ArrayLike, systems: Sequence[str]) -> tuple[list[str], Floats]:
    """The mean value of every system, in the order in which systems first occur."""
    names = list(dict.fromkeys(systems))
    position = {name: number for number, name in enumerate(names)}
    number = np.array([position[name] for name in systems], dtype=np.intp)
    column = np.asarray(values, dtype=np.float64)
    return names, np.bincount(number, column, len(names)) / np.bincount(number, minlength=len(names))


def correlate_systems(
    x: ArrayLike, y: ArrayLike, statistic: str = "pearson", *, seed: int = 0, force: bool = False
) -> tuple[Estimate, str]:
    """A correlation over systems with its permutation p, and how that p was found (`exact` or `sampled`)."""
    first, second = paired_columns(x, y)
    check_systems(len(first), force=force)
    estimate = CORRELATIONS[statistic](first, second)
    p, method = permutation_p(first, second, statistic, seed=seed)
    return Estimate(estimate.value, p, estimate.n), method


def permutation_p(x: ArrayLike, y: ArrayLike, statistic: str, *, seed: int = 0) -> tuple[float, str]:
    """Two-sided p: the share of orders of `y` whose correlation with `x` is at least as far from zero."""
    first, second = paired_columns(x, y)
    n = len(first)
    exhaustive = n <= _EXHAUSTIVE
    method = "exact" if exhaustive else "sampled"
    if is_constant(first) or is_constant(second):
        return np.nan, method
    observed = abs(ROWWISE[statistic](first[None], second[None])[0])
    if exhaustive:
        orders = np.array(list(itertools.permutations(range(n))))
    else:
        random = np.random.default_rng(seed)
        orders = random.permuted(np.tile(np.arange(n), (SAMPLED_ORDERS, 1)), axis=1)
    reached = 0
    for start in range(0, len(orders), 20_000):
        drawn = ROWWISE[statistic](first[None], second[orders[start : start + 20_000]])
        # The observed order is among those tried; rounding must not lose it.
        reached += int((np.abs(drawn) >= observed - 1e-12).sum())
    if exhaustive:
        return reached / len(orders), method
    return (reached + 1) / (len(orders) + 1), method
