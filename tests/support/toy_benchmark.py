"""A small benchmark of our own making, and metrics for it, shared by the tests of the harness."""

import math
import os
import random
import signal
import zlib
from collections.abc import Sequence

import numpy as np

from dialeval.core.exchange import Exchange
from dialeval.core.scores import Signature
from dialeval.registry.interface import Judged, Level, Metric, MetricInfo

REPLIES = (
    "Yes, with milk and a spoon of honey.",
    "No idea.",
    "We could walk along the river until it gets dark, if you like.",
    "Trains are late again, so take the bus that leaves at nine.",
    "Hm.",
    "My sister plays the cello in a small orchestra and practises every evening.",
)


def rated_rows(contexts: int = 30, systems: int = 6, seed: int = 0) -> list[dict[str, object]]:
    """Every system answers every context; longer replies are liked better, with noise and four raters."""
    draw = random.Random(seed)
    rows: list[dict[str, object]] = []
    for number in range(contexts):
        for system in range(systems):
            reply = " ".join(draw.choices(REPLIES, k=1 + (system + draw.randrange(3)) // 2)) + f" ({number})"
            liking = len(reply.split()) / 8 + system / 4
            ratings = [min(5, max(1, round(liking + draw.gauss(0, 0.8)))) for _ in range(4)]
            context, reference = [f"Shall we do number {number}?", "What do you think?"], REPLIES[number % len(REPLIES)]
            row = {"id": f"toy-{number}-{system}", "dataset": "toy", "system": f"bot{system}", "context": context}
            row |= {"response": reply, "reference": reference}
            rows.append(row | {"ratings": {"overall": ratings, "grammar": [6 - rating for rating in ratings]}})
    return rows


def labelled_rows(name: str, contexts: int = 40, seed: int = 0) -> list[dict[str, object]]:
    """Per context two good replies, two random and two adversarial ones; good ones tend to be longer."""
    draw = random.Random(seed)

    def reply(least: int) -> str:
        return " ".join(["word"] * draw.randint(least, least + 6))

    least = {"positive": 6, "adversarial": 4, "random": 1}
    return [
        {
            "id": f"{name}-{number}", "dataset": name, "context": [f"Topic {number}?"],
            "responses": {kind: [reply(words), reply(words)] for kind, words in least.items()},
        }
        for number in range(contexts)
    ]  # fmt: skip


def count_words(exchanges: list[Exchange]) -> list[float]:
    return [float(len(exchange.response.split())) for exchange in exchanges]


def few_words(exchanges: list[Exchange]) -> list[float]:
    return [-value for value in count_words(exchanges)]


def word_share(exchanges: list[Exchange]) -> list[float]:
    return [min(len(exchange.response.split()) / 20, 1.0) for exchange in exchanges]


def picky(exchanges: list[Exchange]) -> list[float]:
    """Raises for context 3, has no value for context 4."""
    if any(" 3?" in exchange.context[0] for exchange in exchanges):
        raise RuntimeError("cannot count to three")
    return [math.nan if " 4?" in exchange.context[0] else count_words([exchange])[0] for exchange in exchanges]


def noise(exchanges: list[Exchange]) -> list[float]:
    return [float(zlib.crc32((exchange.id or "").encode()) % 97) for exchange in exchanges]


#: The rows that `watched` was asked for, and before which of them it kills its process.
SEEN: list[str | None] = []
KILL_AT = [-1]


def watched(exchanges: list[Exchange]) -> list[float]:
    """Counts words, remembers what it was asked, and may kill its process in the middle."""
    for exchange in exchanges:
        if len(SEEN) == KILL_AT[0]:
            os.kill(os.getpid(), signal.SIGKILL)
        SEEN.append(exchange.id)
    return count_words(exchanges)


class Named(Metric):
    """A metric whose signature is its name alone."""

    def signature(self) -> Signature:
        return Signature({"metric": self.info.name})


class Length(Named):
    info = MetricInfo("length", "Length", Level.TURN, True, (0, math.inf), "words")
    contaminated_by = frozenset({"toy"})

    def judge(self, exchanges: Sequence[Exchange], *, progress: bool = False) -> Judged:
        return Judged(np.array(count_words(list(exchanges))))


class AgainstReferences(Named):
    info = MetricInfo("against", "Against", Level.TURN, True, (0, 1), "", needs=frozenset({"contexts", "references"}))

    def judge(self, exchanges: Sequence[Exchange], *, progress: bool = False) -> Judged:
        return Judged(np.array([len(exchange.references[0]) for exchange in exchanges], dtype=float), n_truncated=1)


class Repetition(Named):
    """A system-level metric: the share of a system's replies that any system of the call has given before."""

    info = MetricInfo("repetition", "Repetition", Level.SYSTEM, False, (0, 1), "")

    def judge(self, exchanges: Sequence[Exchange], *, progress: bool = False) -> Judged:
        replies: dict[str | None, list[str]] = {}
        for exchange in exchanges:
            replies.setdefault(exchange.system, []).append(exchange.response)
        shares = [1 - len(set(given)) / len(given) for given in replies.values()]
        if "" in replies.get("bot2", []):
            raise RuntimeError("nothing was said")
        return Judged(np.array(shares), ids=tuple(replies))
