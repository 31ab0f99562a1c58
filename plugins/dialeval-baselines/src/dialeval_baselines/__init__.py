"""The baselines of the five papers that are trained: a fixed encoder, and a small head for each.

On vectors of single texts (`vectors`) stand `ruber`, `bert_ruber`, `bert_dnn`, `adem` and `maude`; on an encoder that
reads pairs (`pairs`) `usr_retrieval`, `usl_h`, `bert_regressor` and `usr_mlm`.
"""

from __future__ import annotations

from pathlib import Path

#: Their checkpoints.
SHIPPED = Path(__file__).parent / "weights"
