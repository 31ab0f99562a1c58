"""From the options of the metric to what does the asking; a wrong option is told before anything is asked."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from dialeval.llm.answers import InMemory, OnDisk, Store
from dialeval.llm.member import LlmMember
from dialeval.llm.pace import Pace
from dialeval.llm.protocol import Protocol
from dialeval.llm.runner import Runner
from dialeval.llm.server import Server
from dialeval.llm.spending import Budget, Price, price_of, read_prices

Weighting = Literal["auto", "logprobs", "samples"]

#: As many likely tokens as servers give at most.
_LIKELY_TOKENS = 20


@dataclass(frozen=True)
class Asking:
    """What goes with every question, and how the answers to it become a score."""

    temperature: float
    seed: int
    max_tokens: int
    samples: int
    weighting: Weighting

    @classmethod
    def choose(
        cls,
        protocol: Protocol,
        *,
        temperature: float,
        seed: int,
        max_tokens: int | None,
        samples: int | None,
        weighting: Weighting,
    ) -> Asking:
        """The options, and the protocol's own where they are left out."""
        if weighting not in get_args(Weighting):
            raise ValueError(f"weighting is {weighting!r}; it is one of {', '.join(get_args(Weighting))}")
        check_number("temperature", temperature)
        if type(seed) is not int:
            raise ValueError(f"seed is {seed!r}; it is a whole number")
        # A score of one digit is one token to every model.
        has_digits = protocol.low >= 0 and protocol.high <= 9
        if weighting == "logprobs" and not has_digits:
            raise ValueError(f"{protocol.name}: probabilities can be read for scores from 0 to 9 only; choose samples")
        if weighting == "auto" and not has_digits:
            weighting = "samples"
        return cls(
            temperature,
            seed,
            protocol.max_tokens if max_tokens is None else check_count("max_tokens", max_tokens),
            protocol.samples if samples is None else check_count("samples", samples),
            weighting,
        )

    @property
    def shared(self) -> dict[str, Any]:
        """What is sent with every request."""
        return {"temperature": self.temperature, "seed": self.seed, "max_tokens": self.max_tokens}


@dataclass(frozen=True)
class Means:
    """What all models of a panel share: where answers are kept, the pace, the money, and patience."""

    store: Store
    pace: Pace
    budget: Budget
    prices: Mapping[str, Price]
    concurrency: int
    retries: int
    served_as: str | None


def member(server: Server, protocol: Protocol, asking: Asking, means: Means) -> LlmMember:
    """A model with what it needs to be asked."""
    price = price_of(means.prices, server.model)

    def runner(options: Mapping[str, Any]) -> Runner:
        return Runner(
            server,
            means.store,
            options,
            {"model": server.model, "server": server.host, **{name: str(value) for name, value in options.items()}},
            means.pace,
            means.budget,
            price,
            means.concurrency,
            means.retries,
            means.served_as,
        )

    weighs = protocol.answer == "number" and asking.weighting != "samples"
    return LlmMember(
        server.model,
        protocol,
        once=runner({**asking.shared, **({"logprobs": _LIKELY_TOKENS} if weighs else {})}),
        often=runner({**asking.shared, "temperature": 1.0, "n": asking.samples}),
        weighting=asking.weighting,
    )


def check_count(name: str, value: Any, least: int = 1) -> int:
    """A whole number, refused below `least`."""
    if type(value) is not int or value < least:
        raise ValueError(f"{name} is {value!r}; it is a whole number from {least} on")
    return value


def check_number(name: str, value: Any) -> None:
    """A number from 0 on."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise ValueError(f"{name} is {value!r}; it is a number from 0 on")


def names_of(model: Any, panel: Any) -> tuple[str, ...]:
    """The models to be asked: one, or a panel."""
    if (model is None) == (panel is None):
        raise ValueError("llm needs a model or a panel of models, one of the two; for example model=gpt-4o-mini")
    models = (model,) if panel is None else panel.split("|") if isinstance(panel, str) else tuple(panel)
    if any(not isinstance(one, str) or not one.strip() for one in models):
        raise ValueError(f"{model if panel is None else panel!r} holds something that is no name of a model")
    names = tuple(one.strip() for one in models)
    if panel is not None and len(names) < 2:
        raise ValueError("a panel has at least two models; a single one is a model")
    if len(set(names)) < len(names):
        raise ValueError("the panel names a model twice, which would count twice")
    return names


def prices_of(prices: str | Path | Mapping[str, Mapping[str, float]] | None) -> Mapping[str, Price]:
    """Prices by model, from a file or as they are."""
    if isinstance(prices, Mapping):
        return {model: Price(**fields) for model, fields in prices.items()}
    return {} if prices is None else read_prices(prices)


def store_of(answers: str | Path | bool | None) -> Store:
    """Where answers are kept: a folder, the user's cache, or memory."""
    if answers is False:
        return InMemory()
    return OnDisk(default_folder() if answers is None or answers is True else answers)


def default_folder() -> Path:
    """Where answers are kept unless somebody says otherwise: the user's cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dialeval" / "llm"
