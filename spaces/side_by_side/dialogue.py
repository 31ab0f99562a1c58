"""A whole conversation, judged: what each metric says of it, and what the judge saw in both sides."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from limits import MAX_CALL_TURNS, Refused, taken, taken_all
from markup import bar, listed, note, number, table, text
from models import direction_of, info_of, judge_dialogue, ready, titled

from dialeval.metric import Level
from dialeval.scores import Scores

#: A line such as "Anna: hello"; only if all lines begin so are these names.
_NAMED = re.compile(r"\s*([^\W\d_][\w .'-]{0,24})\s*:\s+(\S.*)")
#: What the two sides are called where nobody names them; the judge knows which of these it judges.
SIDES = ("user", "bot")


@dataclass
class Conversation:
    """The turns, who said them, and what every metric says of the whole."""

    turns: list[str]
    speakers: list[str]
    scores: dict[str, Scores]
    notes: list[str]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for the endpoint."""
        kept = ("aspects", "intervals", "reasons", "higher_is_better", "n_truncated", "signature")
        metrics = {}
        for name, scores in self.scores.items():
            record = scores.to_dict()
            metrics[name] = {"value": record["values"][0], **{key: record[key] for key in kept if key in record}}
        return {"metrics": metrics, "notes": self.notes}


def read_lines(lines: Any, first_is_judged: bool) -> tuple[list[str], list[str]]:
    """A turn a line: "Anna: hello" where every line names its speaker, else the sides alternate."""
    typed, _ = taken("the conversation", lines or "", MAX_CALL_TURNS)
    said = [line.strip() for line in typed.splitlines() if line.strip()]
    named = [_NAMED.fullmatch(line) for line in said]
    names = [match[1].strip() if match else "" for match in named]
    if said and all(names) and len(set(names)) == 2:
        judged = names[0] if first_is_judged else next(name for name in names if name != names[0])
        turns = [match[2] for match in named if match]
        return turns, [SIDES[name == judged] for name in names]
    return said, [SIDES[(at + first_is_judged) % 2] for at in range(len(said))]


def judged(turns: Any, speakers: Any, metrics: Any) -> Conversation:
    """Check what came in, then ask every metric."""
    offered = ready(Level.TURN)
    if isinstance(metrics, str) or not isinstance(metrics, Sequence) or not metrics:
        raise Refused(f"no metric is chosen; choose from {', '.join(offered)}")
    if unknown := next((name for name in metrics if name not in offered), None):
        raise Refused(
            f"there is no metric {str(unknown)[:40]!r} for conversations here; there are {', '.join(offered)}"
        )
    said, removed = taken_all("turn", "turns", turns, MAX_CALL_TURNS)
    who, _ = taken_all("speaker", "speakers", speakers or [], MAX_CALL_TURNS)
    if len(said) < 2:
        raise Refused("a conversation has at least two turns; write one turn a line")
    if blank := next((place for place, turn in enumerate(said, start=1) if not turn.strip()), 0):
        raise Refused(f"turn {blank} is empty; write it, or remove it")
    notes = [f"{removed} control characters were taken out of the text."] if removed else []
    scores = {}
    for name in dict.fromkeys(metrics):
        if "references" in info_of(name).needs:
            notes.append(f"{info_of(name).title} compares with references, which a conversation does not have.")
            continue
        scores[name] = judge_dialogue(name, said, who)
        if cut := scores[name].n_truncated:
            notes.append(f"{info_of(name).title}: {cut} of the turns were judged on cut text.")
    return Conversation(said, who, scores, notes)


def rendered(found: Conversation) -> str:
    """The conversation as it was understood, a line per metric, and what the judge saw and why."""
    notes = listed((text(one, 400) for one in found.notes), "notes")
    spoken = [
        f"<b>{'The judged side' if who == SIDES[1] else 'The other side'}</b>: {text(turn, 400)}"
        for who, turn in zip(found.speakers, found.turns, strict=True)
    ]
    parts = [listed(spoken, "conversation")]
    rows = [
        [f"{titled(name)}<small>{text(_what(name), 120)}</small>", number(scores.values[0]), _interval(scores)]
        for name, scores in found.scores.items()
    ]
    if rows:
        parts.append(table("Scores of the conversation", ["metric", "value", "90% of human ratings"], rows))
    for name, scores in found.scores.items():
        known = {aspect: column[0] for aspect, column in scores.aspects.items() if np.isfinite(column[0])}
        if known:
            lines = [[text(aspect.replace("_", " "), 40), bar(value)] for aspect, value in known.items()]
            parts.append(table(f"What {info_of(name).title} sees in it", ["aspect", "value"], lines))
        parts.append(listed((f"<b>Why</b>: {text(why, 600)}" for why in scores.reasons), "reasons notes"))
    meanings = [note(f"{info_of(name).title}: {direction_of(name)} {info_of(name).summary}") for name in found.scores]
    return "".join(parts) + notes + "".join(meanings)


def _what(name: str) -> str:
    return info_of(name).of_dialogues or "the mean over every turn after the first, by both sides"


def _interval(scores: Scores) -> str:
    return "–" if scores.interval is None else f"{number(scores.interval[0, 0])} to {number(scores.interval[0, 1])}"
