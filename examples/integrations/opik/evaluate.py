"""The judge as metrics of Opik: of a reply, and of a conversation thread.

`python examples/run.py opik` runs it in an environment of its own. Elsewhere:
pip install "dialeval[offline]" opik, then

    OPIK_ANALYTICS_ENABLE=false python examples/integrations/opik/evaluate.py

which needs no server. With one of yours pass the metrics to `opik.evaluate` and `opik.evaluation.evaluate_threads`,
which send their traces there.
"""

from __future__ import annotations

import os
from typing import Any

os.environ.setdefault("OPIK_ANALYTICS_ENABLE", "false")
os.environ.setdefault("OPIK_SENTRY_ENABLE", "false")

from opik.evaluation.metrics import BaseMetric
from opik.evaluation.metrics.conversation.conversation_thread_metric import ConversationThreadMetric
from opik.evaluation.metrics.score_result import ScoreResult

import dialeval

JUDGE = dialeval.load("judge")
REPLIES = {
    "Great, but I lost my suitcase.": "Oh no! Did the airline find it?",
    "Do you have a pet?": "The library closes at six on Fridays.",
}
ASKED = ["Hi, do you have a pet?", "Nice! What is its name?"]
ANSWERS = {"dog": ["Yes, I have a small dog.", "His name is Bruno."], "taxi": ["You are an idiot.", "Taxi taxi taxi."]}


class DialogueJudge(BaseMetric):  # type: ignore[misc]
    """How good people would find a reply: its value, and the aspects that are known of it."""

    def __init__(self, name: str = "judge") -> None:
        super().__init__(name=name, track=False)

    def score(self, input: str, output: str, context: list[str] | None = None, **_: Any) -> list[ScoreResult]:
        """`input` is the user's turn, `context` holds the turns before it."""
        scores = JUDGE.score([output], [[*(context or []), input]])
        aspects = {name: float(column[0]) for name, column in scores.aspects.items() if column[0] == column[0]}
        return [
            ScoreResult(name=self.name, value=scores[0], reason=scores.explain(0)),
            *(ScoreResult(name=f"{self.name}.{name}", value=value) for name, value in aspects.items()),
        ]


class ConversationJudge(ConversationThreadMetric):  # type: ignore[misc]
    """How good people would find the assistant's side of a conversation."""

    def __init__(self, name: str = "conversation_judge") -> None:
        super().__init__(name=name, track=False)

    def score(self, conversation: list[dict[str, str]], **_: Any) -> ScoreResult:
        """The reason names the weakest turn."""
        turns, speakers = zip(*((turn["content"], turn["role"]) for turn in conversation), strict=True)
        scores = JUDGE.score_dialogues([turns], speakers=[speakers])
        return ScoreResult(name=self.name, value=scores[0], reason=scores.explain(0))


def main() -> None:
    """Two replies, then two threads."""
    for asked, reply in REPLIES.items():
        value, *_ = DialogueJudge().score(asked, reply)
        print("good" if value.value > 0.5 else "bad ", "reply:", reply)
    for name, answers in ANSWERS.items():
        turns = [turn for pair in zip(ASKED, answers, strict=True) for turn in pair]
        roles = ["user", "assistant"] * len(answers)
        thread = [{"role": role, "content": turn} for role, turn in zip(roles, turns, strict=True)]
        print("good" if ConversationJudge().score(thread).value > 0.5 else "bad ", "conversation:", name)


if __name__ == "__main__":
    main()
