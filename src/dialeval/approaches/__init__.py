"""The five papers' approaches and our own judge: architecture, losses, scoring rule, in that order.

`trained` holds the baselines of the papers that are trained themselves.
"""

from __future__ import annotations

from typing import Any

from dialeval.registry import available, metric_class


def network_class(approach: str) -> Any:
    """The network class that reads checkpoints of an approach: that of the metric of its name.

    Checkpoints come from strangers, so only names of the registry are looked up.
    """
    if approach == "pairs":  # three metrics read these, none of that name
        from dialeval.approaches.trained.pairs import PairsNetwork

        return PairsNetwork
    found = getattr(metric_class(approach)[0], "network_class", None) if approach in available() else None
    if found is None or found.approach != approach:
        raise ValueError(f"no metric reads checkpoints of an approach {approach!r}; is its package installed?")
    return found
