"""The ensemble as an `evaluate` module. What it computes is in the package dialeval."""

import evaluate

from dialeval.evaluate_module import DialogueModule, module_info


class Ensemble(DialogueModule, evaluate.Metric):
    """The mean human percentile of the suite's trained metrics; higher is better."""

    metric_name = "ensemble"

    def _info(self):
        return evaluate.MetricInfo(**module_info("ensemble"))
