"""The short texts that name a metric (a target, and options after a question mark) or a condition on its values."""

from __future__ import annotations

import difflib
import json
import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

#: Options that are the harness's own, not the metric's.
OWN = ("name", "lower_is_better", "range")
ANY_RANGE = (-math.inf, math.inf)
#: The squares of much larger values are no numbers any more.
LARGEST = 1e100
_CONDITION = re.compile(r"\A\s*([\w.:-]+?)\s*([<>])\s*([-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?)\s*")
_PLAIN = re.compile(r"true|false|null|-?(0|[1-9]\d*)(\.\d+)?")


def did_you_mean(name: object, known: Collection[str], otherwise: str = "") -> str:
    """The known name that is nearest to a wrong one; where none is near, all of them, or what is said instead."""
    close = difflib.get_close_matches(str(name)[:100], known, n=1)
    return f"did you mean {close[0]!r}?" if close else otherwise or f"there are {', '.join(known)}"


@dataclass(frozen=True)
class Declared:
    """What a user declares about scores that cannot speak for themselves."""

    name: str | None = None
    lower_is_better: bool = False
    range: tuple[float, float] = ANY_RANGE

    def problem(self, value: float) -> str:
        """What to say of a number outside of the range, by more than the rounding of float32; of others nothing."""
        low, high = self.range
        if not math.isfinite(value) or low - 1e-6 * max(1, abs(low)) <= value <= high + 1e-6 * max(1, abs(high)):
            return ""
        return f"{value:g}, and its range was declared as {low:g}:{high:g}; correct one of them"


def declared_in(options: Mapping[str, Any]) -> tuple[Declared, dict[str, Any]]:
    """The harness's own options, and those that are the metric's."""
    lower = options.get("lower_is_better", False)
    if not isinstance(lower, bool):
        raise ValueError(f"lower_is_better is {lower!r}; it must be true or false")
    bounds = ANY_RANGE
    if "range" in options:
        try:
            low, high = (float(part) for part in str(options["range"]).split(":"))
        except ValueError:
            low = high = math.nan
        if not low < high:
            raise ValueError(f"range is {options['range']!r}; write it as low:high, for example 0:1")
        bounds = (low, high)
    name = options.get("name")
    rest = {key: value for key, value in options.items() if key not in OWN}
    return Declared(None if name is None else str(name), lower, bounds), rest


def split_options(spec: str) -> tuple[str, dict[str, Any]]:
    """`target?key=value&key=value`; true, false, null and plain numbers are what they say, all else is text."""
    target, _, query = spec.partition("?")
    options: dict[str, Any] = {}
    for part in filter(None, query.split("&")):
        key, equals, value = part.partition("=")
        if not equals:
            raise ValueError(f"{spec}: option {part!r} has no value; write {part}=…")
        options[key] = json.loads(value) if _PLAIN.fullmatch(value) else unquote(value)
    return target, options


@dataclass(frozen=True)
class Condition:
    """A bound on a column of values, such as `respectful<0.5`."""

    column: str
    below: bool
    bound: float
    #: As it was written.
    text: str

    @classmethod
    def read(cls, text: str, columns: Sequence[str], option: str = "--flag") -> Condition:
        """From text: a column or one of its aspects, `<` or `>`, a number. Errors name the option."""
        match = _CONDITION.fullmatch(str(text))
        if match is None:
            raise ValueError(f"{option} {text!r} is not a condition; write it as NAME<NUMBER or NAME>NUMBER")
        name = match[1]
        meant = [column for column in columns if name in (column, column.partition(".")[2])]
        if not meant:
            raise ValueError(f"{option} {text!r}: there is no value {name!r}; there are: {', '.join(columns)}")
        if len(meant) > 1:
            raise ValueError(f"{option} {text!r} could mean {' or '.join(meant)}; write one of them")
        return cls(meant[0], match[2] == "<", float(match[3]), "".join(text.split()))

    def holds(self, value: float | None) -> bool:
        """Whether a value meets it; none does not."""
        return value is not None and (value < self.bound if self.below else value > self.bound)
