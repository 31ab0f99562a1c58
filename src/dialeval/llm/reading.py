"""From a model's answer to numbers: strict where it kept to the form, tolerant where it did not, never a guess."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

_NUMBER = r"[-+]?\d+(?:\.\d+)?"
#: `Score: 4`, `**Rating**: 4`, `= 4`; then `4/5` and `4 out of 5`; then any number.
_NAMED = re.compile(rf"(?:score|rating|answer|grade)\W{{0,12}}?(?:is|of|would be)?\W{{0,6}}?({_NUMBER})", re.IGNORECASE)
_SHARE = re.compile(rf"(?<!\d)({_NUMBER})\s*(?:/|out of)\s*({_NUMBER})", re.IGNORECASE)
_ANY = re.compile(rf"(?<![\w.])({_NUMBER})(?![\w%]|\.\d)")
#: What makes a number one end of a range, a bound, or a part of another number: `3 to 4`, `> 4`, `3,5`, `3½`.
_BEFORE = re.compile(r"(?:[<>≤≥]|\d[ \t]{0,3}(?:[-–—~]|to|or))[ \t]{0,3}\Z", re.IGNORECASE)
_AFTER = re.compile(
    r"[ \t]{0,3}(?:(?:[-–—~]|to|or)[ \t]{0,3}\d|%|[¼-¾⅐-⅞])|[.,]\d|[+²³¹⁰-₉]|(?:e[-+]?|x)\d", re.IGNORECASE
)
_CHOICE = re.compile(r"\A\W*(?:(?:reply|answer|response|option)\W+)?(A|B|tie|draw|neither|both)\b\W*", re.IGNORECASE)
_VERDICT = re.compile(
    r"(?:answer|choice|verdict|winner|better(?: reply)?)\W{1,6}(?:is\W+)?(?:reply\W+)?(A|B|tie)\b"
    r"|\b(?:reply\W+)?([AB])\W+is\W+(?:the\W+)?better\b",
    re.IGNORECASE,
)


#: Characters that may be read in vain.
_IN_VAIN = 64 * 2**20


class NoAnswer(ValueError):
    """A model's text holds no usable answer; the message says why."""


@dataclass(frozen=True)
class Rating:
    """A value, and those of the aspects."""

    value: float
    aspects: Mapping[str, float] = field(default_factory=dict)


def _answer(text: str) -> str:
    """What follows a model's thinking: numbers that it weighed there are none that it gave."""
    answer = text.rpartition("</think>")[2]
    if "<think>" in answer:
        raise NoAnswer("the answer ends inside <think>; allow more tokens (--max-tokens)")
    return answer


def read_aspects(text: str, aspects: Sequence[str], low: float, high: float) -> dict[str, float]:
    """The score of every aspect, from JSON or, failing that, from lines such as `grammar: 4`."""
    text = _answer(text)
    objects = [answer for answer in _objects(text) if any(aspect in answer for aspect in aspects)]
    ratings = [_of_object(answer, aspects, low, high) for answer in objects]
    if any(other != ratings[0] for other in ratings[1:]):
        raise NoAnswer("the answer holds several JSON objects that differ")
    if ratings:
        return ratings[0]
    lines = {aspect: _lines_of(text, aspect) for aspect in aspects}
    if "{" in text and not all(lines.values()):
        raise NoAnswer(
            "the answer is not valid JSON" if text.rstrip()[-1:] == "}" else "the answer's JSON is incomplete"
        )
    if not any(lines.values()):
        raise NoAnswer("the answer holds no scores that can be read" if text.strip() else "the answer is empty")
    for aspect, numbers in lines.items():
        if len(numbers) != 1:
            raise NoAnswer(f"the answer {'gives several scores for' if numbers else 'lacks'} {aspect}")
    return {aspect: _scored(numbers.pop(), low, high, aspect) for aspect, numbers in lines.items()}


def read_number(text: str, low: float, high: float) -> tuple[float, int]:
    """The one score that a text gives, and where it stands; several different ones are none."""
    whole, text = text, _answer(text)
    shares = [(match, float(match[2])) for match in _SHARE.finditer(text)]
    if other := [match[0] for match, of in shares if of != high]:
        raise NoAnswer(f"the answer {other[0]!r} is on another scale than {low:g} to {high:g}")
    for candidates in (list(_NAMED.finditer(text)), [match for match, _ in shares], list(_ANY.finditer(text))):
        values = {float(match[1]) for match in candidates}
        if len(values) > 1:
            raise NoAnswer(f"the answer gives several numbers ({', '.join(f'{value:g}' for value in sorted(values))})")
        if not all(_is_alone(text, match) for match in candidates):
            raise NoAnswer("the answer gives a range, a bound or a part of a number, not a number")
        if candidates:
            start = len(whole) - len(text) + candidates[0].start(1)
            return _scored(values.pop(), low, high, "the score"), start
    raise NoAnswer("the answer holds no number" if text.strip() else "the answer is empty")


def _is_alone(text: str, match: re.Match[str]) -> bool:
    """Whether a number that was found is the whole of what was said; one in pointed brackets is."""
    start, end = match.span(1)
    if text[start - 1 : start] == "<" and text[end : end + 1] == ">":
        return True
    return not _BEFORE.search(text[max(0, start - 12) : start]) and not _AFTER.match(text, end)


def read_choice(text: str) -> float:
    """1 for A, 0 for B, 0.5 for a tie."""
    text, points = _answer(text), {"a": 1.0, "b": 0.0}
    if (whole := _CHOICE.fullmatch(text.strip())) is not None:
        return points.get(whole[1].lower(), 0.5)
    points_of_verdicts = {points.get((match[1] or match[2]).lower(), 0.5) for match in _VERDICT.finditer(text)}
    if len(points_of_verdicts) == 1:
        return points_of_verdicts.pop()
    raise NoAnswer(
        "the answer chooses both replies" if points_of_verdicts else "the answer chooses neither A nor B nor a tie"
    )


def expectation(text: str, logprobs: Sequence[Mapping[str, Any]], low: float, high: float) -> float:
    """The mean score under the probabilities of the tokens at the place of the answer.

    Only whole scores of one digit can be read off single tokens; other tokens count for nothing, and the probability
    of the scores is scaled to one.
    """
    _, start = read_number(text, low, high)
    logprob = logprobs[_token_at(text, logprobs, start)]
    shares: dict[float, float] = {}
    for candidate in logprob.get("top_logprobs") or [logprob]:
        token = str(candidate["token"]).strip()
        if len(token) == 1 and token.isascii() and token.isdigit() and low <= float(token) <= high:
            shares[float(token)] = shares.get(float(token), 0.0) + math.exp(float(candidate["logprob"]))
    total = math.fsum(shares.values())
    if total <= 0:
        raise NoAnswer("none of the likely tokens is a score")
    return math.fsum(value * share for value, share in shares.items()) / total


def _token_at(text: str, logprobs: Sequence[Mapping[str, Any]], start: int) -> int:
    """The token that holds a character of the text."""
    tokens, end = [str(logprob["token"]) for logprob in logprobs], 0
    for number, token in enumerate(tokens):
        end += len(token)
        if end > start:
            if token.strip()[:1] == text[start]:
                return number
            break
    # Tokens of several bytes do not add up to the text: the first that is this digit, then.
    for number, token in enumerate(tokens):
        if token.strip() == text[start]:
            return number
    raise NoAnswer("the score is not a token of its own")


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """Every JSON object that stands in a text, whatever stands around it, and those right inside it.

    Text that only looks like JSON makes the parser begin anew at every brace: once it has read so much in vain, the
    answer has none.
    """
    decoder, start, vain = json.JSONDecoder(object_pairs_hook=_each_once), text.find("{"), 0
    while start >= 0 and vain < _IN_VAIN:
        try:
            value, end = decoder.raw_decode(text, start)
        except NoAnswer:
            raise
        except (ValueError, RecursionError):
            value, end, vain = {}, start + 1, vain + len(text)
        yield value
        yield from (inner for inner in value.values() if isinstance(inner, dict))
        start = text.find("{", end)


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object; of a key that stands twice nobody knows which value was meant."""
    fields: dict[str, Any] = {}
    for key, value in pairs:
        if key in fields:
            raise NoAnswer(f"the answer's JSON has two values of {key[:40]}")
        fields[key] = value
    return fields


def _of_object(fields: Mapping[str, Any], aspects: Sequence[str], low: float, high: float) -> dict[str, float]:
    if missing := [aspect for aspect in aspects if fields.get(aspect) is None]:
        raise NoAnswer(f"the answer lacks {', '.join(missing)}")
    return {aspect: _scored(fields[aspect], low, high, aspect) for aspect in aspects}


def _scored(value: Any, low: float, high: float, what: str) -> float:
    """A score on the scale; one outside is no answer, since nobody knows which was meant."""
    if isinstance(value, str) and re.fullmatch(_NUMBER, value.strip()):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise NoAnswer(f"{what} is {str(value)[:40]!r}, not a number")
    if not low <= value <= high:
        raise NoAnswer(f"{what} is {str(value)[:40]}, which is outside {low:g} to {high:g}")
    return float(value)


def aspect_pattern(aspect: str) -> re.Pattern[str]:
    """A line that gives the score of an aspect, such as `grammar: 4` or `**Grammar** - 4`."""
    return re.compile(rf"\b{re.escape(aspect)}\b[\"'*`)\s]*[:=–-]\s*[\"'*`(]*({_NUMBER})", re.IGNORECASE)


def _lines_of(text: str, aspect: str) -> set[float]:
    found = aspect_pattern(aspect).finditer(text)
    return {math.nan if _AFTER.match(text, match.end(1)) else float(match[1]) for match in found}
