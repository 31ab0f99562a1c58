"""CMN as an `evaluate` module. What it computes is in the package dialeval."""

import evaluate

from dialeval.hub.evaluate_module import DialogueModule, module_info

_EXAMPLES = """
Examples:

    >>> cmn = evaluate.load("dialeval/cmn")
    >>> results = cmn.compute(
    ...     predictions=["Maybe you left them in the car?", "I like pancakes with syrup."],
    ...     contexts=[["Did you find your keys?", "Not yet, I have looked everywhere."]] * 2,
    ...     references=["Have you looked in the car?"] * 2,
    ... )
    >>> fitting, unrelated = results["scores"]
    >>> fitting > unrelated
    True
"""
_INFO = module_info("cmn", _EXAMPLES)


@evaluate.utils.file_utils.add_start_docstrings(_INFO["description"], _INFO["inputs_description"])
class Cmn(DialogueModule, evaluate.Metric):
    """What a response shares with its context and with a reference; higher is better."""

    metric_name = "cmn"

    def _info(self):
        return evaluate.MetricInfo(**_INFO)
