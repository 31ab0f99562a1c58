"""The bar of a scoring run."""

from __future__ import annotations

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

    shown = (TextColumn("scoring"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Bar(*shown, console=console, transient=True) as bar:
        work = bar.add_task("", total=None)
        yield lambda done, total: bar.update(work, completed=done, total=total)
