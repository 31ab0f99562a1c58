"""Several models as one judge: their mean, what most of them say, and how far they are apart."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean

from dialeval.llm.member import Said


def together(said: Mapping[str, Said], step: float) -> Said:
    """What a panel makes of a row: a value if more than half of its members have one."""
    values = {model: one.value for model, one in said.items() if one.value is not None}
    silent = {model: one for model, one in said.items() if one.value is None}
    if 2 * len(values) <= len(said):
        problem = "; ".join(f"{model}: {one.problem}" for model, one in silent.items())
        return Said(None, dict(values), problem, passing=any(one.passing for one in silent.values()))
    names = dict.fromkeys(aspect for one in said.values() for aspect in one.aspects)
    shared = {name: fmean(one.aspects[name] for one in said.values() if name in one.aspects) for name in names}
    points = list(values.values())
    own = {**values, "vote": vote(points, step), "spread": max(points) - min(points)}
    return Said(fmean(points), {**shared, **own})


def vote(points: Sequence[float], step: float) -> float:
    """The point, in steps of `step`, that most judges come nearest to; between equally many, the middle of them."""
    counts = Counter(math.floor(point / step + 0.5) * step for point in points)
    most = max(counts.values())
    return fmean(point for point, count in counts.items() if count == most)
