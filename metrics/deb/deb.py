"""DEB as an `evaluate` module. What it computes is in the package dialeval."""

import evaluate

from dialeval.hub.evaluate_module import DialogueModule, module_info

_EXAMPLES = """
Examples:

    >>> deb = evaluate.load("dialeval/deb")
    >>> results = deb.compute(
    ...     predictions=["Maybe you left them in the car?", "I like pancakes with syrup."],
    ...     contexts=[["Did you find your keys?", "Not yet, I have looked everywhere."]] * 2,
    ... )
    >>> fitting, unrelated = results["scores"]
    >>> fitting > unrelated
    True
    >>> 0 < results["deb"] < 1
    True
"""
_INFO = module_info("deb", _EXAMPLES)


@evaluate.utils.file_utils.add_start_docstrings(_INFO["description"], _INFO["inputs_description"])
class Deb(DialogueModule, evaluate.Metric):
    """The probability that a response is a valid next turn; higher is better."""

    metric_name = "deb"

    def _info(self):
        return evaluate.MetricInfo(**_INFO)
