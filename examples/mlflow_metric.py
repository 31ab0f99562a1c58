"""The judge as a scorer of an MLflow evaluation: value, aspects and reason stand beside every reply.

`make test-examples` runs it. Elsewhere: pip install "dialeval[offline]" mlflow, then

    MLFLOW_DISABLE_TELEMETRY=true python examples/mlflow_metric.py
"""

from __future__ import annotations

from typing import Any

import mlflow
from mlflow.entities import Feedback
from mlflow.genai import scorer

import dialeval

JUDGE = dialeval.load("judge")
ROWS = [
    {"inputs": {"context": ["How was your trip?", "Great, but I lost my suitcase."]}, "outputs": reply}
    for reply in ("Oh no! Did the airline find it?", "The library closes at six on Fridays.")
]


@scorer  # type: ignore[untyped-decorator]
def dialogue_judge(inputs: dict[str, Any], outputs: str) -> list[Feedback]:
    """The judge's value of a reply with its reason, and those of its aspects that are known."""
    scores = JUDGE.score([outputs], [inputs["context"]], facts=[inputs.get("facts", [])])
    aspects = {name: float(column[0]) for name, column in scores.aspects.items() if column[0] == column[0]}
    return [
        Feedback(name="judge", value=scores[0], rationale=scores.explain(0)),
        *(Feedback(name=f"judge.{name}", value=value) for name, value in aspects.items()),
    ]


def evaluate(rows: list[dict[str, Any]]) -> Any:
    """One evaluation; its table opens in pandas and in MLflow's pages."""
    return mlflow.genai.evaluate(data=rows, scorers=[dialogue_judge])


if __name__ == "__main__":
    mlflow.set_tracking_uri("sqlite:///mlflow.db")
    print(evaluate(ROWS).result_df[["response", "judge/value", "judge.relevant/value"]].to_string())
