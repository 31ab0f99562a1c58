"""QuantiDCE as an `evaluate` module. What it computes is in the package dialeval."""

import evaluate

from dialeval.hub.evaluate_module import DialogueModule, module_info

_EXAMPLES = """
Examples:

    >>> quantidce = evaluate.load("dialeval/quantidce")
    >>> results = quantidce.compute(
    ...     predictions=["Maybe you left them in the car?", "I like pancakes with syrup."],
    ...     contexts=[["Did you find your keys?", "Not yet, I have looked everywhere."]] * 2,
    ... )
    >>> fitting, unrelated = results["scores"]
    >>> fitting > unrelated
    True
    >>> 1 <= results["quantidce"] <= 5
    True
"""
_INFO = module_info("quantidce", _EXAMPLES)


@evaluate.utils.file_utils.add_start_docstrings(_INFO["description"], _INFO["inputs_description"])
class QuantiDce(DialogueModule, evaluate.Metric):
    """Coherence of a response as people would rate it, from 1 to 5; higher is better."""

    metric_name = "quantidce"

    def _info(self):
        return evaluate.MetricInfo(**_INFO)
