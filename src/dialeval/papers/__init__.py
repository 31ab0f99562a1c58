"""The five papers' approaches: architecture, losses, scoring rule, in that order."""

from __future__ import annotations

from typing import Any

from dialeval.registry import REGISTRY, available, metric_class


def network_class(approach: str) -> Any:
    """The network class that reads checkpoints of an approach: that of the metric of its name.

    Checkpoints come from strangers, so only names of the registry are looked up. Metrics of another package may share a
    network that bears the name of none of them.
    """
    named = [approach] if approach in available() else [name for name, entry in REGISTRY.items() if entry.package]
    for name in named:
        network = getattr(metric_class(name)[0], "network_class", None)
        if network is not None and network.approach == approach:
            return network
    raise ValueError(f"no metric reads checkpoints of an approach {approach!r}; is its package installed?")
