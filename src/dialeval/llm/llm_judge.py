"""The metric `llm`: a language model as a judge of replies, pairs of replies and dialogues."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from dialeval.core.exchange import Dialogue, Exchange
from dialeval.core.scores import Signature
from dialeval.io.files import progress_bar
from dialeval.llm.asking import Asker, Outcome, Price, open_cache, read_price, usage_of
from dialeval.llm.client import Answer, Client, likely_tokens
from dialeval.llm.protocol import Protocol, Question, read_protocol
from dialeval.llm.reading import NoAnswer, Rating, expectation, read_aspects, read_choice, read_number
from dialeval.registry.interface import Judged, Level, Metric, MetricInfo

#: As many likely tokens as servers give at most.
_LIKELY_TOKENS = 20


def _info(protocol: Protocol, model: str | None = None) -> MetricInfo:
    is_choice = protocol.answer == "choice"
    rates, prefers = "rates the reply when asked", "prefers the reply to its rival, the first reference"
    return MetricInfo(
        name="llm",
        title=f"{protocol.title} by {model or 'a language model'}",
        level=Level.TURN,
        higher_is_better=True,
        range=(protocol.low, protocol.high),
        summary=f"how often a language model {prefers}" if is_choice else f"how a language model {rates}",
        needs=frozenset({"contexts", "references"} if is_choice else {"contexts"}),
        citation=protocol.citation,
        aspects=protocol.columns(dialogues=False),
        dialogue_aspects=protocol.columns(dialogues=True),
        of_dialogues="each dialogue as a whole" if protocol.dialogue else "",
        texts=("answer",),
        english=False,
    )


class LlmJudge(Metric):
    """A language model as a judge.

    Args:
        model: the model's name, as its server knows it.
        base_url: the address of a server that speaks OpenAI's chat completions (default: OPENAI_BASE_URL, else OpenAI).
        protocol: `llm_eval`, `g_eval`, `pairwise`, or a file of your own.
        temperature: of a single answer.
        seed: sent with every request; servers that know it answer alike.
        samples: number of samples where the protocol asks for a number and the server gives no probabilities of
            tokens (default: as the protocol says).
        max_tokens: maximum length of an answer (default: as the protocol says). Reasoning models need more.
        concurrency: maximum number of requests at once.
        timeout: seconds that an answer may take, all tries together; waiting after a rate limit is not counted.
        retries: how often the client repeats a request after rate limits, server errors and lost connections.
        prices: dollars per million tokens by model, as a mapping or a YAML or JSON file.
        max_cost: stop at this cost, in dollars; needs prices. Requests under way are finished.
        answers: folder of the cached answers (default: the user's cache); false caches nothing.
        key_variable: the environment variable that holds the key.
    """

    info = _info(read_protocol("llm_eval"))

    def __init__(
        self,
        *,
        model: str | None = None,
        base_url: str | None = None,
        protocol: str | Path = "llm_eval",
        temperature: float = 0.0,
        seed: int = 0,
        samples: int | None = None,
        max_tokens: int | None = None,
        concurrency: int = 8,
        timeout: float = 60.0,
        retries: int = 5,
        prices: str | Path | Mapping[str, Any] | None = None,
        max_cost: float | None = None,
        answers: str | Path | bool = True,
        key_variable: str = "OPENAI_API_KEY",
    ) -> None:
        if not isinstance(model, str) or not model.strip():
            raise ValueError(f"model is {model!r}; name the language model, for example model='gpt-4o-mini'")
        _check({"samples": samples, "max_tokens": max_tokens, "concurrency": concurrency}, (int,), 1)
        _check({"retries": retries, "seed": seed}, (int,), 0)
        _check({"temperature": temperature, "timeout": timeout, "max_cost": max_cost}, (int, float), 0)
        if max_cost is not None and prices is None:
            raise ValueError("max_cost needs prices; give dollars per million tokens by model")
        self.protocol = read_protocol(protocol)
        self.info = self.info_with(protocol=protocol, model=model)  # type: ignore[misc]
        client = Client(model, base_url, key_variable, timeout, retries)
        if answers is True:
            answers = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dialeval" / "llm"
        cache = None if answers is False else open_cache(answers)
        price = Price() if prices is None else read_price(prices, model)
        limit = math.inf if max_cost is None else max_cost
        self._asker = Asker(client, self._read, cache, concurrency, price, limit)
        self._once = {"temperature": temperature, "seed": seed, "max_tokens": max_tokens or self.protocol.max_tokens}
        self._likely = {**self._once, "logprobs": _LIKELY_TOKENS}
        self._samples = {**self._once, "temperature": 1.0, "n": samples or self.protocol.samples}

    @classmethod
    def info_with(cls, **options: Any) -> MetricInfo:
        """What the protocol of these options judges, on which scale, and with which columns beside the value."""
        return _info(read_protocol(options.get("protocol") or "llm_eval"), options.get("model"))

    def judge(self, exchanges: Sequence[Exchange], *, progress: bool = False) -> Judged:
        """Ask about every reply."""
        return self._judged(exchanges, self.protocol.columns(dialogues=False), progress)

    def judge_dialogues(self, dialogues: Sequence[Dialogue], *, progress: bool = False) -> Judged:
        """Ask about every dialogue as a whole, or turn by turn where the protocol says nothing of dialogues."""
        if self.protocol.dialogue is None:
            return super().judge_dialogues(dialogues, progress=progress)
        return self._judged(dialogues, self.protocol.columns(dialogues=True), progress)

    def signature(self) -> Signature:
        """What is asked of whom; what only the answers tell (served model, fingerprint) is added after scoring."""
        parts = {
            "metric": "llm",
            "protocol": f"{self.protocol.name}@{self.protocol.digest}",
            "model": self._asker.client.model,
            "server": self._asker.client.host,
            **{name: str(value) for name, value in self._once.items()},
        }
        if self.protocol.answer == "number":
            parts["weighting"] = f"auto, {self._samples['n']} samples"
        return Signature(parts)

    def estimate(self, rows: Iterable[Exchange | Dialogue]) -> dict[str, float]:
        """What asking about these rows would take: `questions`, `cached`, `tokens_in`, `tokens_out`, `cost`.

        Tokens to read are estimated; tokens to write are the most there can be, if the server gives probabilities of
        tokens where the protocol asks for a number.
        """
        options = self._likely if _has_probabilities(self.protocol) else self._once
        if self.protocol.answer == "number" and options is self._once:
            options = self._samples
        total = dict.fromkeys(("questions", "cached", "tokens_in", "tokens_out"), 0.0)
        known: set[str] = set()
        for question in (question for row in rows for question in self.protocol.questions(row)):
            if question.digest in known:
                continue
            known.add(question.digest)
            total["questions"] += 1
            if self._asker.cached(question, options) is not None:
                total["cached"] += 1
                continue
            total["tokens_in"] += likely_tokens(question)
            total["tokens_out"] += options["max_tokens"] * options.get("n", 1)
        return {**total, "cost": self._asker.price.of(total["tokens_in"], total["tokens_out"])}

    def _judged(self, rows: Sequence[Exchange | Dialogue], aspects: Sequence[str], progress: bool) -> Judged:
        questions = [self.protocol.questions(row) for row in rows]
        flat = [question for of_row in questions for question in of_row]
        with progress_bar("asking", len(flat), shown=progress) as advance:
            outcomes, unused = self._ask(flat, advance)
        values, columns = np.full(len(rows), math.nan), {name: np.full(len(rows), math.nan) for name in aspects}
        problems: dict[int, str] = {}
        rest = iter(outcomes)
        by_row = [[next(rest) for _ in question] for question in questions]
        for row, answers in enumerate(by_row):
            if problem := next((outcome.problem for outcome in answers if outcome.problem), ""):
                problems[row] = problem
                continue
            rating = _of_row([outcome.rating for outcome in answers if outcome.rating is not None])
            values[row] = rating.value
            for name, value in rating.aspects.items():
                columns[name][row] = value
        return Judged(
            values,
            aspects=columns,
            details={"usage": usage_of([*unused, *outcomes])},
            texts={"answer": [_shown(answers) for answers in by_row]},
            problems=problems,
            # None of them is cached, so all are asked again.
            passing=frozenset(problems),
            seen=self._seen(outcomes),
        )

    def _ask(self, questions: Sequence[Question], advance: Callable[[int], None]) -> tuple[list[Outcome], ...]:
        """Outcomes in the order of the questions, and that of a first question whose answer is of no use."""
        ask = self._asker.ask
        if self.protocol.answer != "number":
            return ask(questions, self._once, advance), []
        if not _has_probabilities(self.protocol) or self._asker.cached(questions[0], self._samples) is not None:
            return ask(questions, self._samples, advance), []
        # The first answer shows whether the server gives probabilities of tokens.
        first = ask(questions[:1], self._likely, lambda done: None)
        if first[0].answer is None or first[0].answer.logprobs:
            return first + ask(questions[1:], self._likely, advance), []
        return ask(questions, self._samples, advance), first

    def _seen(self, outcomes: Sequence[Outcome]) -> dict[str, str]:
        """What only the answers can tell and the signature should."""
        answers = [outcome.answer for outcome in outcomes if outcome.answer is not None]
        parts = {
            "served": {answer.served for answer in answers},
            "fingerprint": {answer.fingerprint for answer in answers},
            "without": {part for answer in answers for part in answer.without},
        }
        if self.protocol.answer == "number":
            samples = f"{self._samples['n']} samples"
            parts["weighting"] = {"logprobs" if answer.logprobs else samples for answer in answers}
        return {name: "+".join(sorted(part - {""})) for name, part in parts.items() if part - {""}}

    def _read(self, question: Question, answer: Answer, options: Mapping[str, Any]) -> Rating:
        low, high, text = self.protocol.low, self.protocol.high, answer.texts[0]
        if answer.refusal is not None:
            raise NoAnswer(f"refused: {answer.refusal[:200]}")
        if self.protocol.answer == "choice":
            return Rating(read_choice(text))
        if self.protocol.answer == "json":
            scores = read_aspects(text, question.aspects, low, high)
            return Rating(scores.get("overall", fmean(scores.values())), scores)
        if "n" in options:
            return Rating(_mean_of_samples(answer.texts, low, high))
        return Rating(expectation(text, answer.logprobs, low, high))


def _mean_of_samples(texts: Sequence[str], low: float, high: float) -> float:
    """The mean of the samples that can be read, if at least half can; of fewer it would be another judge's."""
    values, problem = [], ""
    for text in texts:
        try:
            values.append(read_number(text, low, high)[0])
        except NoAnswer as error:
            problem = str(error)
    if 2 * len(values) < len(texts):
        raise NoAnswer(f"only {len(values)} of {len(texts)} samples can be read ({problem})")
    return fmean(values)


def _of_row(ratings: Sequence[Rating]) -> Rating:
    """The rating of a row. Of a choice, the mean over both orders, so that a taste for a place cancels out."""
    if len(ratings) == 1:
        return ratings[0]
    first, second = ratings[0].value, 1 - ratings[1].value
    return Rating((first + second) / 2, {"as_first": first, "as_second": second})


def _shown(outcomes: Sequence[Outcome]) -> str:
    """What the model answered about a row; several answers and samples are separated by a line."""
    answers = [outcome.answer for outcome in outcomes if outcome.answer is not None]
    return "\n---\n".join(text or answer.refusal or "" for answer in answers for text in answer.texts)


def _has_probabilities(protocol: Protocol) -> bool:
    """Whether scores can be read off token probabilities: a score of one digit is one token to every model."""
    return protocol.answer == "number" and protocol.low >= 0 and protocol.high <= 9


def _check(options: Mapping[str, Any], kinds: tuple[type, ...], least: int) -> None:
    for name, value in options.items():
        if value is not None and not (type(value) in kinds and least <= value < math.inf):
            raise ValueError(
                f"{name} is {value!r}; it must be a {'' if float in kinds else 'whole '}number of at least {least}"
            )
