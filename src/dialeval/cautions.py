"""Where numbers mislead: text that is not English, replies that are cut, and replies that are all the same.

Each caution is one sentence about a set of replies.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from dialeval.exchange import Dialogue, Exchange, is_blank
from dialeval.languages import ENGLISH, language_of

#: Rows, and characters, that a long run keeps for a look at the end.
KEPT_ROWS, KEPT_CHARACTERS = 20_000, 2**24
CUT_SHARE = 0.1
#: One reply in three being the same is a habit, not a coincidence; below so many rows it is no pattern.
SAME_SHARE, ENOUGH_ROWS = 1 / 3, 12
ECHO_SHARE = 0.25

_WORD = re.compile(r"\w+(?:['’]\w+)?")


def cautions(exchanges: Sequence[Exchange], n_truncated: int = 0) -> tuple[str, ...]:
    """What a reader of scores of these replies should know first."""
    if not exchanges:
        return ()
    found = [
        _languages(exchanges),
        cut_note(len(exchanges), n_truncated),
        *(_sameness(name, rows) for name, rows in _by_system(exchanges).items()),
    ]
    return tuple(sentence for sentence in found if sentence)


@dataclass
class FirstRows:
    """Keeps the first rows of a run that is too long to be held, for `cautions` at its end."""

    kept: list[Exchange] = field(default_factory=list)
    characters: int = 0

    def see(self, items: Iterable[Exchange | Dialogue]) -> None:
        """Look at some more rows; of each its reply and the turn before are kept."""
        for item in items:
            for row in _replies(item):
                if len(self.kept) == KEPT_ROWS or self.characters > KEPT_CHARACTERS:
                    return
                self.kept.append(replace(row, context=row.context[-1:]))
                self.characters += len(row.response) + sum(map(len, row.context[-1:]))

    def messages(self) -> list[str]:
        """What is to be said of what was seen."""
        return list(cautions(self.kept))


def _replies(item: Exchange | Dialogue) -> Iterator[Exchange]:
    if isinstance(item, Exchange):
        yield Exchange(item.context, item.response, system=item.system)
        return
    for at in range(1, len(item.turns)):
        yield Exchange(item.turns[at - 1 : at], item.turns[at], system=item.system)


def _languages(exchanges: Sequence[Exchange]) -> str:
    """How many replies are not English, and in which languages; a long run is judged by the rows that were kept."""
    found = Counter(language_of(row.response) for row in exchanges)
    others = {language: count for language, count in found.most_common() if language not in ("", ENGLISH)}
    if not others:
        return ""
    shown = ", ".join(f"{language} {count}" for language, count in others.items())
    return (
        f"{sum(others.values())} of {len(exchanges)} replies are not English ({shown}); the metrics were trained on "
        "English and mean little there"
    )


def cut_note(rows: int, n_truncated: int) -> str:
    """A sentence where more than a tenth of the rows were truncated, else nothing."""
    if n_truncated <= CUT_SHARE * rows:
        return ""
    return f"{n_truncated} of {rows} rows were truncated to what the encoder reads; their oldest turns are not seen"


def _sameness(system: str | None, rows: Sequence[Exchange]) -> str:
    said = [" ".join(_WORD.findall(row.response.lower())) for row in rows if not is_blank(row.response)]
    if len(said) < ENOUGH_ROWS:
        return ""
    whose = "the replies" if system is None else f"the replies of {system}"
    most, times = Counter(said).most_common(1)[0]
    if times >= SAME_SHARE * len(said):
        shown = most if len(most) <= 40 else f"{most[:37]}..."
        return f"{times} of {len(said)} of {whose} are the same (“{shown}”); metrics of single replies cannot see that"
    echoes = sum(_echoes(row) for row in rows)
    if echoes >= ECHO_SHARE * len(said):
        return f"{echoes} of {len(said)} of {whose} repeat the turn before; relevance to the context is no merit there"
    distinct = len(set(said))
    if len(said) >= 3 * ENOUGH_ROWS and distinct <= len(said) / 5:
        return f"{whose} are {distinct} different ones in {len(said)} rows; metrics of single replies cannot see that"
    return ""


def _echoes(row: Exchange) -> bool:
    said = _WORD.findall(row.response.lower())
    return len(said) > 3 and said == _WORD.findall(" ".join(row.context[-1:]).lower())


def _by_system(exchanges: Sequence[Exchange]) -> dict[str | None, list[Exchange]]:
    found: dict[str | None, list[Exchange]] = {}
    for row in exchanges:
        found.setdefault(row.system, []).append(row)
    return found
