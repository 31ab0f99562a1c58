"""The bar of a scoring run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dialeval.scoring.run import Progress


@contextmanager
def bar(total: int | None) -> Iterator[Progress]:
    """A progress bar on standard error, if somebody is looking."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    console = Console(stderr=True)
    shown = (TextColumn("scoring"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Bar(*shown, console=console, transient=True, disable=not console.is_terminal) as bar:
        work = bar.add_task("", total=total)
        yield lambda done: bar.update(work, completed=done)
