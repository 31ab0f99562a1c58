"""Questions put to a server as a job: many at once but not too many, again after faults, each answer kept.

Threads rather than asyncio, because a metric is also called where an event loop is running already.
"""

from __future__ import annotations

import hashlib
import json
import random
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from typing import Any

from dialeval.llm.answers import Answer, Store
from dialeval.llm.pace import Pace
from dialeval.llm.questions import Question
from dialeval.llm.server import Fault, Server, Unusable, same_model
from dialeval.llm.spending import Budget, Price, likely_input, most_input
from dialeval.metric import CannotGoOn

#: The first wait after a fault; each further one is twice as long, and up to half is taken off by chance.
_FIRST_WAIT = 0.5
_LONGEST_WAIT = 60.0
#: After so many questions in a row without any answer at all the run is given up.
_HOPELESS = 10


@dataclass(frozen=True)
class Nothing:
    """No answer came, and why. `passing` says that another time it may."""

    why: str
    passing: bool = False
    calls: int = 0
    seconds: float = 0.0
    cost: float = 0.0


class NobodyAnswers(CannotGoOn):
    """Questions go unanswered one after the other; to go on would be a waste."""


@dataclass(frozen=True)
class Asked:
    """What a runner brings back for a question: an answer or nothing, and whether it was known before."""

    outcome: Answer | Nothing
    was_kept: bool = False


@dataclass
class Runner:
    """Puts questions to one server."""

    server: Server
    store: Store
    #: What is sent beside the messages: temperature, seed, samples, tokens.
    options: Mapping[str, Any]
    #: Everything besides the question that decides an answer; part of the key.
    identity: Mapping[str, str]
    pace: Pace
    budget: Budget
    price: Price | None = None
    concurrency: int = 8
    retries: int = 5
    served_as: str | None = None
    _stop: threading.Event = field(default_factory=threading.Event)

    def key(self, question: Question) -> str:
        """Under which the answer to a question is kept."""
        text = json.dumps([dict(self.identity), question.digest], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def kept(self, question: Question) -> Answer | None:
        """The answer that an earlier run left."""
        answer = self.store.get(self.key(question))
        return answer if answer is not None and self._is_asked_for(answer) else None

    def most(self, question: Question) -> float:
        """What an answer can cost at most."""
        # A server that knows no `n` is asked for every sample by itself.
        return 0.0 if self.price is None else self.price.of(most_input(question) * self._samples, self._most_output())

    def likely(self, question: Question) -> tuple[int, int]:
        """About how many tokens a question has, and how many its answer may have."""
        return likely_input(question), self._most_output()

    def ask(self, questions: Sequence[Question], advance: Callable[[int], None] = lambda done: None) -> list[Asked]:
        """Answers in the order of the questions; equal questions are asked once. `CannotGoOn` ends it early."""
        distinct = list({question.digest: question for question in questions}.values())
        known = {one.digest: Asked(answer, True) for one in distinct if (answer := self.kept(one)) is not None}
        advance(len(known))
        self._stop.clear()
        known |= self._ask_all([one for one in distinct if one.digest not in known], advance)
        return [known[question.digest] for question in questions]

    def _ask_all(self, questions: Sequence[Question], advance: Callable[[int], None]) -> dict[str, Asked]:
        found: dict[str, Asked] = {}
        waiting = iter(questions)
        under_way: dict[Future[Answer | Nothing], Question] = {}
        pool = ThreadPoolExecutor(self.concurrency, thread_name_prefix="dialeval-llm")
        try:
            while True:
                # No more are handed out than are worked on, so that what stops the run stops it at once.
                while len(under_way) < self.concurrency and (one := next(waiting, None)) is not None:
                    under_way[pool.submit(self._one, one)] = one
                if not under_way:
                    return found
                done, _ = wait(under_way, return_when=FIRST_COMPLETED)
                for future in done:
                    found[under_way.pop(future).digest] = Asked(future.result())
                    advance(1)
                self._check_hope(found)
        except CannotGoOn:
            # What is under way is paid for: it is waited for and kept.
            self._stop.set()
            raise
        except BaseException:
            self._stop.set()
            self.server.hang_up()
            raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def _check_hope(self, found: Mapping[str, Asked]) -> None:
        outcomes = [one.outcome for one in found.values()]
        if len(outcomes) >= _HOPELESS and all(isinstance(one, Nothing) for one in outcomes):
            last = outcomes[-1]
            assert isinstance(last, Nothing)
            raise NobodyAnswers(
                f"the first {len(outcomes)} questions got no answer from {self.server.model}: {last.why}"
            )

    def _one(self, question: Question) -> Answer | Nothing:
        """One question until it is answered, refused for good, or its retries are used up."""
        most, lost, calls = self.most(question), 0.0, 0
        while True:
            self.budget.reserve(most)
            actual, after = 0.0, _LONGEST_WAIT
            try:
                self._await_turn(question)
                calls += 1
                answer = self._sampled(question)
                actual = 0.0 if self.price is None else self.price.of(answer.tokens_in, answer.tokens_out)
                answer = replace(answer, calls=answer.calls + calls - 1, cost=actual + lost)
                self.store.put(self.key(question), answer)
                return self._checked(answer)
            except Unusable as error:
                return Nothing(str(error), calls=calls, cost=lost)
            except Fault as error:
                # What may have been worked on may be on the bill.
                actual = most if error.maybe_billed else 0.0
                lost += actual
                if calls > self.retries or self._stop.is_set():
                    return Nothing(f"{error}, {calls} times", passing=True, calls=calls, cost=lost)
                after = self._patience(calls) if error.after is None else error.after
                if error.after is not None:
                    # Who is told to wait tells the others.
                    self.pace.pause(error.after)
            finally:
                self.budget.settle(most, actual)
            self._stop.wait(after)

    def _sampled(self, question: Question) -> Answer:
        """The answer with as many samples as are wanted, however few the server gives at once."""
        answer = self.server.ask(question, self.options)
        while (lacking := self._samples - len(answer.texts)) > 0 and not self._stop.is_set():
            # Another seed, or the same sample would come again.
            further = {"n": lacking, "seed": int(self.options.get("seed", 0)) + len(answer.texts)}
            answer = _joined(answer, self.server.ask(question, {**self.options, **further}))
        return answer

    def _checked(self, answer: Answer) -> Answer | Nothing:
        if self._is_asked_for(answer):
            return answer
        why = f"the server answered as {answer.served!r}, not as {self.server.model!r}; if that is right, say served_as"
        return Nothing(why, calls=answer.calls, seconds=answer.seconds, cost=answer.cost)

    def _is_asked_for(self, answer: Answer) -> bool:
        return answer.served == self.served_as if self.served_as else same_model(self.server.model, answer.served)

    def _await_turn(self, question: Question) -> None:
        delay = self.pace.wait_for(sum(self.likely(question)))
        while delay > 0 and not self._stop.is_set():
            self._stop.wait(delay)
            delay = self.pace.paused()
        if self._stop.is_set():
            raise Fault("the run was stopped")

    def _patience(self, calls: int) -> float:
        longest = min(_LONGEST_WAIT, _FIRST_WAIT * 2.0 ** (calls - 1))
        return longest * random.uniform(0.5, 1.0)

    def _most_output(self) -> int:
        return int(self.options["max_tokens"]) * self._samples

    @property
    def _samples(self) -> int:
        return int(self.options.get("n", 1))


def _joined(one: Answer, other: Answer) -> Answer:
    """Samples of two requests as one answer."""
    return replace(
        one,
        texts=(*one.texts, *other.texts),
        refusal=one.refusal or other.refusal,
        without=tuple(sorted({*one.without, *other.without})),
        tokens_in=one.tokens_in + other.tokens_in,
        tokens_out=one.tokens_out + other.tokens_out,
        counted=one.counted and other.counted,
        calls=one.calls + other.calls,
        seconds=one.seconds + other.seconds,
    )
