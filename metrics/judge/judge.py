"""The judge as an `evaluate` module. What it computes is in the package dialeval."""

import evaluate

from dialeval.evaluate_module import DialogueModule, module_info


class Judge(DialogueModule, evaluate.Metric):
    """How good people would find a response, with its aspects; higher is better."""

    metric_name = "judge"

    def _info(self):
        return evaluate.MetricInfo(**module_info("judge"))
