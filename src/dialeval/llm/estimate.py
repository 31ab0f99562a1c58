"""What a run would ask and cost, without asking."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from dialeval.exchange import Dialogue, Exchange
from dialeval.llm.judge import LlmJudge
from dialeval.llm.questions import Question
from dialeval.llm.runner import Runner


@dataclass
class CostEstimate:
    """Sums for one model. Tokens read are estimated; of tokens written only the most is known."""

    model: str
    questions: int = 0
    kept: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float | None = None

    def line(self) -> str:
        """The sums for people."""
        text = f"{self.model}: {self.questions} questions, {self.kept} of them answered before"
        text += f"; about {self.tokens_in} tokens to read and at most {self.tokens_out} to write"
        return text if self.cost is None else f"{text}; about ${self.cost:.6f} at most"


def estimates(judge: LlmJudge, items: Iterable[Exchange | Dialogue]) -> list[CostEstimate]:
    """What asking about these rows would take, by model; equal questions count once."""
    runners = [member.first_runner() for member in judge.members]
    found = [CostEstimate(one.server.model, cost=None if one.price is None else 0.0) for one in runners]
    asked: set[str] = set()
    for question in (question for item in items for question in judge.questions_about(item)):
        if question.digest in asked:
            continue
        asked.add(question.digest)
        for estimate, runner in zip(found, runners, strict=True):
            _add(estimate, runner, question)
    return found


def _add(estimate: CostEstimate, runner: Runner, question: Question) -> None:
    estimate.questions += 1
    if runner.kept(question) is not None:
        estimate.kept += 1
        return
    tokens_in, tokens_out = runner.likely(question)
    estimate.tokens_in += tokens_in
    estimate.tokens_out += tokens_out
    if estimate.cost is not None and runner.price is not None:
        estimate.cost += runner.price.of(tokens_in, tokens_out)
