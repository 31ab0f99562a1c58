"""Rows to measure on, generated with the lengths of real conversation."""

from __future__ import annotations

import math
import random

from dialeval.core.exchange import Exchange

#: Words per turn in everyday conversation are close to log-normal: median 10, mean about 14.
_MEDIAN_WORDS, _SPREAD = 10, 0.8
_WORDS = (
    "i you we they he she it the a my your this that is are was were have had do did can could would should like want "
    "need know think say go come see look make take give find tell ask work feel try leave call good new first last "
    "long great little own other old right big high small large next early young important few public bad same able "
    "time year people way day man thing woman life child world school state family student group country problem hand "
    "part place case week company system program question work government number night point home water room mother "
    "really actually maybe please thanks sorry tomorrow yesterday weekend dinner coffee train ticket doctor office"
).split()


def generated(count: int, seed: int = 0) -> list[Exchange]:
    """So many distinct exchanges."""
    rng = random.Random(seed)

    def turn() -> str:
        length = min(60, max(1, round(math.exp(rng.gauss(math.log(_MEDIAN_WORDS), _SPREAD)))))
        return " ".join(rng.choices(_WORDS, k=length))

    return [Exchange(tuple(turn() for _ in range(rng.randint(1, 6))), turn()) for _ in range(count)]
