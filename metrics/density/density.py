"""DENSITY as an `evaluate` module. What it computes is in the package dialeval."""

import evaluate

from dialeval.hub.evaluate_module import DialogueModule, module_info

_EXAMPLES = """
Examples:

    >>> density = evaluate.load("dialeval/density")
    >>> results = density.compute(
    ...     predictions=["Maybe you left them in the car?", "I like pancakes with syrup."],
    ...     contexts=[["Did you find your keys?", "Not yet, I have looked everywhere."]] * 2,
    ... )
    >>> fitting, unrelated = results["scores"]
    >>> fitting > unrelated
    True

Another scale: the share of human replies that score lower.

    >>> results = density.compute(
    ...     predictions=["Maybe you left them in the car?"],
    ...     contexts=[["Did you find your keys?", "Not yet, I have looked everywhere."]],
    ...     scale="human_percentile",
    ... )
    >>> 0 <= results["density"] <= 1
    True
"""
_INFO = module_info("density", _EXAMPLES)


@evaluate.utils.file_utils.add_start_docstrings(_INFO["description"], _INFO["inputs_description"])
class Density(DialogueModule, evaluate.Metric):
    """How dense human conversation is around a response; higher is better."""

    metric_name = "density"

    def _info(self):
        return evaluate.MetricInfo(**_INFO)
