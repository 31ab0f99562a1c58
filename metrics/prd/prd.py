"""PRD as an `evaluate` module. What it computes is in the package dialeval."""

import evaluate

from dialeval.hub.evaluate_module import DialogueModule, module_info

_EXAMPLES = """
Examples:

    >>> prd = evaluate.load("dialeval/prd")
    >>> human = ["Yes, an old dog called Max.", "I can cook while you rest.", "Great, we danced all night!"]
    >>> contexts = [["Do you have any pets?"], ["I am rather tired."], ["How was the concert?"]]
    >>> same = prd.compute(predictions=human, contexts=contexts, references=human)
    >>> dull = prd.compute(predictions=["I do not know."] * 3, contexts=contexts, references=human)
    >>> print(f"{same['prd']:.2f}")
    1.00
    >>> dull["prd"] < same["prd"]
    True
"""
_INFO = module_info("prd", _EXAMPLES)


@evaluate.utils.file_utils.add_start_docstrings(_INFO["description"], _INFO["inputs_description"])
class Prd(DialogueModule, evaluate.Metric):
    """How far a system's replies and human ones cover each other; higher is better."""

    metric_name = "prd"

    def _info(self):
        return evaluate.MetricInfo(**_INFO)
