"""The metric `llm`: language models as judges of replies, pairs of replies and dialogues."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dialeval.exchange import Dialogue, Exchange
from dialeval.io import progress_bar
from dialeval.llm.member import Heard, Said
from dialeval.llm.pace import Pace
from dialeval.llm.panel import together
from dialeval.llm.protocol import Protocol, read_protocol
from dialeval.llm.questions import Question, about_dialogue, about_pair, about_reply
from dialeval.llm.server import Server
from dialeval.llm.setup import (
    Asking,
    Means,
    Weighting,
    check_count,
    check_number,
    member,
    names_of,
    prices_of,
    store_of,
)
from dialeval.llm.spending import Budget
from dialeval.llm.usage import Usage
from dialeval.metric import Judged, Level, Metric, MetricInfo
from dialeval.scores import Signature


class LlmJudge(Metric):
    """Language models as judges.

    Args:
        model: the model's name, as its server knows it.
        base_url: the address of a server that speaks OpenAI's chat completions; by default OPENAI_BASE_URL or OpenAI.
        protocol: `llm_eval`, `g_eval`, `pairwise`, or a file of your own.
        panel: several models in place of one, as a list (or, in a text, with | between them).
        temperature: of a single answer.
        seed: sent with every request; servers that know it answer alike.
        weighting: of `g_eval`: `logprobs` takes the mean under the tokens' probabilities, `samples` the mean of
            samples at temperature 1, `auto` the first where the server can.
        samples: how many; by default as the protocol says.
        max_tokens: of an answer; by default as the protocol says. Models that think aloud need many.
        concurrency: requests under way at once.
        timeout: seconds of silence after which a request is given up and sent again.
        retries: how often a request is sent again after a fault.
        requests_per_minute: a limit that holds for every window of a minute.
        tokens_per_minute: the same for tokens, read and written.
        prices: a file of dollars per million tokens, by model.
        max_cost: dollars that a run must not pass; needs prices.
        answers: the folder in which answers are kept, by default the user's cache; false keeps them in memory only.
        key_variable: the environment variable that holds the key.
        served_as: the name under which the server answers, where it is quite another one.
    """

    info = MetricInfo(
        name="llm",
        title="Language model",
        level=Level.TURN,
        higher_is_better=True,
        range=(0.0, 5.0),
        summary="how a language model rates the reply when asked",
        citation="Lin and Chen 2023, LLM-Eval; Liu et al. 2023, G-Eval",
        aspects=("appropriateness", "content", "grammar", "relevance"),
        dialogue_aspects=("coherence", "engagement", "informativeness", "overall"),
    )

    def __init__(
        self,
        *,
        model: str | None = None,
        base_url: str | None = None,
        protocol: str | Path = "llm_eval",
        panel: str | Sequence[str] | None = None,
        temperature: float = 0.0,
        seed: int = 0,
        weighting: Weighting = "auto",
        samples: int | None = None,
        max_tokens: int | None = None,
        concurrency: int = 8,
        timeout: float = 60.0,
        retries: int = 5,
        requests_per_minute: int | None = None,
        tokens_per_minute: int | None = None,
        prices: str | Path | Mapping[str, Mapping[str, float]] | None = None,
        max_cost: float | None = None,
        answers: str | Path | bool | None = None,
        key_variable: str = "OPENAI_API_KEY",
        served_as: str | None = None,
    ) -> None:
        self.protocol = read_protocol(protocol)
        self.models = names_of(model, panel)
        self.info = self.info_with(protocol=protocol, model=model, panel=panel)  # type: ignore[misc]
        self.asking = Asking.choose(
            self.protocol,
            temperature=temperature,
            seed=seed,
            max_tokens=max_tokens,
            samples=samples,
            weighting=weighting,
        )
        check_number("timeout", timeout)
        known = prices_of(prices)
        if max_cost is not None and not known:
            raise ValueError("max_cost needs prices; give a file of dollars per million tokens by model")
        means = Means(
            store_of(answers),
            Pace(requests_per_minute, tokens_per_minute),
            Budget(max_cost),
            known,
            check_count("concurrency", concurrency),
            check_count("retries", retries, 0),
            served_as,
        )
        self.members = [
            member(Server(one, base_url, key_variable, timeout), self.protocol, self.asking, means)
            for one in self.models
        ]

    @classmethod
    def info_with(cls, **options: Any) -> MetricInfo:
        """What the protocol of these options judges, on which scale, and with which columns beside the value."""
        protocol = read_protocol(options.get("protocol") or "llm_eval")
        models = names_of(options.get("model"), options.get("panel"))
        beside = (*models, "vote", "spread") if len(models) > 1 else ()
        is_choice = protocol.answer == "choice"
        return MetricInfo(
            name="llm",
            title=f"{protocol.title} by {', '.join(models)}",
            level=Level.TURN,
            higher_is_better=True,
            range=(protocol.low, protocol.high),
            summary="how often a language model prefers the reply to its rival, the first reference"
            if is_choice
            else "how a language model rates the reply when asked",
            needs=frozenset({"contexts", "references"} if is_choice else {"contexts"}),
            citation=protocol.citation,
            aspects=(*_aspects(protocol, whole=False), *beside),
            dialogue_aspects=(*_aspects(protocol, whole=True), *beside),
        )

    def judge(self, exchanges: Sequence[Exchange], *, progress: bool = False) -> Judged:
        """Ask about every reply."""
        return self._judged([self._about(exchange) for exchange in exchanges], progress)

    def judge_dialogues(self, dialogues: Sequence[Dialogue], *, progress: bool = False) -> Judged:
        """Ask about every dialogue as a whole, or turn by turn where the protocol says nothing of dialogues."""
        if self.protocol.dialogue is None:
            return super().judge_dialogues(dialogues, progress=progress)
        return self._judged([self.questions_about(dialogue) for dialogue in dialogues], progress)

    def signature(self) -> Signature:
        """What is asked of whom; what only the answers tell (served model, fingerprint) is added after scoring."""
        return Signature(
            {
                "metric": "llm",
                "protocol": f"{self.protocol.name}@{self.protocol.digest}",
                "model": "+".join(self.models),
                "server": self.members[0].once.server.host,
                **{name: str(value) for name, value in self.asking.shared.items()},
                **({"weighting": self._weighting} if self.protocol.answer == "number" else {}),
            }
        )

    @property
    def _weighting(self) -> str:
        chosen = self.asking.weighting
        return chosen if chosen == "logprobs" else f"{chosen}, {self.asking.samples} samples"

    def questions_about(self, item: Exchange | Dialogue) -> tuple[Question, ...]:
        """Everything that is asked about a reply, or about a dialogue."""
        if isinstance(item, Exchange):
            return self._about(item)
        if self.protocol.dialogue is None:
            return tuple(question for turn in item.exchanges() for question in self._about(turn))
        return (about_dialogue(self.protocol, item),)

    def _about(self, exchange: Exchange) -> tuple[Question, ...]:
        if self.protocol.turn is None:
            raise ValueError(f"protocol {self.protocol.name} judges dialogues; choose level dialogue")
        if self.protocol.answer == "choice":
            return tuple(about_pair(self.protocol, exchange, swapped=swapped) for swapped in (False, True))
        return (about_reply(self.protocol, exchange),)

    def _judged(self, rows: Sequence[tuple[Question, ...]], progress: bool) -> Judged:
        with progress_bar("asking", len(self.members) * sum(map(len, rows)), shown=progress) as advance:
            heard = {one.model: one.hear(rows, advance) for one in self.members}
        said = [self._together({model: one.said[row] for model, one in heard.items()}) for row in range(len(rows))]
        names = dict.fromkeys(name for one in said for name in one.aspects)
        usage = sum((one.usage for one in heard.values()), Usage())
        return Judged(
            np.array([math.nan if one.value is None else one.value for one in said], dtype=np.float64),
            aspects={name: np.array([one.aspects.get(name, math.nan) for one in said]) for name in names},
            details={"usage": usage.to_dict()},
            problems={row: one.problem for row, one in enumerate(said) if one.value is None},
            passing=frozenset(row for row, one in enumerate(said) if one.value is None and one.passing),
            seen=_seen(heard),
        )

    def _together(self, said: Mapping[str, Said]) -> Said:
        if len(said) == 1:
            return next(iter(said.values()))
        return together(said, 0.5 if self.protocol.answer == "choice" else 1.0)


def _aspects(protocol: Protocol, *, whole: bool) -> tuple[str, ...]:
    """The columns beside the value; a single aspect is the value itself."""
    task = protocol.task(whole=whole) or protocol.turn
    if protocol.answer == "choice":
        return ("as_first", "as_second")
    return tuple(task.aspects) if task is not None and protocol.answer == "json" else ()


def _seen(heard: Mapping[str, Heard]) -> dict[str, str]:
    """By part, what was seen; of a panel with the model in front."""
    if len(heard) == 1:
        return dict(next(iter(heard.values())).seen)
    parts = dict.fromkeys(part for one in heard.values() for part in one.seen)
    return {
        part: ", ".join(f"{model}={one.seen[part]}" for model, one in heard.items() if part in one.seen)
        for part in parts
    }
