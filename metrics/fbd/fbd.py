"""FBD as an `evaluate` module. What it computes is in the package dialeval."""

import evaluate

from dialeval.hub.evaluate_module import DialogueModule, module_info

_EXAMPLES = """
Examples:

    >>> fbd = evaluate.load("dialeval/fbd")
    >>> human = ["Yes, an old dog called Max.", "I can cook while you rest.", "Great, we danced all night!"]
    >>> contexts = [["Do you have any pets?"], ["I am rather tired."], ["How was the concert?"]]
    >>> same = fbd.compute(predictions=human, contexts=contexts, references=human)
    >>> dull = fbd.compute(predictions=["I do not know."] * 3, contexts=contexts, references=human)
    >>> print(f"{abs(same['fbd']):.2f}")
    0.00
    >>> dull["fbd"] > same["fbd"]
    True
"""
_INFO = module_info("fbd", _EXAMPLES)


@evaluate.utils.file_utils.add_start_docstrings(_INFO["description"], _INFO["inputs_description"])
class Fbd(DialogueModule, evaluate.Metric):
    """How far a system's replies lie from human ones, as two sets; closer to zero is better."""

    metric_name = "fbd"

    def _info(self):
        return evaluate.MetricInfo(**_INFO)
