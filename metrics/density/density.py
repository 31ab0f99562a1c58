"""DENSITY as an `evaluate` module. What it computes is in the package dialeval."""

import evaluate

from dialeval.evaluate_module import DialogueModule, module_info


class Density(DialogueModule, evaluate.Metric):
    """How dense human conversation is around a response; higher is better."""

    metric_name = "density"

    def _info(self):
        return evaluate.MetricInfo(**module_info("density"))
