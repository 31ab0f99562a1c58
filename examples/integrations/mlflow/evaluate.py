"""The judge as two scorers of an MLflow evaluation: of a row, and of a session of traces.

`python examples/run.py mlflow` runs it in an environment of its own. Elsewhere:
pip install "dialeval[offline]" mlflow, then

    MLFLOW_DISABLE_TELEMETRY=true python examples/integrations/mlflow/evaluate.py
"""

from __future__ import annotations

import logging
import os
import tempfile
from typing import Any

os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")

import mlflow
from mlflow.entities import Feedback, Trace
from mlflow.genai import scorer

import dialeval

JUDGE = dialeval.load("judge")
ROWS = [
    {"inputs": {"context": ["How was your trip?", "Great, but I lost my suitcase."]}, "outputs": reply}
    for reply in ("Oh no! Did the airline find it?", "The library closes at six on Fridays.")
]
ASKED = ["Hi, do you have a pet?", "Nice! What is its name?"]
ANSWERS = {"dog": ["Yes, I have a small dog.", "His name is Bruno."], "taxi": ["You are an idiot.", "Taxi taxi taxi."]}


@scorer  # type: ignore[untyped-decorator]
def dialogue_judge(inputs: dict[str, Any], outputs: str) -> list[Feedback]:
    """The judge's value of a reply with its reason, and those of its aspects that are known."""
    scores = JUDGE.score([outputs], [inputs["context"]], facts=[inputs.get("facts", [])])
    aspects = {name: float(column[0]) for name, column in scores.aspects.items() if column[0] == column[0]}
    return [
        Feedback(name="judge", value=scores[0], rationale=scores.explain(0)),
        *(Feedback(name=f"judge.{name}", value=value) for name, value in aspects.items()),
    ]


@scorer  # type: ignore[untyped-decorator]
def conversation_judge(session: list[Trace]) -> Feedback:
    """The judge's value of the bot's side of a conversation, whose turns are the traces of a session."""
    traces = sorted(session, key=lambda trace: trace.info.request_time)
    turns = [
        str(turn) for trace in traces for turn in (trace.data.spans[0].inputs["text"], trace.data.spans[0].outputs)
    ]
    scores = JUDGE.score_dialogues([turns], speakers=[["user", "bot"] * len(traces)])
    return Feedback(name="conversation", value=scores[0], rationale=scores.explain(0))


def talk(session: str, answers: list[str]) -> None:
    """A conversation as an app would trace it: one trace for each turn of the bot."""
    replies = iter(answers)

    @mlflow.trace  # type: ignore[untyped-decorator]
    def bot(text: str) -> str:
        mlflow.update_current_trace(metadata={"mlflow.trace.session": session})
        return next(replies)

    for question in ASKED:
        bot(question)


def main() -> None:
    """Evaluate rows, then the sessions that were traced."""
    with tempfile.TemporaryDirectory() as folder:
        mlflow.set_tracking_uri(f"sqlite:///{folder}/mlflow.db")
        mlflow.set_experiment("replies")
        table = mlflow.genai.evaluate(data=ROWS, scorers=[dialogue_judge]).result_df
        for row in sorted(table.to_dict("records"), key=lambda row: -row["judge/value"]):
            print("good" if row["judge/value"] > 0.5 else "bad ", "reply:", row["response"])
        mlflow.set_experiment("conversations")
        for session, answers in ANSWERS.items():
            talk(session, answers)
        mlflow.flush_trace_async_logging()
        traces = mlflow.search_traces(return_type="list")
        table = mlflow.genai.evaluate(data=traces, scorers=[conversation_judge]).result_df
        values = {}
        for row in table.to_dict("records"):
            if row.get("conversation/value") == row.get("conversation/value"):  # it stands beside one trace of each
                values[row["trace_metadata"]["mlflow.trace.session"]] = row["conversation/value"]
        for session, value in sorted(values.items(), key=lambda item: -item[1]):
            print("good" if value > 0.5 else "bad ", "conversation:", session)


if __name__ == "__main__":
    logging.getLogger("mlflow").setLevel(logging.ERROR)
    main()
