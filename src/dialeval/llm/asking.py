"""Many questions to one model: several at once, each answer kept in a cache, and no more once a cost is reached."""

from __future__ import annotations

import hashlib
import json
import math
import sqlite3
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from multiprocessing.pool import ThreadPool
from pathlib import Path
from typing import Any

import diskcache

from dialeval.io.files import read_yaml
from dialeval.llm.client import Answer, Client, QuestionFailed
from dialeval.llm.protocol import Question
from dialeval.llm.reading import NoAnswer, Rating
from dialeval.registry.interface import CannotGoOn

#: After so many questions without any answer the run stops.
_HOPELESS = 10
#: What an answer takes, and what else is counted of a run.
_TAKEN = ("calls", "tokens_in", "tokens_out", "cost", "seconds")
_COUNTED = ("questions", "kept", "kept_cost", "kept_seconds", "refusals", "unanswered", "estimated")


@dataclass(frozen=True)
class Price:
    """US dollars for a million tokens."""

    input: float = 0.0
    output: float = 0.0

    def of(self, tokens_in: float, tokens_out: float) -> float:
        """What so many tokens cost."""
        return (tokens_in * self.input + tokens_out * self.output) / 1e6


def read_price(prices: str | Path | Mapping[str, Any], model: str) -> Price:
    """A model's price from `{"some-model": {"input": 0.15, "output": 0.60}}`, a mapping or a YAML or JSON file."""
    fields = prices if isinstance(prices, Mapping) else read_yaml(prices, "prices")
    price = fields.get(model)
    if not isinstance(price, Mapping) or set(price) != {"input", "output"}:
        raise ValueError(f"there is no price for {model}; write {model}: {{input: 0.15, output: 0.60}}")
    if not all(type(amount) in (int, float) and 0 <= amount < math.inf for amount in price.values()):
        raise ValueError(f"the prices of {model} are not two numbers, dollars for a million tokens")
    return Price(float(price["input"]), float(price["output"]))


class TextDisk(diskcache.Disk):  # type: ignore[misc]  # the library has no types
    """Stores strings in the database itself and reads nothing else, in particular no pickles."""

    def store(self, value: str, read: bool, key: Any = diskcache.UNKNOWN) -> tuple[int, int, None, str]:
        """Size, mode, file name and value, as the library wants them: plain text."""
        return 0, 1, None, value

    def fetch(self, mode: int, filename: str | None, value: Any, read: bool) -> str | None:
        """The string; anything else was not written here."""
        return value if isinstance(value, str) else None


def open_cache(folder: str | Path) -> diskcache.Cache:
    """The answers kept in a folder, for several threads and processes. Answers are paid for, so none is evicted."""
    path = Path(folder).expanduser()
    try:
        # Answers may quote the rows.
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        return diskcache.Cache(str(path), disk=TextDisk, eviction_policy="none", cull_limit=0)
    except (OSError, sqlite3.Error) as error:
        raise ValueError(f"answers cannot be cached in {path} ({error}); choose another folder") from None


@dataclass(frozen=True)
class Outcome:
    """What came of a question: an answer, what could be read from it, or the problem."""

    answer: Answer | None = None
    rating: Rating | None = None
    problem: str = ""
    was_cached: bool = False


@dataclass
class Asker:
    """Asks one model and reads its answers. Only answers that can be read are cached."""

    client: Client
    read: Callable[[Question, Answer, Mapping[str, Any]], Rating]
    cache: diskcache.Cache | None
    concurrency: int
    price: Price
    #: No question is asked once so much is spent.
    max_cost: float = math.inf
    spent: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def cached(self, question: Question, options: Mapping[str, Any]) -> Outcome | None:
        """The answer of an earlier run; one that is damaged is asked for again."""
        try:
            answer = Answer.from_json(self.cache.get(self._key(question, options)) if self.cache is not None else "")
            return Outcome(answer, self.read(question, answer, options), was_cached=True)
        except (TypeError, ValueError, LookupError, AttributeError, sqlite3.Error):
            return None

    def ask(
        self, questions: Sequence[Question], options: Mapping[str, Any], advance: Callable[[int], None]
    ) -> list[Outcome]:
        """Outcomes in the order of the questions; equal questions are asked once. `CannotGoOn` ends it early."""
        distinct = {question.digest: question for question in questions}
        known = {
            digest: kept
            for digest, question in distinct.items()
            if (kept := self.cached(question, options)) is not None
        }
        advance(len(known))
        waiting = [question for digest, question in distinct.items() if digest not in known]
        stopped, has_answer, failed = threading.Event(), False, 0
        fatal: CannotGoOn | None = None

        def attempt(question: Question) -> tuple[Question, Answer | Exception | None]:
            """Whoever asks sees whether to go on, for the loop below may be far behind."""
            nonlocal has_answer, failed
            if stopped.is_set():
                return question, None
            result = self._attempt(question, options)
            with self._lock:
                has_answer |= isinstance(result, Answer)
                failed += isinstance(result, QuestionFailed)
                if isinstance(result, QuestionFailed) and failed >= _HOPELESS and not has_answer:
                    result = CannotGoOn(f"{failed} questions got no answer from {self.client.model}: {result}")
            if isinstance(result, CannotGoOn):
                stopped.set()
            return question, result

        # Daemon threads: Ctrl-C does not wait for them. After a fatal error the loop goes on to keep what is under way.
        with ThreadPool(min(self.concurrency, len(waiting) or 1)) as pool:
            for question, result in pool.imap_unordered(attempt, waiting):
                if isinstance(result, Answer):
                    known[question.digest] = self._finish(question, result, options)
                elif isinstance(result, QuestionFailed):
                    known[question.digest] = Outcome(problem=str(result))
                elif isinstance(result, CannotGoOn):
                    fatal = fatal or result
                advance(1)
        if fatal is not None:
            raise fatal
        return [known[question.digest] for question in questions]

    def _attempt(self, question: Question, options: Mapping[str, Any]) -> Answer | Exception:
        if self.spent >= self.max_cost:
            return CannotGoOn(
                f"the limit of ${self.max_cost:g} is reached (${self.spent:.6f} spent); answers so far are cached: "
                "raise max_cost and run the same command again to continue"
            )
        try:
            answer = self.client.ask(question, options)
        except (QuestionFailed, CannotGoOn) as error:
            return error
        cost = self.price.of(answer.tokens_in, answer.tokens_out)
        with self._lock:
            self.spent += cost
        return replace(answer, cost=cost)

    def _finish(self, question: Question, answer: Answer, options: Mapping[str, Any]) -> Outcome:
        try:
            rating = self.read(question, answer, options)
        except NoAnswer as error:
            cut = ", and was cut off at max_tokens" if answer.finish == "length" else ""
            return Outcome(answer, problem=f"{error}{cut}")
        if self.cache is not None:
            try:
                self.cache.set(self._key(question, options), answer.to_json())
            except sqlite3.Error as error:
                raise OSError(f"{self.cache.directory} cannot be written ({error}); free some space") from None
        return Outcome(answer, rating)

    def _key(self, question: Question, options: Mapping[str, Any]) -> str:
        """Everything that decides an answer."""
        identity = [self.client.model, self.client.host, options, question.digest]
        return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()


def usage_of(outcomes: Iterable[Outcome]) -> dict[str, float]:
    """Calls, tokens, dollars and seconds; `kept_…` is what an earlier run took for answers from the cache."""
    total = dict.fromkeys((*_TAKEN, *_COUNTED), 0.0)
    # An answer that stands at several rows counts once.
    for outcome in {id(outcome): outcome for outcome in outcomes}.values():
        answer, took = outcome.answer, {"questions": 1.0}
        if answer is None:
            took["unanswered"] = 1
        elif outcome.was_cached:
            took |= {"kept": 1, "kept_cost": answer.cost, "kept_seconds": answer.seconds}
        else:
            took |= {name: getattr(answer, name) for name in _TAKEN}
            took |= {"refusals": answer.refusal is not None, "estimated": not answer.counted}
        for name, amount in took.items():
            total[name] += amount
    return total
