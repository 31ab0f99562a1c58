"""DEB as an `evaluate` module. What it computes is in the package dialeval."""

import evaluate

from dialeval.evaluate_module import DialogueModule, module_info


class Deb(DialogueModule, evaluate.Metric):
    """The probability that a response is a valid next turn; higher is better."""

    metric_name = "deb"

    def _info(self):
        return evaluate.MetricInfo(**module_info("deb"))
