"""Rows that meet a condition, such as `respectful<0.2`, get a mark in a column of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dialeval.core.specs import Condition

#: The column in which a row's flags stand.
FLAGS = "flags"


def flagged(flags: Sequence[Condition], values: Mapping[str, Any], count: int) -> list[str]:
    """What is to be said of each row: the flags that it has, or nothing."""
    return [" ".join(flag.text for flag in flags if flag.holds(values[flag.column][row])) for row in range(count)]
