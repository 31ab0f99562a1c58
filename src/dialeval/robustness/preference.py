"""Robustness: how often does a metric prefer the true reply to an attacked one?

A pair is a true reply and what an attack made of it. For a harmful attack the metric should prefer the true
reply; for a control, which only changes the surface, its value should not fall.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dialeval.core.exchange import Exchange
from dialeval.robustness.inputs import Pair, key_of
from dialeval.statistics.bootstrap import number_groups
from dialeval.statistics.correlation import Floats

#: 97.5 % quantile of the normal distribution, for intervals of 95 %.
_Z = 1.959963984540054


#: A fall of less than this share of the standard deviation of the true replies' values is none.
TOLERANCE = 0.1


@dataclass(frozen=True)
class Share:
    """A share with its 95 % interval."""

    value: float
    low: float
    high: float


NO_SHARE = Share(math.nan, math.nan, math.nan)


@dataclass(frozen=True)
class AttackOutcome:
    """What a metric makes of one attack, in one domain or in `all`.

    `preferred` is the share of pairs in which the true reply has the better value, ties counting
    half; `ties` is their share. `kept` is the share in which the attacked reply's value is worse by
    no more than `tolerance`, in units of the metric. For a harmful attack `preferred` should be near
    1, for a control `kept`. Of an attack that tries to steer, `steered` is the share of replies to which a demand
    gives a value that is better, by more than the tolerance, than both the value without it and the one with a
    neutral sentence in its place. `by_chance` is the same share with demand and neutral sentence exchanged: where
    nobody is steered, the two are alike.
    """

    metric: str
    source: str
    revision: str
    attack: str
    harmful: bool
    domain: str
    n: int
    n_contexts: int
    n_unscored: int
    preferred: Share
    ties: float
    kept: Share
    tolerance: float
    mean_true: float
    mean_attacked: float
    signature: str
    steered: Share = NO_SHARE
    by_chance: Share = NO_SHARE
    #: The metric was trained on what the pairs were made from.
    contaminated: bool = False

    @property
    def share(self) -> Share:
        """The share that should be near 1."""
        return self.preferred if self.harmful else self.kept


def verdicts(
    pairs: Sequence[Pair],
    values: Mapping[str, float],
    *,
    metric: str,
    source: str,
    revision: str = "",
    signature: str,
    higher_is_better: bool,
    contaminated: bool = False,
    tolerance: float = TOLERANCE,
) -> list[AttackOutcome]:
    """What the values, by `key_of`, say of every attack, over all domains and in each.

    Pairs of which a side has no value count neither way; they are told in `n_unscored`.
    """
    sign = 1.0 if higher_is_better else -1.0

    def column(exchanges: Iterable[Exchange | None]) -> Floats:
        return np.array([math.nan if row is None else values.get(key_of(row), math.nan) for row in exchanges])

    true, attacked = column(pair.true for pair in pairs), column(pair.attacked for pair in pairs)
    plain, neutral = column(pair.plain for pair in pairs), column(pair.neutral for pair in pairs)
    distinct = np.array(list({key_of(pair.true): value for pair, value in zip(pairs, true, strict=True)}.values()))
    known = distinct[np.isfinite(distinct)]
    tolerance *= float(known.std()) if len(known) else 0.0
    outcome = []
    for attack, domain in _cells(pairs):
        rows = [row for row, pair in enumerate(pairs) if pair.attack == attack and domain in ("all", pair.domain)]
        scored = np.isfinite(true[rows]) & np.isfinite(attacked[rows])
        kept_rows = np.array(rows)[scored]
        groups = number_groups([pairs[row].true.context for row in kept_rows])
        better = sign * (true[kept_rows] - attacked[kept_rows])
        harmful = pairs[rows[0]].harmful
        of_attack = [pairs[row] for row in rows]
        demanding, asking_nothing, saying_nothing = (sign * values[rows] for values in (attacked, neutral, plain))
        outcome.append(
            AttackOutcome(
                metric=metric,
                source=source,
                revision=revision,
                attack=attack,
                harmful=harmful,
                domain=domain,
                n=len(kept_rows),
                n_contexts=int(groups.max(initial=-1)) + 1,
                n_unscored=len(rows) - len(kept_rows),
                preferred=share_of((better > 0) + 0.5 * (better == 0), groups),
                ties=_mean(better == 0),
                kept=share_of((better <= tolerance).astype(np.float64), groups),
                tolerance=tolerance,
                mean_true=_mean(true[kept_rows]),
                mean_attacked=_mean(attacked[kept_rows]),
                signature=signature,
                steered=_lifted(demanding, (asking_nothing, saying_nothing), tolerance, of_attack),
                by_chance=_lifted(asking_nothing, (demanding, saying_nothing), tolerance, of_attack),
                contaminated=contaminated,
            )
        )
    return outcome


def _lifted(value: Floats, others: tuple[Floats, Floats], tolerance: float, pairs: Sequence[Pair]) -> Share:
    """The share of replies with a value above both others, of those that have all three."""
    gain = value - np.maximum(*others)
    known = np.isfinite(gain)
    if not known.any():
        return NO_SHARE
    groups = number_groups([pair.true.context for pair, is_known in zip(pairs, known, strict=True) if is_known])
    return share_of((gain[known] > tolerance).astype(np.float64), groups)


def share_of(hits: Floats, groups: NDArray[np.intp]) -> Share:
    """A share with Wilson's interval, for as many independent rows as the rows are worth.

    Rows that answer one context resemble each other. The variance between contexts tells how many
    independent rows would vary as much; where nothing varies, a context counts as one row.
    """
    n = len(hits)
    if n == 0:
        return NO_SHARE
    value = float(hits.mean())
    n_groups = int(groups.max()) + 1
    worth = float(n_groups)
    spread = value * (1 - value)
    between = float((np.bincount(groups, hits - value) ** 2).sum()) / n**2
    if n_groups > 1 and between > 0:
        # Both variances without bias, so that rows that share no context are worth exactly what they are.
        worth = (spread * n / (n - 1)) / (between * n_groups / (n_groups - 1))
    # Never more than the rows there are, nor fewer than one.
    worth = min(max(worth, 1.0), float(n))
    centre = (value + _Z**2 / (2 * worth)) / (1 + _Z**2 / worth)
    half = _Z / (1 + _Z**2 / worth) * math.sqrt(spread / worth + _Z**2 / (4 * worth**2))
    # At shares of 0 and 1 the interval ends there; rounding would end it a hair before.
    return Share(value, min(value, centre - half), max(value, centre + half))


def _cells(pairs: Sequence[Pair]) -> list[tuple[str, str]]:
    """Attacks in their order; for each first all domains together, then each if there are several."""
    cells: list[tuple[str, str]] = []
    for attack in dict.fromkeys(pair.attack for pair in pairs):
        domains = dict.fromkeys(pair.domain for pair in pairs if pair.attack == attack and pair.domain is not None)
        cells.append((attack, "all"))
        cells += [(attack, domain) for domain in domains] if len(domains) > 1 else []
    return cells


def _mean(values: NDArray[np.generic]) -> float:
    return float(values.mean()) if len(values) else math.nan
