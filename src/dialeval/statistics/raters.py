"""What people say, and how far they agree: the outlier rule, the ceiling, Krippendorff's alpha.

Ratings come as one list per row, because rows have different numbers of raters. Position in the
list is not taken to be a person: crowd workers change from row to row.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import zip_longest

import numpy as np

from dialeval.statistics.correlation import CORRELATIONS
from dialeval.statistics.system_level import system_means

#: Scales a consistent deviation so that it estimates the standard deviation of normal data.
_MAD_TO_SD = 1.4826

Ratings = Sequence[Sequence[float]]


def without_outliers(ratings: Sequence[float]) -> list[float]:
    """The ratings of one row that lie within one scaled median absolute deviation of the median.

    This is the rule of the DailyDialog and PersonaChat judgements of Zhao et al. (2020). Where more
    than half of the raters agree, the deviation is zero and every other rating is dropped.
    """
    values = np.asarray(ratings, dtype=np.float64)
    if not len(values):
        return []
    distance = np.abs(values - np.median(values))
    return [float(value) for value in values[distance <= _MAD_TO_SD * np.median(distance)]]


def mean_rating(ratings: Sequence[float], *, drop_outliers: bool = False) -> float:
    """The mean of a row's ratings, NaN if there are none."""
    kept = without_outliers(ratings) if drop_outliers else list(ratings)
    return float(np.mean(kept)) if kept else math.nan


def human_ceiling(ratings: Ratings, statistic: str = "spearman", *, systems: Sequence[str] | None = None) -> float:
    """How well one person predicts the others: the correlation of one rating with the mean of the rest.

    Every position in the lists is left out once, over the rows that have it and at least one more
    rating; the correlations are averaged, weighted by their number of rows. With `systems`, means
    per system are correlated instead of rows. A metric may exceed this: it is compared with the mean
    of *all* raters, which is steadier than any one of them.
    """
    ceilings: list[tuple[float, int]] = []
    for position in range(max((len(row) for row in ratings), default=0)):
        rows = [number for number, row in enumerate(ratings) if len(row) > max(position, 1)]
        single = np.array([ratings[number][position] for number in rows], dtype=np.float64)
        with_others = (ratings[number] for number in rows)
        rest = np.array([(sum(row) - row[position]) / (len(row) - 1) for row in with_others], dtype=np.float64)
        if systems is not None:
            owners = [systems[number] for number in rows]
            single, rest = system_means(single, owners)[1], system_means(rest, owners)[1]
        value = CORRELATIONS[statistic](single, rest).value
        if math.isfinite(value):
            ceilings.append((value, len(rows)))
    rows_behind = sum(n for _, n in ceilings)
    return sum(value * n for value, n in ceilings) / rows_behind if ceilings else math.nan


def alpha(ratings: Ratings) -> float:
    """Krippendorff's alpha: 1 is perfect agreement, 0 what chance would give, below 0 is worse than chance."""
    import krippendorff

    # Raters x rows, NaN where a row has fewer ratings than another.
    table = np.array([*zip_longest(*ratings, fillvalue=math.nan)], dtype=np.float64).reshape(-1, len(ratings) or 1)
    pairable = table[:, (~np.isnan(table)).sum(axis=0) > 1]
    if not pairable.size or len(np.unique(pairable[~np.isnan(pairable)])) < 2:
        return math.nan
    return float(krippendorff.alpha(reliability_data=pairable, level_of_measurement="interval"))


def attainable(ratings: Ratings) -> float:
    """The correlation with the mean rating that a perfect metric could expect, given how noisy that mean is.

    The square root of the mean's reliability, which follows from alpha by the Spearman-Brown formula
    for the (harmonic) mean number of raters. NaN where people agree no better than chance.
    """
    single = alpha(ratings)
    sizes = [len(row) for row in ratings if row]
    if not single > 0:
        return math.nan
    raters = len(sizes) / sum(1 / size for size in sizes)
    return math.sqrt(raters * single / (1 + (raters - 1) * single))
