"""The five papers' approaches and our own judge: architecture, losses, scoring rule, in that order."""

from __future__ import annotations

import importlib
from typing import Any

#: approach -> where its network is. FBD and PRD are training-free and have none.
_NETWORKS = {
    "density": "density:DensityNetwork",
    "cmn": "cmn_network:CmnNetwork",
    "deb": "deb:DebNetwork",
    "quantidce": "quantidce:QuantiDceNetwork",
    "judge": "judge:JudgeNetwork",
}


def network_class(approach: str) -> Any:
    """The network class that reads checkpoints of an approach."""
    if approach not in _NETWORKS:
        raise ValueError(f"there is no approach {approach!r} with checkpoints; there are {', '.join(_NETWORKS)}")
    module, _, name = _NETWORKS[approach].partition(":")
    return getattr(importlib.import_module(f"{__name__}.{module}"), name)
