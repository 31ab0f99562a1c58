"""A row of `results/` for cards."""

import math
from typing import Any

from dialeval.agreement.results import Result


def result(**changes: Any) -> Result:
    row: dict[str, Any] = {
        "metric": "deb", "benchmark": "convai2_grade", "protocol": "standard", "level": "turn", "aspect": "coherence",
        "statistic": "pearson", "value": 0.5, "low": 0.4, "high": 0.6, "p": 0.001, "p_method": "t",
        "n": 600, "n_excluded": 0, "n_left_out": 0, "n_groups": 150, "n_systems": 4, "n_truncated": 0, "n_empty": 0,
        "contaminated": False, "in_best_group": None, "ceiling": 0.7, "attainable": 0.9, "alpha": 0.3,
        "threshold": math.nan, "threshold_method": "", "resamples": 10_000, "higher_is_better": True,
        "selection": "all rows", "revision": "abc",
        "signature": signed("metric:deb|checkpoint:deb-minilm@0123456789ab|dtype:float32"),
    }  # fmt: skip
    return Result(**row | changes)


def signed(metric: str) -> str:
    """The signature of a number that a metric with this one gave."""
    return f"benchmark:convai2_grade@1|interval:0.95 percentile, 10000 resamples|metric:[{metric}]|dialeval:0.2.0"
