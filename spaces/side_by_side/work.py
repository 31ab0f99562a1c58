"""What workers do for the page. Arguments and answers are plain values, and nothing here knows of gradio."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import file_rows
from limits import Refused
from workers import Progress

from dialeval.weights.find import CheckpointError


def _well(progress: Progress) -> bool:
    return True


def _ready(progress: Progress) -> bool:
    """Load what most visitors ask for first, and let it score once, so that the first of them does not wait for it."""
    from compare import compared
    from models import first_choice, ready

    from dialeval.metric import Level

    compared(["How are you?"], ["Fine, thanks!"], "I am well.", first_choice(ready(Level.TURN)))
    return True


def _columns(progress: Progress, path: str) -> list[str]:
    return file_rows.columns_in(path)


def _preview(progress: Progress, path: str, role: str, columns: Mapping[str, str]) -> str:
    return file_rows.preview(path, columns, role)


def _file(
    progress: Progress, path: str, metrics: Sequence[str], folder: str, role: str, columns: Mapping[str, str]
) -> list[Any]:
    import models
    from file_report import plots, report
    from score_file import score_rows

    progress("reading", 0, 1)
    rows = file_rows.read_rows(path, models.needs_of(metrics), columns, role)
    scored = score_rows(rows, metrics, Path(folder), progress)
    signatures = "\n".join(tally.signature for tally in scored.summary.tallies.values())
    return [report(scored), plots(scored), signatures, [str(one) for one in scored.downloads]]


def _compare(
    progress: Progress, turns: Sequence[str], replies: Sequence[str], reference: str, metrics: Sequence[str]
) -> list[str]:
    from compare import chart, compared, rendered

    found = compared(turns, replies, reference, metrics)
    return [rendered(found), chart(found), found.signatures]


def _dialogue(progress: Progress, turns: Sequence[str], speakers: Sequence[str], metrics: Sequence[str]) -> list[str]:
    from dialogue import judged, rendered

    found = judged(turns, speakers, metrics)
    return [rendered(found), "\n".join(str(scores.signature) for scores in found.scores.values())]


def _call_score(progress: Progress, rows: Any, metrics: Any) -> dict[str, Any]:
    from calls import scored

    return scored(rows, metrics)


def _call_compare(progress: Progress, context: Any, replies: Any, reference: Any, metrics: Any) -> dict[str, Any]:
    from compare import compared

    return compared(context, replies, reference, metrics).to_dict()


def _call_dialogue(progress: Progress, turns: Any, speakers: Any, metrics: Any) -> dict[str, Any]:
    from dialogue import judged

    return judged(turns, speakers, metrics).to_dict()


def _sentences(work: Callable[..., Any], *, forgets: bool) -> Callable[..., Any]:
    """What the library refuses, the page refuses in the same words; and no text stays in memory afterwards."""

    def with_sentences(progress: Progress, *arguments: Any) -> Any:
        try:
            return work(progress, *arguments)
        except (ValueError, CheckpointError) as error:
            raise Refused(str(error)) from None
        finally:
            if forgets:
                import models

                models.forget()

    return with_sentences


#: By the name under which the page asks for it.
WORK: dict[str, Callable[..., Any]] = {
    "well": _well,
    "ready": _sentences(_ready, forgets=True),
    "columns": _sentences(_columns, forgets=False),
    "preview": _sentences(_preview, forgets=False),
    "file": _sentences(_file, forgets=True),
    "compare": _sentences(_compare, forgets=True),
    "dialogue": _sentences(_dialogue, forgets=True),
    "call_score": _sentences(_call_score, forgets=True),
    "call_compare": _sentences(_call_compare, forgets=True),
    "call_dialogue": _sentences(_call_dialogue, forgets=True),
}
