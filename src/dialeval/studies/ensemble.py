"""Several metrics as one judge: how their values are combined, and what is learned from which benchmarks.

Three combinations are studied:

* `rank_mean`: the mean of the metrics' ranks among the rows of a benchmark. A row's value depends on the
  other rows, so it shows what is in the metrics but cannot be shipped;
* `percentile_mean`: the mean of the metrics' human percentiles, each a matter of its row alone;
* `weighted_percentiles`: the same with weights that are not negative, fitted on other benchmarks.

A metric without a value for a row (no reference, say), or trained on the benchmark, stands aside there:
the others share its weight.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dialeval.approaches.ensemble import combined
from dialeval.statistics.correlation import Floats, is_constant

if TYPE_CHECKING:
    from dialeval.agreement.results import Panel
    from dialeval.agreement.sources import ValueSource

#: The combinations whose value of a row depends on that row alone.
DEPLOYABLE = ("percentile_mean", "weighted_percentiles")
ENSEMBLES = ("rank_mean", *DEPLOYABLE)


@dataclass(frozen=True)
class Field:
    """One benchmark: what people said of its rows, and every metric's values beside it, higher always better."""

    name: str
    human: Floats
    groups: NDArray[np.intp]
    n_groups: int
    columns: Mapping[str, Floats]
    percentiles: Mapping[str, Floats] = field(default_factory=dict)
    contaminated: frozenset[str] = frozenset()

    def clean(self, members: Sequence[str]) -> list[str]:
        """Those that have values here and were not trained on the benchmark."""
        return [name for name in members if name in self.columns and name not in self.contaminated]


def field_of(panel: Panel, sources: Sequence[ValueSource], members: Sequence[str]) -> Field:
    """The rated rows of a benchmark; members also on the scale of human percentiles."""
    cut, _ = panel.questions[0]
    if cut.is_labelled:
        raise ValueError(f"{panel.judged.info.name} holds labels, not ratings; leave it out of the ensemble study")
    columns = {name: column[cut.rows] for name, column in panel.columns.items()}
    percentiles = {
        source.name: _percentiles(source, columns[source.name])
        for source in sources
        if source.name in members and source.name in columns
    }
    judged = panel.judged
    return Field(
        judged.info.name,
        cut.human,
        judged.groups[cut.rows],
        judged.n_groups,
        columns,
        percentiles,
        panel.contaminated,
    )


def has_percentiles(source: ValueSource) -> bool:
    """Whether the source's values can be read as a share of human replies."""
    return source.metric is not None and "human_percentile" in source.metric.scales


def chosen_members(sources: Sequence[ValueSource], wanted: Sequence[str]) -> list[str]:
    """The metrics to combine: those named, or all that have human percentiles."""
    able = [source.name for source in sources if has_percentiles(source)]
    if wrong := [name for name in wanted if name not in able]:
        raise ValueError(f"{wrong[0]} cannot be a member; those with human percentiles are {', '.join(able) or 'none'}")
    return list(dict.fromkeys(wanted)) or able


def _percentiles(source: ValueSource, column: Floats) -> Floats:
    metric: Any = source.metric
    native = column if source.higher_is_better else -column
    found = np.full(len(native), np.nan)
    known = np.isfinite(native)
    found[known] = metric.rescale(native[known], "human_percentile")
    return found


def rank_mean(found: Field, members: Sequence[str]) -> Floats:
    """The mean of the members' ranks among the rows that each of them judged, from 0 to 1."""
    return combined(np.array([_unit_ranks(found.columns[name]) for name in found.clean(members)]))


def percentile_mean(found: Field, members: Sequence[str]) -> Floats:
    """The mean of the members' human percentiles."""
    return combined(np.array([found.percentiles[name] for name in found.clean(members)]))


def weighted_percentiles(found: Field, weights: Mapping[str, float]) -> Floats:
    """The members' human percentiles, each with its weight."""
    clean = found.clean(list(weights))
    return combined(np.array([found.percentiles[name] for name in clean]), [weights[name] for name in clean])


def fit_weights(fields: Sequence[Field], members: Sequence[str]) -> dict[str, float]:
    """Non-negative weights, sum 1, by least squares of people's standardised ranks on centred percentiles.

    Every benchmark counts the same whatever its size. Where a member stands aside its column is flat there,
    so that the others are fitted without it. If nothing helps, all members weigh the same.
    """
    from scipy.optimize import nnls

    tables = [_centred(one, members) for one in fields]
    if not tables:
        raise ValueError("there is no benchmark to fit weights on; name at least two")
    table = np.concatenate([x for x, _ in tables])
    people = np.concatenate([y for _, y in tables])
    raw = nnls(table, people)[0]
    total = float(raw.sum())
    shares = raw / total if total > 0 else np.full(len(members), 1 / len(members))
    return {name: float(share) for name, share in zip(members, shares, strict=True)}


def _centred(found: Field, members: Sequence[str]) -> tuple[Floats, Floats]:
    clean = found.clean(members)
    people = _unit_ranks(found.human)
    people = np.zeros(len(people)) if is_constant(people) else (people - people.mean()) / people.std()
    table = np.zeros((len(people), len(members)))
    for position, name in enumerate(members):
        if name in clean and np.isfinite(found.percentiles[name]).any():
            column = found.percentiles[name]
            table[:, position] = np.nan_to_num(column - np.nanmean(column))
    share = np.sqrt(max(len(people), 1))
    return table / share, people / share


def _unit_ranks(column: Floats) -> Floats:
    """Average ranks among the known values, the lowest possible 0 and the highest 1."""
    from scipy import stats

    known = np.isfinite(column)
    found = np.full(len(column), np.nan)
    found[known] = (stats.rankdata(column[known]) - 0.5) / max(int(known.sum()), 1)
    return found
