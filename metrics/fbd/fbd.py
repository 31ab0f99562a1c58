"""FBD as an `evaluate` module. What it computes is in the package dialeval."""

import evaluate

from dialeval.evaluate_module import DialogueModule, module_info


class Fbd(DialogueModule, evaluate.Metric):
    """How far a system's replies lie from human ones, as two sets; closer to zero is better."""

    metric_name = "fbd"

    def _info(self):
        return evaluate.MetricInfo(**module_info("fbd"))
