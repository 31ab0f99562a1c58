"""Where numbers mislead: text that is not English, replies that are cut, and replies that are all the same.

Each caution is one sentence. They are about a set of replies, not about one: a single short reply has no language.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from dialeval.exchange import Dialogue, Exchange, is_blank

#: Rows that are looked at for the language; more would not change the answer.
LOOKED_AT = 500
#: Fewer words than these have no language.
ENOUGH_WORDS = 40
#: Rows, and characters, that a long run keeps for a look at the end.
KEPT_ROWS, KEPT_CHARACTERS = 20_000, 2**24
#: Everyday English has about half of its words here, its neighbours share one in ten.
ENGLISH_SHARE = 0.25
CUT_SHARE = 0.1
#: One reply in three being the same is a habit, not a coincidence; below so many rows it is no pattern.
SAME_SHARE, ENOUGH_ROWS = 1 / 3, 12
ECHO_SHARE = 0.25

_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_ENGLISH = frozenset(
    "the a an and or but of to in on at for with from by about as is are was were be been am do does did have has had "
    "will would can could should i you he she it we they me him her us them my your his its our their this that these "
    "those there here what who when where why how which not no yes so if then than very just too also really like know "
    "think go get got good well all some any more much one it's i'm don't that's you're".split()
)


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
class Watch:
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
    """Of all replies together, or else of the systems that speak another language than the rest."""
    problem = _language(exchanges)
    if problem:
        return f"the replies {problem}"
    of_systems = {name: _language(rows) for name, rows in _by_system(exchanges).items()}
    named = [str(name) for name, problem in of_systems.items() if problem]
    return f"the replies of {', '.join(named)} {next(filter(None, of_systems.values()))}" if named else ""


def _language(exchanges: Sequence[Exchange]) -> str:
    words = letters = english = foreign = 0
    for row in exchanges[:LOOKED_AT]:
        said = _WORD.findall(row.response.lower())
        words += len(said)
        english += sum(word in _ENGLISH for word in said)
        letters += sum(character.isalpha() for character in row.response)
        foreign += sum(character.isalpha() and ord(character) > 0x24F for character in row.response)
    # Scripts without spaces have few words, so letters count there.
    if letters >= ENOUGH_WORDS and foreign > 0.5 * letters:
        return "are not in the Latin alphabet; the metrics were trained on English and mean little here"
    if words >= ENOUGH_WORDS and english < ENGLISH_SHARE * words:
        return "do not look English; the metrics were trained on English and mean little here"
    return ""


def cut_note(rows: int, n_truncated: int) -> str:
    """A sentence where more than a tenth of the rows were cut, else nothing."""
    if n_truncated <= CUT_SHARE * rows:
        return ""
    return f"{n_truncated} of {rows} rows were cut to what the encoder reads; the oldest turns are not seen"


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
