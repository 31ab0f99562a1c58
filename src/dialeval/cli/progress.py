"""The bar of a scoring run."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dialeval.scoring.run import Progress


@contextmanager
def bar() -> Iterator[Progress]:
    """A progress bar on standard error if somebody is looking, else a line each tenth."""
    from rich.console import Console

    from dialeval.io import ProgressLines

    console = Console(stderr=True)
    if not console.is_terminal:
        lines = ProgressLines("scoring", None)

        def tell(done: int, total: int | None) -> None:
            lines.total = total
            lines.reach(done)

        yield tell
        return
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    rate = TextColumn("{task.fields[rate]}")
    shown = (BarColumn(), MofNCompleteColumn(), rate, TimeElapsedColumn(), TimeRemainingColumn())
    with Bar(TextColumn("{task.description}"), *shown, console=console, transient=True) as bar:
        work, begun = bar.add_task("reading and loading", total=None, rate=""), [0.0]

        def show(done: int, total: int | None) -> None:
            if not done:
                begun[0] = time.monotonic()
            speed = done / max(time.monotonic() - begun[0], 1e-3)
            told = f"{speed:,.0f} rows/s" if done else ""
            bar.update(work, description="scoring", completed=done, total=total, rate=told)

        yield show
