"""The five papers' approaches and our own judge: architecture, losses, scoring rule, in that order.

`trained` holds the baselines of the papers that are trained themselves.
"""

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

#: The same for the trained baselines of the papers.
_BASELINES = {
    "ruber": "trained.ruber:RuberNetwork",
    "bert_ruber": "trained.bert_ruber:BertRuberNetwork",
    "bert_dnn": "trained.bert_dnn:BertDnnNetwork",
    "adem": "trained.adem:AdemNetwork",
    "maude": "trained.maude:MaudeNetwork",
    "pairs": "trained.pairs:PairsNetwork",
}


def network_class(approach: str) -> Any:
    """The network class that reads checkpoints of an approach."""
    known = {**_NETWORKS, **_BASELINES}
    if approach not in known:
        raise ValueError(f"there is no approach {approach!r} with checkpoints; there are {', '.join(known)}")
    module, _, name = known[approach].partition(":")
    return getattr(importlib.import_module(f"{__name__}.{module}"), name)
