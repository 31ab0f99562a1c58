"""From what a model wrote to numbers: strict where it kept to the form, tolerant where it did not, never a guess."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_NUMBER = r"[-+]?\d+(?:\.\d+)?"
#: `Score: 4`, `**Rating**: 4`, `= 4`; then `4/5` and `4 out of 5`; then any number.
_NAMED = re.compile(rf"(?:score|rating|answer|grade)\W{{0,12}}?(?:is|of|would be)?\W{{0,6}}?({_NUMBER})", re.IGNORECASE)
_SHARE = re.compile(rf"({_NUMBER})\s*(?:/|out of)\s*({_NUMBER})", re.IGNORECASE)
_ANY = re.compile(rf"(?<![\w.])({_NUMBER})(?![\w%]|\.\d)")
_CHOICE = re.compile(r"\W*(?:(?:reply|answer|response|option)\W+)?(A|B|tie|draw|neither|both)\b\W*", re.IGNORECASE)
_VERDICT = re.compile(
    r"(?:answer|choice|verdict|winner|better(?: reply)?)\W{1,6}(?:is\W+)?(?:reply\W+)?(A|B|tie)\b"
    r"|\b(?:reply\W+)?([AB])\W+is\W+(?:the\W+)?better\b",
    re.IGNORECASE,
)


class NoAnswer(ValueError):
    """A model's text holds no usable answer; the message says why."""


@dataclass(frozen=True)
class Found:
    """A number, and where in the text it stands."""

    value: float
    start: int


def read_aspects(text: str, aspects: Sequence[str], low: float, high: float) -> dict[str, float]:
    """The score of every aspect, from JSON or, failing that, from lines such as `grammar: 4`."""
    objects = [one for one in _objects(text) if any(aspect in one for aspect in aspects)]
    found = [_of_object(one, aspects, low, high) for one in objects]
    if any(other != found[0] for other in found[1:]):
        raise NoAnswer("the answer holds several JSON objects that differ")
    if found:
        return found[0]
    if "{" in text and not objects and not _all_named(text, aspects):
        raise NoAnswer("the answer is no complete JSON" if text.rstrip()[-1:] != "}" else "the answer is no JSON")
    return {aspect: _scored(_named(text, aspect), low, high, aspect) for aspect in aspects}


def read_number(text: str, low: float, high: float) -> Found:
    """The one score that a text gives; several different ones are none."""
    if not text.strip():
        raise NoAnswer("the answer is empty")
    shares = [(found, float(found[2])) for found in _SHARE.finditer(text)]
    if odd := [found[0] for found, of in shares if of != high]:
        raise NoAnswer(f"the answer {odd[0]!r} is on another scale than {low:g} to {high:g}")
    for candidates in (list(_NAMED.finditer(text)), [found for found, _ in shares], list(_ANY.finditer(text))):
        values = {float(found[1]) for found in candidates}
        if len(values) > 1:
            raise NoAnswer(f"the answer gives several numbers ({', '.join(f'{one:g}' for one in sorted(values))})")
        if candidates:
            first = candidates[0]
            return Found(_scored(float(first[1]), low, high, "the score"), first.start(1))
    raise NoAnswer("the answer holds no number")


def read_choice(text: str) -> float:
    """1 for A, 0 for B, 0.5 for a tie."""
    if (whole := _CHOICE.fullmatch(text.strip())) is not None:
        return _points(whole[1])
    said = {_points(found[1] or found[2]) for found in _VERDICT.finditer(text)}
    if len(said) == 1:
        return said.pop()
    raise NoAnswer("the answer chooses both replies" if said else "the answer chooses neither A nor B nor a tie")


def expectation(text: str, logprobs: Sequence[Mapping[str, Any]], low: float, high: float) -> tuple[float, float]:
    """The mean score under the probabilities of the tokens at the place of the answer, and how much they cover.

    Only whole scores of one digit can be read off single tokens; other tokens count for nothing, and what the
    scores share of the probability is scaled to one.
    """
    written = read_number(text, low, high)
    at = _token_at(text, logprobs, written.start)
    mass: dict[float, float] = {}
    for candidate in logprobs[at].get("top_logprobs") or [logprobs[at]]:
        token = str(candidate["token"]).strip()
        if len(token) == 1 and token.isascii() and token.isdigit() and low <= float(token) <= high:
            mass[float(token)] = mass.get(float(token), 0.0) + math.exp(float(candidate["logprob"]))
    covered = math.fsum(mass.values())
    if covered <= 0:
        raise NoAnswer("none of the likely tokens is a score")
    return math.fsum(value * share for value, share in mass.items()) / covered, covered


def _token_at(text: str, logprobs: Sequence[Mapping[str, Any]], start: int) -> int:
    """The token that holds a character of the text."""
    end = 0
    for number, one in enumerate(logprobs):
        end += len(str(one["token"]))
        if end > start:
            if str(one["token"]).strip()[:1] == text[start]:
                return number
            break
    # Tokens of several bytes do not add up to the text: the first that is this digit, then.
    for number, one in enumerate(logprobs):
        if str(one["token"]).strip() == text[start]:
            return number
    raise NoAnswer("the score stands on no token of its own")


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """Every JSON object that stands in a text, whatever stands around it."""
    decoder, at = json.JSONDecoder(), text.find("{")
    while at >= 0:
        try:
            found, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            end = at + 1
        else:
            if isinstance(found, dict):
                yield from _with_inner(found)
        at = text.find("{", end)


def _with_inner(found: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield found
    for inner in found.values():
        if isinstance(inner, dict):
            yield inner


def _of_object(found: Mapping[str, Any], aspects: Sequence[str], low: float, high: float) -> dict[str, float]:
    if lacking := [aspect for aspect in aspects if found.get(aspect) is None]:
        raise NoAnswer(f"the answer lacks {', '.join(lacking)}")
    return {aspect: _scored(found[aspect], low, high, aspect) for aspect in aspects}


def _scored(value: Any, low: float, high: float, what: str) -> float:
    """A score on the scale; one beside it is no answer, since nobody knows which was meant."""
    if isinstance(value, str) and re.fullmatch(_NUMBER, value.strip()):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise NoAnswer(f"{what} is {str(value)[:40]!r}, which is no number")
    if not low <= value <= high:
        raise NoAnswer(f"{what} is {value:g}, which is outside {low:g} to {high:g}")
    return float(value)


def _named(text: str, aspect: str) -> float:
    found = {float(one) for one in _lines_of(text, aspect)}
    if len(found) != 1:
        raise NoAnswer(f"the answer {'gives several scores for' if found else 'lacks'} {aspect}")
    return found.pop()


def _all_named(text: str, aspects: Sequence[str]) -> bool:
    return all(_lines_of(text, aspect) for aspect in aspects)


def _lines_of(text: str, aspect: str) -> list[str]:
    return re.findall(rf"\b{re.escape(aspect)}\b[\"'*`)\s]*[:=–-]\s*[\"'*`(]*({_NUMBER})", text, re.IGNORECASE)


def _points(word: str) -> float:
    return {"a": 1.0, "b": 0.0}.get(word.lower(), 0.5)
