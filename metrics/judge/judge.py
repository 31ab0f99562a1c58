"""The judge as an `evaluate` module. What it computes is in the package dialeval."""

import evaluate

from dialeval.hub.evaluate_module import DialogueModule, module_info

_EXAMPLES = """
Examples:

    >>> judge = evaluate.load("dialeval/judge")
    >>> results = judge.compute(
    ...     predictions=["Maybe you left them in the car?", "I like pancakes with syrup."],
    ...     contexts=[["Did you find your keys?", "Not yet, I have looked everywhere."]] * 2,
    ... )
    >>> fitting, unrelated = results["scores"]
    >>> fitting > unrelated
    True
    >>> len(results["reasons"])
    2
"""
_INFO = module_info("judge", _EXAMPLES)


@evaluate.utils.file_utils.add_start_docstrings(_INFO["description"], _INFO["inputs_description"])
class Judge(DialogueModule, evaluate.Metric):
    """How good people would find a response, with its aspects; higher is better."""

    metric_name = "judge"

    def _info(self):
        return evaluate.MetricInfo(**_INFO)
