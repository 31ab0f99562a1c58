"""Rows that meet a condition, such as `respectful<0.2`, get a mark in a column of their own."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

#: The column in which a row's flags stand.
FLAGS = "flags"

_CONDITION = re.compile(r"\s*([\w.:-]+?)\s*([<>])\s*([-+]?[\d.]+(?:[eE][-+]?\d+)?)\s*")


@dataclass(frozen=True)
class Flag:
    """A column of values, and the bound on whose other side a row is flagged."""

    column: str
    below: bool
    bound: float
    #: As it was written.
    text: str

    @classmethod
    def read(cls, text: str, columns: Sequence[str]) -> Flag:
        """A flag from text: a column or one of its aspects, `<` or `>`, a number."""
        found = _CONDITION.fullmatch(text)
        try:
            bound = float(found[3]) if found else None
        except ValueError:
            bound = None
        if found is None or bound is None:
            raise ValueError(f"--flag {text!r} is not a condition; write it as NAME<NUMBER or NAME>NUMBER")
        name = found[1]
        meant = [column for column in columns if name in (column, column.partition(".")[2])]
        if not meant:
            raise ValueError(f"--flag {text!r}: there is no value {name!r}; there are: {', '.join(columns)}")
        if len(meant) > 1:
            raise ValueError(f"--flag {text!r} could mean {' or '.join(meant)}; write one of them")
        return cls(meant[0], found[2] == "<", bound, "".join(text.split()))

    def holds(self, value: float | None) -> bool:
        """Whether a row is flagged; one without a value is not."""
        return value is not None and (value < self.bound if self.below else value > self.bound)


def flagged(flags: Sequence[Flag], values: Mapping[str, Any], count: int) -> list[str]:
    """What is to be said of each row: the flags that it has, or nothing."""
    return [" ".join(flag.text for flag in flags if flag.holds(values[flag.column][row])) for row in range(count)]
