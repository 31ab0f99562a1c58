"""Anybody's benchmark: a file of JSON lines (plain or gzip), one item per line.

`context` and `response`, or a whole `dialogue`; then what people said about it: a `rating`, `ratings` of several
people, or `scores` or `ratings` per aspect, or a `label` of 0 or 1, or `responses` (lists of positive, adversarial
and random replies), or an `adversarial_response`. Everything else is optional: id, dataset, level, reference(s), facts,
system, speakers, following (the user's next turn), attack, domain, harmful.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from dialeval.benchmarks.benchmark import (
    OWN_FILE,
    REPLY_KINDS,
    BenchmarkInfo,
    BenchmarkLevel,
    FileSource,
    Kind,
    Row,
    Scale,
    SourceFile,
    complete,
    labelled_replies,
)
from dialeval.core.exchange import BadRow, a_kind, check_exchange
from dialeval.io.files import is_stream
from dialeval.readers.rows import HELD, Columns, RawRow, bounded, to_dialogue, to_exchange
from dialeval.readers.text import json_rows

SUFFIXES = (".jsonl", ".jsonl.gz")
#: Aspects that stand for the whole impression, best first; without one of them the first aspect does.
MAIN = ("overall", "overall quality", "appropriateness", "coherence", "relevance", "relevant")
OVERALL = MAIN[0]
#: Names under which the known benchmarks list replies that no system wrote.
_HUMAN = {"human", "ground-truth", "original ground truth", "new human generated"}
_NEGATIVE = {"negative-sample"}
_COLUMNS = Columns({})


class BadFile(ValueError):
    """A benchmark file cannot be read; the message names the file and, where one is to blame, the row."""


def read_file(path: Path) -> tuple[BenchmarkInfo, list[Row]]:
    """The rows of a file, and the declaration inferred from them."""
    if path.is_dir() or is_stream(path):
        raise BadFile(f"{path} is not a file; pass a .jsonl file")
    try:
        content = path.read_bytes()
        return _read(path, content)
    except OSError as error:
        raise BadFile(f"{path} cannot be read ({error.strerror}); check the path") from None
    except ValueError as error:
        raise BadFile(str(error)) from None


def _read(path: Path, content: bytes) -> tuple[BenchmarkInfo, list[Row]]:
    name = path.name.removesuffix(".gz").removesuffix(".jsonl")
    shape: tuple[BenchmarkLevel, Kind] | None = None
    row_of: dict[str, RawRow] = {}
    raw: list[Row] = []
    for item in bounded(json_rows(io.BytesIO(content), path.name, HELD), path.name, HELD):
        if item.values is None:
            raise item.bad(item.problem)
        # A field that is null is as good as absent.
        item = replace(item, values={key: value for key, value in item.values.items() if value is not None})
        level, kind = _level(item), kind_of(item)
        if shape not in (None, (level, kind)):
            raise item.bad(f"a {level} with {kind} among others; use a file for each kind")
        shape = level, kind
        for row in _rows(item, f"{name}-{item.number:05d}", level, kind):
            if row["id"] in row_of:
                raise item.bad(f"id {row['id']!r} was used in row {row_of[row['id']].place}")
            row_of[row["id"]] = item
            raw.append(row)
    if shape is None:
        raise BadFile(f"{path.name} has no rows; write one JSON object per line")
    level, kind = shape
    if kind == "ratings" and (empty := _unrated(raw)):
        first = next(row for row in raw if empty[0] in row["scores"] or empty[0] in row["ratings"])
        raise row_of[first["id"]].bad(f"no row rates {empty[0]!r}; leave that aspect out")
    info = _infer(name, raw, level, kind, SourceFile(path.name, hashlib.sha256(content).hexdigest(), len(content)))
    return info, complete(info, raw)


def _level(item: RawRow) -> BenchmarkLevel:
    """Dialogue where the item says so, or has a dialogue, or has nothing that answers its context."""
    values = item.values or {}
    level = values.get("level")
    if level not in (None, "turn", "dialogue"):
        raise item.bad(f"level is {level!r}; write turn or dialogue")
    if level is not None:
        return "dialogue" if level == "dialogue" else "turn"
    return "dialogue" if "dialogue" in values or not ("response" in values or values.get("responses")) else "turn"


def kind_of(item: RawRow) -> Kind:
    """Which of the three kinds of judgement the item carries."""
    values = item.values or {}
    if "adversarial_response" in values:
        return "pairs"
    if values.get("responses") or "label" in values:
        return "labels"
    if values.get("scores") or values.get("ratings") or "rating" in values:
        return "ratings"
    raise item.bad(
        "nothing to compare with; give a rating, ratings, scores, a label, responses or an adversarial_response"
    )


def _rows(item: RawRow, default_id: str, level: BenchmarkLevel, kind: Kind) -> list[Row]:
    """The rows of an item: one, or one per reply where it lists several."""
    values = dict(item.values or {})
    dataset = {"dataset": _text(item, "dataset", values["dataset"])} if "dataset" in values else {}
    if level == "dialogue":
        if kind != "ratings":
            raise item.bad("a dialogue needs scores or ratings; labels and attacks are for single turns")
        return [{**_dialogue(item, values, default_id), **dataset, **_judgements(item, values)}]
    has_several = kind == "labels" and bool(values.get("responses"))
    exchange = to_exchange(
        replace(item, values={**values, "response": ""}) if has_several else item, _COLUMNS, empty="score"
    )
    row_id = exchange.id or default_id
    common: Row = {"id": row_id, "facts": list(exchange.facts), "system": exchange.system, **dataset}
    if has_several:
        replies = _replies(item, values["responses"])
        return [{**common, **reply} for reply in labelled_replies(row_id, exchange.context, replies)]
    following = {} if exchange.following is None else {"following": exchange.following}
    texts = {"context": list(exchange.context), "response": exchange.response, "references": list(exchange.references)}
    judged = {"ratings": _judgements, "labels": _label, "pairs": _attack}[kind](item, values)
    return [{**common, **texts, **following, **judged}]


def _dialogue(item: RawRow, values: dict[str, Any], default_id: str) -> Row:
    turns = values.pop("dialogue", values.pop("context", None))
    if isinstance(turns, list) and "response" in values:
        turns = [*turns, values["response"]]  # a last turn may stand apart; it belongs to the dialogue
    values = {key: value for key, value in values.items() if key not in ("context", "response")}
    whole = to_dialogue(replace(item, values={**values, "dialogue": turns}), _COLUMNS, empty="score")
    named = {"id": whole.id or default_id, "facts": list(whole.facts), "system": whole.system}
    return {**named, "dialogue": list(whole.turns), "speakers": list(whole.speakers)}


def _text(item: RawRow, field: str, value: Any) -> str:
    try:
        return check_exchange("", response=value, context=(), empty="score").response
    except BadRow as error:
        raise item.bad(error.problem.replace("response", field, 1)) from None


def _texts(item: RawRow, field: str, value: Any) -> list[str]:
    try:
        return list(check_exchange("", response="", context=value, empty="score").context)
    except BadRow as error:
        raise item.bad(error.problem.replace("context", field, 1)) from None


def _replies(item: RawRow, responses: Any) -> dict[str, list[str]]:
    kinds = {**{word: kind for kind, word in REPLY_KINDS.items()}, **{kind: kind for kind in REPLY_KINDS}}
    if not isinstance(responses, dict) or set(responses) - set(kinds):
        raise item.bad(f"responses must be lists of replies under {', '.join(REPLY_KINDS)}")
    replies = {kinds[word]: _texts(item, f"responses.{word}", texts) for word, texts in responses.items()}
    if not replies.get("positive"):
        raise item.bad("responses has no positive reply; give at least one")
    return replies


def _label(item: RawRow, values: Mapping[str, Any]) -> Row:
    label = values["label"]
    if label not in (0, 1):
        raise item.bad(f"label is {label!r}; write 1 for a valid reply, 0 for another")
    kind = values.get("kind_of_reply") or ("positive" if label else "negative")
    return {"label": int(label), "kind_of_reply": _text(item, "kind_of_reply", kind)}


def _attack(item: RawRow, values: Mapping[str, Any]) -> Row:
    harmful = values.get("harmful", True)
    if not isinstance(harmful, bool):
        raise item.bad(f"harmful is {harmful!r}; write true or false, or leave it out for true")
    context = values.get("adversarial_context") or values["context"]
    return {
        "adversarial_context": _texts(item, "adversarial_context", context),
        "adversarial_response": _text(item, "adversarial_response", values["adversarial_response"]),
        **{field: _text(item, field, values[field]) if field in values else None for field in ("attack", "domain")},
        "harmful": harmful,
    }


def _ratings(item: RawRow, aspect: str, given: Any) -> list[float]:
    """Exported rows have every aspect, null where nobody rated it; a number is that of one rater."""
    if not isinstance(given, list | int | float | None):
        raise item.bad(f"the ratings of {aspect} are {a_kind(given)}; give a list of numbers")
    rated = [given] if isinstance(given, int | float) else given or ()
    return [_number(item, f"a rating of {aspect}", value) for value in rated]


def _judgements(item: RawRow, values: Mapping[str, Any]) -> Row:
    ratings, scores = values.get("ratings") or {}, values.get("scores") or {}
    # One number, or a list of them, speaks of the reply as a whole.
    if isinstance(ratings, list):
        ratings = {OVERALL: ratings}
    if "rating" in values and isinstance(scores, dict):
        scores = {OVERALL: values["rating"], **scores}
    if not isinstance(ratings, dict) or not isinstance(scores, dict):
        raise item.bad("scores and ratings are objects with one entry per aspect, or ratings a list of numbers")
    return {
        "ratings": {aspect: _ratings(item, aspect, given) for aspect, given in ratings.items()},
        "scores": {
            aspect: None if score is None else _number(item, f"the score of {aspect}", score)
            for aspect, score in scores.items()
        },
    }


def _number(item: RawRow, what: str, value: Any) -> float:
    # JSON's integers have no end, so a comparison comes before any conversion.
    if isinstance(value, bool) or not isinstance(value, int | float) or not -1e300 < value < 1e300:
        raise item.bad(f"{what} is {value!r:.40}; give a number, or null for a score that is missing")
    return float(value)


def _infer(name: str, rows: list[Row], level: BenchmarkLevel, kind: Kind, file: SourceFile) -> BenchmarkInfo:
    named = list(dict.fromkeys(row["dataset"] for row in rows if "dataset" in row))
    for row in rows:
        row.setdefault("dataset", name)
    systems = tuple(dict.fromkeys(row["system"] for row in rows if row.get("system") is not None))
    humans = tuple(system for system in systems if system.lower() in _HUMAN)
    negatives = tuple(system for system in systems if system.lower() in _NEGATIVE)
    written = {"generated": (*humans, *negatives)} if humans or negatives else {}
    aspects = {aspect: _scale(rows, aspect) for aspect in _aspects(rows)} if kind == "ratings" else {}
    main = {"labels": "label", "pairs": "harmful"}.get(kind) or main_aspect(aspects)
    return BenchmarkInfo(
        name=named[0] if len(named) == 1 else name,
        title=file.path,
        level=level,
        rows=len(rows),
        sources=(FileSource(OWN_FILE, "", (file,)),),
        licence="not known",
        citation="not known",
        kind=kind,
        aspects=aspects,
        main_aspect=main,
        systems=systems,
        human_systems=humans,
        negative_systems=negatives,
        following=any("following" in row for row in rows),
        exclusions={"none": (), **written},
        oddities=("Aspects, their scales and the systems are inferred from the rows.",),
    )


def _aspects(rows: list[Row]) -> list[str]:
    return list(dict.fromkeys(chain.from_iterable((*row["scores"], *row["ratings"]) for row in rows)))


def _unrated(rows: list[Row]) -> list[str]:
    given = chain.from_iterable((*row["scores"].items(), *row["ratings"].items()) for row in rows)
    rated = {aspect for aspect, value in given if value is not None and value != []}
    return [aspect for aspect in _aspects(rows) if aspect not in rated]


def _scale(rows: list[Row], aspect: str) -> Scale:
    given = [value for row in rows for value in row["ratings"].get(aspect, ())]
    values = given or [row["scores"][aspect] for row in rows if row["scores"].get(aspect) is not None]
    return Scale(min(values), max(values)) if values else Scale(0, 0)


def main_aspect(aspects: Iterable[str]) -> str:
    """Of several aspects the one that stands for the whole impression, else the first."""
    return min(aspects, key=lambda aspect: [*MAIN, aspect.lower()].index(aspect.lower()))
