"""One line of a benchmark file, checked and turned into raw rows."""

from __future__ import annotations

from typing import Any

from dialeval.benchmarks.base import BenchmarkLevel, Kind, Row
from dialeval.benchmarks.rows import REPLY_KINDS, labelled_replies
from dialeval.exchange import BadRow, check_exchange


class BadItem(ValueError):
    """What is wrong with one item, and what to do."""


def level_of(item: Row) -> BenchmarkLevel:
    """Dialogue where the item says so, or has a dialogue, or has nothing that answers its context."""
    said = item.get("level")
    if said not in (None, "turn", "dialogue"):
        raise BadItem(f"level is {said!r}; write turn or dialogue")
    if said is not None:
        return "dialogue" if said == "dialogue" else "turn"
    answered = item.get("response") is not None or item.get("responses")
    return "dialogue" if item.get("dialogue") is not None or not answered else "turn"


def kind_of(item: Row) -> Kind:
    """Which of the three kinds of judgement the item carries."""
    if item.get("adversarial_response") is not None:
        return "pairs"
    if item.get("responses") or item.get("label") is not None:
        return "labels"
    if item.get("scores") or item.get("ratings"):
        return "ratings"
    raise BadItem("nothing to compare with; give scores, ratings, a label, responses or an adversarial_response")


def rows_of(item: Row, default_id: str, level: BenchmarkLevel, kind: Kind) -> list[Row]:
    """The raw rows of an item: one, or one per reply where it lists several."""
    named = _named(item, default_id)
    if level == "dialogue":
        if kind != "ratings":
            raise BadItem("a dialogue needs scores or ratings; labels and attacks are for single turns")
        return [{**named, **_dialogue(item), **_judgements(item)}]
    context = _texts("context", item.get("context"))
    if kind == "labels" and item.get("responses"):
        return [{**named, **reply} for reply in labelled_replies(named["id"], context, _replies(item["responses"]))]
    references = item.get("references")
    references = item.get("reference") if references is None else references
    row = {
        **named,
        "context": context,
        "response": _text("response", item.get("response")),
        "references": [] if references is None else _texts("references", references),
        **({} if item.get("following") is None else {"following": _text("following", item["following"])}),
    }
    judged = {"ratings": _judgements, "labels": _label, "pairs": _attack}[kind](item)
    return [{**row, **judged}]


def _named(item: Row, default_id: str) -> Row:
    """What rows of every level and kind have. The library checks it where it enters, an empty reply passes."""
    try:
        checked = check_exchange(
            "", response="", context=(), facts=item.get("facts"), system=item.get("system"), id=item.get("id"),
            empty="score",
        )  # fmt: skip
    except BadRow as error:
        raise BadItem(error.problem) from None
    dataset = {} if item.get("dataset") is None else {"dataset": _text("dataset", item["dataset"])}
    return {"id": checked.id or default_id, "facts": list(checked.facts), "system": checked.system, **dataset}


def _texts(field: str, value: Any) -> list[str]:
    try:
        return list(check_exchange("", response="", context=value, empty="score").context)
    except BadRow as error:
        raise BadItem(error.problem.replace("context", field, 1)) from None


def _text(field: str, value: Any) -> str:
    try:
        return check_exchange("", response=value, context=(), empty="score").response
    except BadRow as error:
        raise BadItem(error.problem.replace("response", field, 1)) from None


def _dialogue(item: Row) -> Row:
    name = "dialogue" if item.get("dialogue") is not None else "context"
    dialogue = _texts(name, item.get(name))
    if item.get("response") is not None:
        # A last turn may stand apart as the response; it belongs to the dialogue.
        dialogue.append(_text("response", item["response"]))
    if len(dialogue) < 2:
        raise BadItem(f"{name} has {len(dialogue)} turns; a dialogue needs at least two, as a list")
    speakers = [] if item.get("speakers") is None else _texts("speakers", item["speakers"])
    if speakers and len(speakers) != len(dialogue):
        raise BadItem(f"{len(speakers)} speakers for {len(dialogue)} turns; name one per turn, or none")
    return {"dialogue": dialogue, "speakers": speakers}


def _replies(responses: Any) -> dict[str, list[str]]:
    kinds = {**{word: kind for kind, word in REPLY_KINDS.items()}, **{kind: kind for kind in REPLY_KINDS}}
    if not isinstance(responses, dict) or set(responses) - set(kinds):
        raise BadItem(f"responses must be lists of replies under {', '.join(REPLY_KINDS)}")
    replies = {kinds[word]: _texts(f"responses.{word}", texts) for word, texts in responses.items()}
    if not replies.get("positive"):
        raise BadItem("responses has no positive reply; give at least one")
    return replies


def _label(item: Row) -> Row:
    label = item["label"]
    if label not in (0, 1):
        raise BadItem(f"label is {label!r}; write 1 for a valid reply, 0 for another")
    kind = item.get("kind_of_reply") or ("positive" if label else "negative")
    return {"label": int(label), "kind_of_reply": _text("kind_of_reply", kind)}


def _attack(item: Row) -> Row:
    harmful = item.get("harmful", True)
    if not isinstance(harmful, bool):
        raise BadItem(f"harmful is {harmful!r}; write true or false, or leave it out for true")
    return {
        "adversarial_context": _texts("adversarial_context", item.get("adversarial_context") or item.get("context")),
        "adversarial_response": _text("adversarial_response", item["adversarial_response"]),
        **{name: None if item.get(name) is None else _text(name, item[name]) for name in ("attack", "domain")},
        "harmful": harmful,
    }


def _judgements(item: Row) -> Row:
    ratings, scores = item.get("ratings") or {}, item.get("scores") or {}
    if not isinstance(ratings, dict) or not isinstance(scores, dict):
        raise BadItem("scores and ratings must be objects with one entry per aspect")
    checked = {}
    for aspect, values in ratings.items():
        # Exported rows have every aspect, null where nobody rated it.
        if not isinstance(values, list | None):
            raise BadItem(f"ratings of {aspect} are a {type(values).__name__}; give a list of numbers")
        checked[aspect] = [_number(f"a rating of {aspect}", value) for value in values or ()]
    given = {
        aspect: None if score is None else _number(f"the score of {aspect}", score) for aspect, score in scores.items()
    }
    return {"ratings": checked, "scores": given}


def _number(what: str, value: Any) -> float:
    # JSON's integers have no end, so a comparison comes before any conversion.
    if isinstance(value, bool) or not isinstance(value, int | float) or not -1e300 < value < 1e300:
        raise BadItem(f"{what} is {value!r:.40}; give a number, or null for a score that is missing")
    return float(value)
