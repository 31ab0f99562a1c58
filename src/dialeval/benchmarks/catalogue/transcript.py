"""Conversations stored as one text whose turns start with a speaker's name, and their ratings."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

_SPEAKER = re.compile(r"^(User|System):", flags=re.MULTILINE)


def turns_of(transcript: str) -> tuple[list[str], list[str]]:
    """Speakers and turns. A line without a speaker continues the turn above it; a turn may be empty."""
    opening, *parts = _SPEAKER.split(transcript)
    if opening.strip() or not parts:
        raise ValueError(f"a transcript starts with {transcript[:20]!r} instead of a speaker")
    return parts[::2], [turn.strip() for turn in parts[1::2]]


def numbers(values: Sequence[Any]) -> list[float]:
    """The ratings that are numbers; annotators could also answer that a question does not apply."""
    return [float(value) for value in values if isinstance(value, int | float)]


def ratings_of(annotations: Mapping[str, Sequence[Any]]) -> dict[str, list[float]]:
    """Numeric ratings of every aspect."""
    return {aspect: numbers(values) for aspect, values in annotations.items()}
