"""One model of a panel: it is asked about rows and says a value for each, or why it has none."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from dialeval.llm.answers import Answer
from dialeval.llm.protocol import Protocol
from dialeval.llm.questions import Question
from dialeval.llm.reading import NoAnswer, expectation, read_aspects, read_choice, read_number
from dialeval.llm.runner import Asked, Nothing, Runner
from dialeval.llm.usage import Usage, seen_in, usage_of


@dataclass(frozen=True)
class Said:
    """What a model said of a row."""

    value: float | None
    aspects: Mapping[str, float] = field(default_factory=dict)
    problem: str = ""
    #: Whether another time it may have a value.
    passing: bool = False


@dataclass(frozen=True)
class Heard:
    """What a model said of all rows."""

    said: Sequence[Said]
    usage: Usage
    seen: Mapping[str, str]


@dataclass
class LlmMember:
    """A model, and how it is asked: once, or, where tokens have no probabilities, for samples."""

    model: str
    protocol: Protocol
    #: Asks once, with token probabilities if these are wanted.
    once: Runner
    #: Asks for samples at temperature 1.
    often: Runner
    #: `auto` sees with the first question whether the server gives probabilities.
    weighting: str

    def hear(self, rows: Sequence[Sequence[Question]], advance: Callable[[int], None]) -> Heard:
        """Ask everything about all rows; a row is one question, or two of a choice in both orders."""
        questions = [question for row in rows for question in row]
        runner = self._runner(questions)
        asked = runner.ask(questions, advance)
        answers = iter(asked)
        said = [self._say(row, [next(answers) for _ in row], weigh=runner is self.once) for row in rows]
        seen = seen_in(asked)
        if self.protocol.answer == "number":
            seen["weighting"] = "logprobs" if runner is self.once else f"{self.often.options['n']} samples"
        return Heard(said, usage_of(asked), seen)

    def first_runner(self) -> Runner:
        """Who is asked first."""
        return self.often if self.protocol.answer == "number" and self.weighting == "samples" else self.once

    def _runner(self, questions: Sequence[Question]) -> Runner:
        if self.protocol.answer != "number" or self.weighting == "logprobs":
            return self.once
        if self.weighting == "samples" or not questions:
            return self.often
        outcome = self.once.ask(questions[:1])[0].outcome
        return self.once if isinstance(outcome, Nothing) or outcome.logprobs else self.often

    def _say(self, questions: Sequence[Question], asked: Sequence[Asked], *, weigh: bool) -> Said:
        for one in asked:
            if isinstance(one.outcome, Nothing):
                return Said(None, problem=one.outcome.why, passing=one.outcome.passing)
            if one.outcome.refusal is not None:
                return Said(None, problem=f"refused: {one.outcome.refusal[:200]}")
        answers = [one.outcome for one in asked if isinstance(one.outcome, Answer)]
        try:
            if self.protocol.answer == "choice":
                return _preferred(*answers)
            if self.protocol.answer == "number":
                return self._weighted(answers[0]) if weigh else self._averaged(answers[0])
            scores = read_aspects(answers[0].texts[0], questions[0].aspects, self.protocol.low, self.protocol.high)
            return Said(scores.get("overall", fmean(scores.values())), scores)
        except NoAnswer as error:
            cut = ", and was cut off at max_tokens" if any(one.finish == "length" for one in answers) else ""
            return Said(None, problem=f"{error}{cut}")

    def _weighted(self, answer: Answer) -> Said:
        if not answer.logprobs:
            raise NoAnswer("the server gave no probabilities of tokens; choose weighting=samples")
        return Said(expectation(answer.texts[0], answer.logprobs, self.protocol.low, self.protocol.high)[0])

    def _averaged(self, answer: Answer) -> Said:
        """The mean of the samples that can be read; of fewer than half it would be another judge's."""
        values: list[float] = []
        problem = ""
        for text in answer.texts:
            try:
                values.append(read_number(text, self.protocol.low, self.protocol.high).value)
            except NoAnswer as error:
                problem = str(error)
        if 2 * len(values) < len(answer.texts) or not values:
            raise NoAnswer(f"only {len(values)} of {len(answer.texts)} samples can be read ({problem})")
        return Said(fmean(values))


def _preferred(in_front: Answer, behind: Answer) -> Said:
    """The share of the reply: the mean over both orders, so that a taste for a place cancels out."""
    first, second = read_choice(in_front.texts[0]), 1 - read_choice(behind.texts[0])
    return Said((first + second) / 2, {"as_first": first, "as_second": second})
