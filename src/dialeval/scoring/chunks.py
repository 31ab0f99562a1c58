"""Rows in chunks: the unit that is scored, written and, after an interruption, not scored again."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from dialeval.exchange import Dialogue, Exchange
from dialeval.readers.rows import RawRow

#: Pairs of context and response in a chunk, and a bound on its text, which is what fills memory.
CHUNK_PAIRS = 2048
CHUNK_CHARACTERS = 2**25


@dataclass
class Chunk:
    """Some consecutive rows, all of them exchanges or all of them dialogues."""

    rows: list[int] = field(default_factory=list)
    places: list[str] = field(default_factory=list)
    exchanges: list[Exchange] = field(default_factory=list)
    dialogues: list[Dialogue] = field(default_factory=list)

    @property
    def items(self) -> list[Exchange] | list[Dialogue]:
        """The exchanges or dialogues."""
        return self.dialogues or self.exchanges

    def fingerprint(self) -> str:
        """A digest of the rows' numbers and contents, so that a changed input is noticed."""
        digest = hashlib.sha256()
        for row, item in zip(self.rows, self.items, strict=True):
            digest.update(f"{row} {item!r}\n".encode())
        return digest.hexdigest()


def chunked(rows: Iterable[tuple[RawRow, Exchange | Dialogue]], pairs: int = CHUNK_PAIRS) -> Iterator[Chunk]:
    """Cut a stream into chunks; where the cuts fall depends on the rows alone."""
    chunk, n_pairs, n_characters = Chunk(), 0, 0
    for row, item in rows:
        chunk.rows.append(row.number)
        chunk.places.append(row.place)
        if isinstance(item, Dialogue):
            chunk.dialogues.append(item)
            n_pairs += len(item.turns) - 1
            # Every turn is judged with its whole prefix, which a metric may hold at once.
            n_characters += sum(map(len, item.turns))
        else:
            chunk.exchanges.append(item)
            n_pairs += 1
            n_characters += sum(map(len, item.context)) + len(item.response) + sum(map(len, item.references))
        if n_pairs >= pairs or n_characters >= CHUNK_CHARACTERS:
            yield chunk
            chunk, n_pairs, n_characters = Chunk(), 0, 0
    if chunk.rows:
        yield chunk
