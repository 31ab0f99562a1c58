"""Lowest-scoring rows: kept while it passes, judged once more at its end for aspects and reasons."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field

from dialeval.core.exchange import Dialogue, Exchange, turn_at
from dialeval.core.scores import Scores, weakest_aspects
from dialeval.io.harmless import one_line
from dialeval.scoring.score_table import Record
from dialeval.scoring.task import Chunk, Task

#: Characters of a reply, and of the turn before it, that are shown.
_SHOWN = 100


@dataclass
class Worst:
    """The `count` rows that the first metric of rows judges worst."""

    task: Task
    count: int
    #: By how bad a value is, then by place; the least bad first.
    kept: list[tuple[float, int, int, Exchange | Dialogue]] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.count < 0:
            raise ValueError(f"{self.count} worst rows cannot be shown; pass 0 or more")
        if not self.task.of_rows:
            raise ValueError(f"{', '.join(self.task.infos)} judges systems, so there are no worst rows; leave them out")

    def see(self, chunk: Chunk, record: Record) -> None:
        """Look at one finished chunk."""
        name = self.task.of_rows[0]
        turned = -1 if self.task.infos[name].higher_is_better else 1
        for place, (row, value) in enumerate(zip(chunk.rows, record["values"][name], strict=True)):
            if value is not None:
                heapq.heappush(self.kept, (turned * value, -row, place, chunk.items[place]))
                if len(self.kept) > self.count:
                    heapq.heappop(self.kept)

    def lines(self) -> list[str]:
        """The worst first: value, reply (or weakest turn), the turn before it, and what the metric says of it."""
        if not self.kept:
            return []
        name, worst = self.task.of_rows[0], sorted(self.kept, key=lambda kept: kept[:3], reverse=True)
        chunk = Chunk(rows=[-row for _, row, _, _ in worst])
        chunk.places = [f"row {row}" for row in chunk.rows]
        chunk.exchanges = [item for _, _, _, item in worst if isinstance(item, Exchange)]
        chunk.dialogues = [item for _, _, _, item in worst if isinstance(item, Dialogue)]
        scores = self.task.judge(self.task.metrics[name], chunk)
        lines = [f"the worst {len(worst)} by {name}:"]
        for index, (*_, item) in enumerate(worst):
            before, reply = (one_line(text)[:_SHOWN] for text in turn_at(item, scores.weakest_turn(index)))
            named = " ".join(one_line(name) for name in (f"row {chunk.rows[index]}", item.id, item.system) if name)
            lines.append(f"  {named} {scores.values[index]:.4g}: {reply!r} after {before!r}")
            lines.append(f"    {_said_of(scores, index)}")
        return [line for line in lines if line.strip()]


def _said_of(scores: Scores, index: int) -> str:
    aspects = {name: float(column[index]) for name, column in scores.aspects.items()}
    shown = weakest_aspects(aspects, higher_is_better=scores.higher_is_better)
    return " ".join(filter(None, (scores.explain(index) if scores.reasons else "", f"({shown})" if shown else "")))
