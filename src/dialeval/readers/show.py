"""How rows were understood, as a chat: what was said before, the reply that is judged, and what stands beside it."""

from __future__ import annotations

from collections.abc import Iterator

from dialeval.core.exchange import Dialogue, Exchange
from dialeval.io.harmless import one_line
from dialeval.readers.rows import RawRow

_LONGEST = 300


def in_words(row: RawRow, item: Exchange | Dialogue) -> Iterator[str]:
    """A line each turn, reply, reference and fact."""
    names = [f"{name} {value}" for name, value in (("id", item.id), ("system", item.system)) if value]
    yield one_line(", ".join([f"row {row.place}", *names]))
    turns = item.turns if isinstance(item, Dialogue) else item.context
    judged = set(item.answers) if isinstance(item, Dialogue) else set[int]()
    whose = item.speakers or [""] * len(turns)
    for n, (who, text) in enumerate(zip(whose, turns, strict=True)):
        yield _line(who or ("judged" if n in judged else f"turn {n}"), text, judged=n in judged and bool(who))
    if isinstance(item, Exchange):
        yield _line("reply", item.response, judged=True)
        yield from (_line("then", text) for text in [item.following] if text)
        yield from (_line("reference", text) for text in item.references)
    yield from (_line("fact", text) for text in item.facts)


def _line(name: str, text: str, *, judged: bool = False) -> str:
    text = one_line(" ".join(text.split())) or "(blank)"
    text = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
    return f"  {'>' if judged else ' '} {one_line(name)}: {text}"
