"""CMN as an `evaluate` module. What it computes is in the package dialeval."""

import evaluate

from dialeval.evaluate_module import DialogueModule, module_info


class Cmn(DialogueModule, evaluate.Metric):
    """What a response shares with its context and with a reference; higher is better."""

    metric_name = "cmn"

    def _info(self):
        return evaluate.MetricInfo(**module_info("cmn"))
