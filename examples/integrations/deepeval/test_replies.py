"""The judge as a metric of deepeval, for single replies and for whole conversations; no language model is asked.

`python examples/run.py deepeval` runs it in an environment of its own. Elsewhere: pip install --no-deps deepeval, since
deepeval asks for an older click than huggingface-hub does, then what it needs (requirements.txt beside this file), then

    DEEPEVAL_TELEMETRY_OPT_OUT=1 python -m pytest examples/integrations/deepeval/test_replies.py
"""

from __future__ import annotations

from typing import Any

from deepeval import assert_test
from deepeval.metrics import BaseConversationalMetric, BaseMetric
from deepeval.test_case import ConversationalTestCase, LLMTestCase, Turn

import dialeval

JUDGE = dialeval.load("judge")


class DialogueJudge(BaseMetric):  # type: ignore[misc]
    """How good people would find the reply; `context` of a test case holds facts."""

    __name__ = "Dialogue judge"

    def __init__(self, threshold: float = 0.5) -> None:
        self.threshold, self.async_mode = threshold, False

    def measure(self, test_case: LLMTestCase, *args: Any, **options: Any) -> float:
        """The value of one reply, with its reason and aspects."""
        scores = JUDGE.score([test_case.actual_output], [[test_case.input]], facts=[test_case.context or []])
        self.score, self.reason = scores[0], scores.explain(0)
        self.score_breakdown = {name: float(column[0]) for name, column in scores.aspects.items()}
        return self.score

    async def a_measure(self, test_case: LLMTestCase, *args: Any, **options: Any) -> float:
        """The same; scoring waits for nobody."""
        return self.measure(test_case)


class ConversationJudge(BaseConversationalMetric):  # type: ignore[misc]
    """How good people would find the assistant's side of a conversation."""

    __name__ = "Conversation judge"

    def __init__(self, threshold: float = 0.5) -> None:
        self.threshold, self.async_mode = threshold, False

    def measure(self, test_case: ConversationalTestCase, *args: Any, **options: Any) -> float:
        """The value of one conversation; the reason names its weakest turn."""
        turns, speakers = zip(*((turn.content, turn.role) for turn in test_case.turns), strict=True)
        scores = JUDGE.score_dialogues([turns], speakers=[speakers])
        self.score, self.reason = scores[0], scores.explain(0)
        return self.score

    async def a_measure(self, test_case: ConversationalTestCase, *args: Any, **options: Any) -> float:
        """The same; scoring waits for nobody."""
        return self.measure(test_case)


def test_a_reply() -> None:
    """A test of deepeval's own kind: it fails below the threshold."""
    reply = "Oh no! Did the airline find it?"
    assert_test(LLMTestCase(input="Great, but I lost my suitcase.", actual_output=reply), [DialogueJudge(0.5)])


def test_a_reply_that_does_not_fit_fails() -> None:
    """What is off-topic stays below it."""
    metric = DialogueJudge(0.5)
    metric.measure(LLMTestCase(input="Do you have a pet?", actual_output="The library closes at six on Fridays."))
    assert not metric.is_successful(), metric.reason


def test_a_conversation() -> None:
    """User and assistant in turn; the assistant is judged."""
    texts = ["Hi, do you have a pet?", "Yes, I have a small dog.", "Nice! What is its name?", "His name is Bruno."]
    turns = [Turn(role=("user", "assistant")[index % 2], content=text) for index, text in enumerate(texts)]
    assert_test(ConversationalTestCase(turns=turns), [ConversationJudge(0.4)])
