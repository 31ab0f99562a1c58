"""Is one metric, or one system, better than another? Paired tests, and one for values that are not paired.

The permutation test makes the fewest assumptions and is the default: if two metrics were equally
good, it would not matter which of them gave which values, so their (standardised) values are
swapped at random, all rows of a context together.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dialeval.statistics.correlation import Floats, correlation_of_sums, group_sums, is_constant, paired_columns

#: Correlations that the permutation test can compare.
Swappable = Literal["pearson", "spearman"]


@dataclass(frozen=True)
class TestResult:
    """A test statistic (for permutation tests the observed difference), its two-sided p, and how p was found."""

    statistic: float
    p: float
    method: str


def permutation_test(
    first: ArrayLike,
    second: ArrayLike,
    human: ArrayLike,
    groups: NDArray[np.intp],
    *,
    statistic: Swappable = "spearman",
    resamples: int = 10_000,
    seed: int = 0,
) -> TestResult:
    """Whether two metrics correlate differently with people, by swapping their values block by block.

    Values are standardised first (ranks for Spearman), because swapping needs one scale. After a
    swap the ranks are kept, not taken anew: any statistic makes a valid permutation test, and this
    one is a matter of sums per block. With few blocks all swaps are tried.
    """
    sets = [(first, second, human, groups)]
    return permutation_test_over_sets(sets, statistic=statistic, resamples=resamples, seed=seed)


def permutation_test_over_sets(
    sets: Sequence[tuple[ArrayLike, ArrayLike, ArrayLike, NDArray[np.intp]]],
    *,
    statistic: Swappable = "spearman",
    resamples: int = 10_000,
    seed: int = 0,
) -> TestResult:
    """The same for the mean of the correlations over several sets of (first, second, human, groups).

    The sets stay as they are: the test speaks about these sets, not about others that might have been chosen.
    """
    swappings = [_swapping(*columns, statistic) for columns in sets]
    parts = [part for part in swappings if part is not None]
    if not parts or len(parts) < len(swappings):
        return TestResult(math.nan, math.nan, "undefined")
    ends = np.cumsum([n_groups for _, n_groups in parts])

    def difference(swapped: Floats) -> Floats:
        columns = np.split(swapped, ends[:-1], axis=1)
        return np.asarray(np.mean([swapped(part) for (swapped, _), part in zip(parts, columns, strict=True)], axis=0))

    return _swap_test(difference, int(ends[-1]), resamples, seed)


def _swapping(
    first: ArrayLike, second: ArrayLike, human: ArrayLike, groups: NDArray[np.intp], statistic: Swappable
) -> tuple[Callable[[Floats], Floats], int] | None:
    """The difference of the correlations as a function of which groups are swapped, and the number of groups."""
    x, truth = paired_columns(first, human)
    y, _ = paired_columns(second, human)
    if is_constant(x) or is_constant(y) or is_constant(truth):
        return None
    if statistic == "spearman":
        from scipy import stats

        x, y, truth = stats.rankdata(x), stats.rankdata(y), stats.rankdata(truth)
    x, y, truth = _z(x), _z(y), _z(truth)
    n_groups = int(groups.max()) + 1
    sums_x, sums_y = group_sums(x, truth, groups, n_groups), group_sums(y, truth, groups, n_groups)

    def difference(swapped: Floats) -> Floats:
        kept = 1 - swapped
        return correlation_of_sums(kept @ sums_x + swapped @ sums_y) - correlation_of_sums(
            swapped @ sums_x + kept @ sums_y
        )

    return difference, n_groups


def paired_mean_test(
    first: ArrayLike, second: ArrayLike, groups: NDArray[np.intp], *, resamples: int = 10_000, seed: int = 0
) -> TestResult:
    """Whether two columns differ in their mean, by swapping them block by block (sign flips of the differences)."""
    x, y = paired_columns(first, second)
    if not len(x):
        return TestResult(math.nan, math.nan, "undefined")
    n_groups = int(groups.max()) + 1
    gaps = np.bincount(groups, x - y, n_groups) / len(x)
    return _swap_test(lambda swapped: (1 - 2 * swapped) @ gaps, n_groups, resamples, seed)


def unpaired_mean_test(first: ArrayLike, second: ArrayLike, *, resamples: int = 10_000, seed: int = 0) -> TestResult:
    """Whether two columns of different rows differ in their mean, by dealing the rows out anew."""
    from scipy import stats

    result = stats.permutation_test(
        (np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)),
        lambda x, y, axis: x.mean(axis=axis) - y.mean(axis=axis),
        n_resamples=resamples,
        batch=max(1, 2_000_000 // (np.size(first) + np.size(second))),
        vectorized=True,
        rng=np.random.default_rng(seed),
    )
    return TestResult(float(result.statistic), float(result.pvalue), "permutation, unpaired")


def _swap_test(difference: Callable[[Floats], Floats], n_groups: int, resamples: int, seed: int) -> TestResult:
    observed = float(difference(np.zeros((1, n_groups)))[0])
    exhaustive = n_groups <= math.log2(max(resamples, 1))
    reached, tried = 0, 0
    every = [np.array(list(itertools.product((0.0, 1.0), repeat=n_groups)))] if exhaustive else []
    for swapped in every or _random_swaps(n_groups, resamples, seed):
        drawn = difference(swapped)
        reached += int((np.abs(drawn) >= abs(observed) - 1e-12).sum())
        tried += len(drawn)
    if exhaustive:
        return TestResult(observed, reached / tried, "permutation, exact")
    return TestResult(observed, (reached + 1) / (tried + 1), "permutation, sampled")


def _random_swaps(n_groups: int, resamples: int, seed: int) -> Iterator[Floats]:
    random = np.random.default_rng(seed)
    for start in range(0, resamples, step := max(1, 2_000_000 // n_groups)):
        yield random.integers(2, size=(min(step, resamples - start), n_groups)).astype(np.float64)


def _z(x: Floats) -> Floats:
    return np.asarray((x - x.mean()) / x.std())


def holm(p_values: ArrayLike) -> Floats:
    """Holm's step-down adjustment: controls the chance of any false discovery, needs no independence.

    A test without a p-value (NaN) counts as none and stays without.
    """
    p = np.atleast_1d(np.asarray(p_values, dtype=np.float64))
    order = np.argsort(p, kind="stable")[: np.isfinite(p).sum()]  # NaN comes last
    adjusted = np.full(len(p), np.nan)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate((len(order) - np.arange(len(order))) * p[order]))
    return adjusted
