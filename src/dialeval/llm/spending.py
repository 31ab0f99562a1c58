"""What asking costs: prices, a bound before each question, and a budget that is never passed."""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dialeval.io import read_small
from dialeval.llm.questions import Question
from dialeval.metric import CannotGoOn

#: Tokens around a message that its text does not show.
_AROUND_MESSAGE = 8


class BudgetSpent(CannotGoOn):
    """The next question might cost more than is left."""


@dataclass(frozen=True)
class Price:
    """US dollars for a million tokens, read and written."""

    input: float
    output: float

    def of(self, tokens_in: float, tokens_out: float) -> float:
        """What so many tokens cost."""
        return (tokens_in * self.input + tokens_out * self.output) / 1e6


def read_prices(path: str | Path) -> dict[str, Price]:
    """Prices by model from a YAML or JSON file: `{"some-model": {"input": 0.15, "output": 0.60}}`."""
    import yaml

    try:
        fields = yaml.safe_load(read_small(Path(path).expanduser()))
    except OSError as error:
        raise ValueError(f"prices {path} cannot be read ({error.strerror}); check the path") from None
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"prices {path} are neither YAML nor JSON ({' '.join(str(error).split())})") from None
    if not isinstance(fields, dict) or not fields:
        raise ValueError(f'prices {path} hold no models; write {{"model": {{"input": 0.15, "output": 0.60}}}}')
    return {str(model): _price(path, str(model), price) for model, price in fields.items()}


def _price(path: str | Path, model: str, fields: Any) -> Price:
    sound = isinstance(fields, dict) and set(fields) == {"input", "output"}
    if not sound or not all(type(one) in (int, float) and 0 <= one < math.inf for one in fields.values()):
        raise ValueError(f"prices {path}: {model} needs input and output, dollars for a million tokens each")
    return Price(float(fields["input"]), float(fields["output"]))


def price_of(prices: Mapping[str, Price], model: str) -> Price | None:
    """The price of a model, None if there are no prices at all; a model that is missing among them is refused."""
    if not prices:
        return None
    if model not in prices:
        raise ValueError(f"the prices name {', '.join(prices)}, but not {model!r}; add it")
    return prices[model]


def likely_tokens(text: str) -> int:
    """About how many tokens a text has: four bytes each, as English has; the servers' own counts differ by model."""
    return math.ceil(len(text.encode()) / 4)


def likely_input(question: Question) -> int:
    """About how many tokens a question has."""
    return sum(likely_tokens(one["content"]) + _AROUND_MESSAGE for one in question.messages)


def most_input(question: Question) -> int:
    """More tokens than a question can have: no tokenizer that works on bytes makes more tokens than bytes."""
    return sum(len(one["content"].encode()) + _AROUND_MESSAGE for one in question.messages)


class Budget:
    """Money set aside before a question is sent and settled when its answer is there."""

    def __init__(self, limit: float | None) -> None:
        if limit is not None and not 0 <= limit < math.inf:
            raise ValueError(f"max_cost is {limit}; it is an amount of dollars")
        self.limit = limit
        self.spent = 0.0
        self._reserved = 0.0
        self._changed = threading.Condition()

    def reserve(self, most: float) -> None:
        """Set so much aside. Where it does not fit, wait for answers under way; if none is, `BudgetSpent`."""
        with self._changed:
            if self.limit is not None:
                while self.spent + self._reserved + most > self.limit and self._reserved > 0:
                    self._changed.wait()
                if self.spent + most > self.limit:
                    raise BudgetSpent(
                        f"${self.spent:.6f} of the ${self.limit:g} of max_cost are spent and the next question may "
                        f"cost ${most:.6f}; answers so far are kept: raise it and run again to go on"
                    )
            self._reserved += most

    def settle(self, most: float, actual: float) -> None:
        """Give back what was set aside and note what it came to."""
        with self._changed:
            # Rounding must not leave a crumb that looks like an answer under way.
            self._reserved = max(0.0, self._reserved - most)
            if self._reserved < 1e-12:
                self._reserved = 0.0
            self.spent += actual
            self._changed.notify_all()
