"""Whatever moves a value stands in the signature: every option of every metric is tried, or said to move nothing."""

from __future__ import annotations

from typing import Any

import pytest

from dialeval.registry import REGISTRY, _options, load, metric_class

#: Another value of each option that moves values.
OTHER: dict[str, Any] = {
    "max_length": 24, "dtype": "bfloat16", "prior_encoder": "posterior_trunk", "samples": 7, "seed": 5,
    "mean_term": "norm", "references_per_query": 3, "clusters": 5, "runs": 2, "grid": "paper", "m": 11,
    "f1_epsilon": 1e-4, "aggregation": "avg", "smoothing": "none", "order": 1, "weights": [0.5, 0.5], "layer": 2,
    "part": "precision", "pooling": "cls",
}  # fmt: skip
#: The same where one name means different things.
OF_METRIC: dict[tuple[str, str], Any] = {
    ("density", "scoring"): "classifier",
    ("cmn", "scoring"): "without_mi",
    ("sentence_cosine", "pooling"): "pooler",
}
#: What another option needs to be of consequence.
WITH: dict[str, dict[str, Any]] = {"m": {"grid": "paper"}}
#: How a value is computed or worded; `resamples` moves intervals alone, the embedded checkpoints know one truncation,
#: and where weights come from is tested with checkpoints.
NEUTRAL = {*"checkpoint revision device batch_tokens batch_size reasons reference model resamples truncation".split()}
#: Metrics that load here, without a download and in a moment.
METRICS = [
    *("density", "fbd", "prd", "cmn", "deb", "quantidce", "judge", "bleu1", "bleu4", "deltableu", "rouge2", "rougeL"),
    *("bertscore", "sentence_cosine"),
]


@pytest.mark.encoder
@pytest.mark.parametrize("name", METRICS)
def test_every_option_stands_in_the_signature_or_moves_nothing(name: str) -> None:
    assert name in REGISTRY
    for option in sorted(_options(metric_class(name)[0])[0].keys() - NEUTRAL):
        other = OF_METRIC.get((name, option), OTHER.get(option))
        assert other is not None, f"{name} has an option {option} of which nobody said whether it moves values"
        beside = WITH.get(option, {})
        plain, changed = load(name, **beside).signature(), load(name, **beside, **{option: other}).signature()
        assert str(plain) != str(changed), option
