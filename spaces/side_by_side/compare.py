"""Several replies to one conversation, judged side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import charts
import numpy as np
from limits import MAX_CALL_REPLIES, MAX_CALL_TURNS, Refused, taken, taken_all
from markup import bar, listed, number, share, table, text
from models import best_of, direction_of, human_percentile, info_of, judge, ready, titled

from dialeval.cautions import cautions
from dialeval.exchange import Exchange, check_exchange
from dialeval.metric import Level
from dialeval.scores import Scores

#: Columns of replies that stand beside each other on a desk; of more, each metric has a card.
_MOST_COLUMNS = 3


@dataclass
class Comparison:
    """What every metric said about every reply, which are best, and what else a reader must know."""

    replies: list[str]
    scores: dict[str, Scores]
    percentiles: dict[str, list[float] | None]
    notes: list[str] = field(default_factory=list)

    def best(self, name: str) -> set[int]:
        """The positions of a metric's best replies."""
        return best_of(list(self.scores[name].values), higher_is_better=info_of(name).higher_is_better)

    @property
    def signatures(self) -> str:
        """What somebody needs to get the same numbers, a line per metric."""
        return "\n".join(str(scores.signature) for scores in self.scores.values())

    def to_dict(self) -> dict[str, Any]:
        """Plain values for the endpoint."""
        metrics = {
            name: {
                "values": scores.to_dict()["values"],
                "human_percentile": self.percentiles[name],
                "best": sorted(self.best(name)),
                "higher_is_better": scores.higher_is_better,
                "n_truncated": scores.n_truncated,
                "signature": str(scores.signature),
                **{key: value for key, value in scores.to_dict().items() if key in ("aspects", "intervals", "reasons")},
            }
            for name, scores in self.scores.items()
        }
        return {"metrics": metrics, "notes": self.notes}


def compared(turns: Any, replies: Any, reference: Any, metrics: Any) -> Comparison:
    """Check what came in, then ask every metric."""
    names = _chosen(metrics)
    context, removed = taken_all("turn", "turns", turns, MAX_CALL_TURNS)
    candidates, more = taken_all("reply", "replies", replies, MAX_CALL_REPLIES)
    known, even_more = taken("the reference", reference or "")
    if not candidates:
        raise Refused("there is no reply to judge; write at least one")
    if not any(turn.strip() for turn in context):
        raise Refused("the conversation is empty; write at least one turn")
    if blank := next((place for place, reply in enumerate(candidates, start=1) if not reply.strip()), 0):
        raise Refused(f"reply {blank} is empty; write it, or remove it")
    exchanges = [_exchange(number, context, reply, known) for number, reply in enumerate(candidates, start=1)]
    notes = []
    if count := removed + more + even_more:
        notes.append(f"{count} control character{'s were' if count > 1 else ' was'} taken out of the text.")
    notes += [f"Mind: {one}." for one in cautions(exchanges)]
    scores = {}
    for name in names:
        info = info_of(name)
        if "references" in info.needs and not known.strip():
            notes.append(f"{info.title} compares with a reference, and there is none; write one to see its value.")
            continue
        scores[name] = judge(name, exchanges)
        if cut := scores[name].n_truncated:
            what = "1 reply was" if cut == 1 else f"{cut} replies were"
            notes.append(f"{info.title}: {what} judged on cut text, because the model does not read that much.")
    percentiles = {name: _plain(human_percentile(name, found.values)) for name, found in scores.items()}
    return Comparison(candidates, scores, percentiles, notes)


def rendered(found: Comparison) -> str:
    """The table, what each metric says in a sentence, and the notes."""
    notes = listed((text(one, 400) for one in found.notes), "notes")
    if not found.scores:
        return notes
    header = ["metric", *(f"Reply {place}<small>{text(reply, 60)}</small>" for place, reply in _numbered(found))]
    rows = []
    for name, scores in found.scores.items():
        best = found.best(name)
        cells = [_cell(value, found.percentiles[name], at, at in best) for at, value in enumerate(scores.values)]
        rows.append([f"{titled(name)}<small>{_arrow_of(name)}</small>", *cells])
    sentences = listed((_sentence(found, name) for name in found.scores), "meaning")
    beside = "".join(_explained(found, name) for name in found.scores)
    first = table("Scores of each reply", header, rows, cards=len(found.replies) > _MOST_COLUMNS)
    return _preferred(found) + first + beside + notes + f"<h3>What the numbers mean</h3>{sentences}"


def _preferred(found: Comparison) -> str:
    """The answer in a sentence: how many metrics prefer which reply."""
    if len(found.replies) < 2:
        shares = [one[0] for one in found.percentiles.values() if one]
        if not shares:
            return ""
        low, high = share(min(shares)), share(max(shares))
        ends = low if low == high else f"{low} to {high}"
        return f'<p class="answer">By the metrics here, {ends} of human replies score lower than this one.</p>'
    votes = [at for name in found.scores for at in found.best(name)]
    counts = sorted({at: votes.count(at) for at in votes}.items(), key=lambda one: -one[1])
    if not counts:
        return ""
    most = counts[0][1]
    best = [f"Reply {at + 1}" for at, times in counts if times == most]
    judges = (
        f"{most} of {len(found.scores)} metrics" if len(found.scores) > 1 else info_of(next(iter(found.scores))).title
    )
    verb = "prefers" if len(found.scores) == 1 else "prefer"
    return f'<p class="answer">{" and ".join(best)}: {judges} {verb} {"it" if len(best) == 1 else "each of them"}.</p>'


def chart(found: Comparison) -> str:
    """Bars of the metrics that know where human replies lie."""
    columns = {info_of(name).title: shares for name, shares in found.percentiles.items() if shares is not None}
    return charts.percentiles(columns, [f"Reply {place}" for place, _ in _numbered(found)]) if columns else ""


def _chosen(metrics: Any) -> list[str]:
    offered = ready(Level.TURN)
    if isinstance(metrics, str) or not isinstance(metrics, Sequence) or not metrics:
        raise Refused(f"no metric is chosen; choose from {', '.join(offered)}")
    for name in metrics:
        if name not in offered:
            raise Refused(f"there is no metric {str(name)[:40]!r} for replies here; there are {', '.join(offered)}")
    return list(dict.fromkeys(metrics))


def _exchange(place: int, context: list[str], reply: str, reference: str) -> Exchange:
    try:
        return check_exchange(
            place, response=reply, context=context, references=[reference] if reference.strip() else []
        )
    except ValueError as error:
        raise Refused(str(error).replace("row", "reply", 1)) from None


def _plain(values: Any) -> list[float] | None:
    return None if values is None else [float(value) for value in values]


def _numbered(found: Comparison) -> list[tuple[int, str]]:
    return list(enumerate(found.replies, start=1))


def _arrow_of(name: str) -> str:
    return "higher is better" if info_of(name).higher_is_better else "lower is better"


def _cell(value: float, shares: list[float] | None, at: int, is_best: bool) -> str:
    mark = ' <span class="mark">best</span>' if is_best else ""
    beside = f"<small>{share(shares[at])} of human replies are lower</small>" if shares else ""
    return f'<span class="{"best" if is_best else "value"}">{number(value)}</span>{mark}{beside}'


def _explained(found: Comparison, name: str) -> str:
    """A metric's aspects in a table of their own, and why each reply has its value."""
    scores, title = found.scores[name], info_of(name).title
    known = {aspect: column for aspect, column in scores.aspects.items() if any(np.isfinite(column))}
    header = ["aspect", *(f"Reply {place}" for place, _ in _numbered(found))]
    rows = [[text(aspect.replace("_", " "), 40), *(bar(value) for value in column)] for aspect, column in known.items()]
    reasons = [f"<b>Reply {place}</b>: {text(why, 400)}" for place, why in enumerate(scores.reasons, start=1)]
    return (table(f"What {title} sees in each reply", header, rows) if rows else "") + listed(reasons, "reasons notes")


def _sentence(found: Comparison, name: str) -> str:
    info, values = info_of(name), found.scores[name].values
    parts = []
    order = sorted(range(len(values)), key=lambda at: -values[at] if info.higher_is_better else values[at])
    if len(order) > 1:
        steps = [f"Reply {order[0] + 1}"]
        for before, at in pairwise(order):
            steps.append(f"{'=' if values[at] == values[before] else '›'} Reply {at + 1}")
        parts.append(f'<span class="order" data-metric="{name}">Best first: {" ".join(steps)}.</span>')
    if shares := found.percentiles[name]:
        top = order[0]
        parts.append(f"{share(shares[top])} of human replies score lower than Reply {top + 1}.")
    parts += [direction_of(name), info.summary]
    return f"<b>{info.title}</b>: {' '.join(parts)}"
