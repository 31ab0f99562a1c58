"""QuantiDCE as an `evaluate` module. What it computes is in the package dialeval."""

import evaluate

from dialeval.evaluate_module import DialogueModule, module_info


class QuantiDce(DialogueModule, evaluate.Metric):
    """Coherence of a response as people would rate it, from 1 to 5; higher is better."""

    metric_name = "quantidce"

    def _info(self):
        return evaluate.MetricInfo(**module_info("quantidce"))
