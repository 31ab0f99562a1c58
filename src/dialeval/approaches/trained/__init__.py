"""The baselines of the five papers that are trained: a fixed encoder, and a small head for each.

`heads` holds what all share. On vectors of single texts (`vectors`) stand `ruber`, `bert_ruber`, `bert_dnn`, `adem` and
`maude`; on an encoder that reads pairs (`pairs`) `usr_retrieval`, `usl_h`, `bert_regressor` and `usr_mlm`.
"""

from __future__ import annotations

from typing import Any

from dialeval.registry import metric_class


def head_class(name: str) -> Any:
    """The metric whose head `training/baselines.py` trains under this name; `valid_utterance` is a part of USL-H."""
    from dialeval.approaches.trained.heads import TrainedHead
    from dialeval.approaches.trained.usl_h import ValidUtterance

    found = ValidUtterance if name == "valid_utterance" else metric_class(name)[0]
    if not issubclass(found, TrainedHead):
        raise ValueError(f"{name!r} has no head on fixed features; its class has to be a TrainedHead")
    return found
