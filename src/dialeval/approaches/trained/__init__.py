"""The baselines of the five papers that are trained: a fixed encoder, and a small head for each.

`heads` holds what all share. On vectors of single texts (`vectors`) stand `ruber`, `bert_ruber`, `bert_dnn`, `adem` and
`maude`; on an encoder that reads pairs (`pairs`) `usr_retrieval`, `usl_h`, `bert_regressor` and `usr_mlm`.
"""

from __future__ import annotations

import importlib
from typing import Any

#: What trains a head, by name: the metrics, and the parts of a metric that has several heads.
HEADS = {
    "ruber": "ruber:Ruber",
    "bert_ruber": "bert_ruber:BertRuber",
    "bert_dnn": "bert_dnn:BertDnn",
    "adem": "adem:Adem",
    "maude": "maude:Maude",
    "usr_retrieval": "usr_retrieval:UsrRetrieval",
    "valid_utterance": "usl_h:ValidUtterance",
    "bert_regressor": "bert_regressor:BertRegressor",
}


def head_class(name: str) -> Any:
    """The metric whose head is trained under this name."""
    if name not in HEADS:
        raise ValueError(f"there is no head {name!r}; there are {', '.join(HEADS)}")
    module, _, kind = HEADS[name].partition(":")
    return getattr(importlib.import_module(f"{__name__}.{module}"), kind)
