"""PRD as an `evaluate` module. What it computes is in the package dialeval."""

import evaluate

from dialeval.evaluate_module import DialogueModule, module_info


class Prd(DialogueModule, evaluate.Metric):
    """How far a system's replies and human ones cover each other; higher is better."""

    metric_name = "prd"

    def _info(self):
        return evaluate.MetricInfo(**module_info("prd"))
