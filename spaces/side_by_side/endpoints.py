"""The endpoints that programs call, and what the page says about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import gradio as gr
from compare import compared
from dialogue import judged
from limits import LIMITS_TOLD, MAX_CALL_ROWS, MAX_CALL_TURNS, Refused, taken, taken_all
from models import human_percentile, info_of, judge, ready

from dialeval.exchange import BadRow, check_exchange
from dialeval.metric import Level
from dialeval.weights.find import CheckpointError

_FIELDS = ("context", "response", "reference", "references", "facts", "system", "id", "following", "speakers")

DOCUMENTED = f"""
All endpoints take and give JSON. From Python, with `pip install gradio_client`:

```python
from gradio_client import Client

page = Client("http://127.0.0.1:7860")  # or the name of the Space
rows = [{{"context": ["Hi!", "How are you?"], "response": "Fine, thanks!"}}]
page.predict(rows, ["density"], api_name="/score")
page.predict(["How are you?"], ["Fine, thanks!", "It is blue."], "", ["density"], api_name="/compare")
page.predict(["Hi!", "Hello, how are you?", "Great, thanks!"], [], ["judge"], api_name="/dialogue")
```

In a shell, a call gives an event, and the event its result:

```bash
EVENT=$(curl -s http://127.0.0.1:7860/gradio_api/call/score -H 'Content-Type: application/json' \\
  -d '{{"data": [[{{"context": ["How are you?"], "response": "Fine, thanks!"}}], ["density"]]}}' | cut -d'"' -f4)
curl -sN http://127.0.0.1:7860/gradio_api/call/score/$EVENT
```

- **`/score`** (rows, metrics): each row has `context` and `response`, and if you have them `reference` or `references`,
  `facts`, `system`, `id`, `following` (the other side's next turn) and `speakers` (of the context's turns). Gives for
  each metric `values`, its `aspects` if it judges several, `aggregate`, `human_percentile`, `signature`, and how many
  rows were cut; from the judge `aspects`, `intervals` and `reasons`, too. FBD and PRD give one value per system.
- **`/compare`** (context, replies, reference, metrics): several replies to one conversation; gives for each metric
  `values`, `human_percentile`, which are `best`, and the `signature`.
- **`/dialogue`** (turns, speakers, metrics): a whole conversation; `speakers` has a name for each turn, or is empty
  where the sides alternate. The judge judges the one called bot, assistant or system, else who speaks second. Gives for
  each metric `value` and `signature`; from the judge `aspects`, `intervals` and `reasons`, too.

{LIMITS_TOLD}
"""


def score(rows: list[dict[str, Any]], metrics: list[str]) -> dict[str, Any]:
    """Score rows of context and response with one or more metrics."""
    try:
        return _scored(rows, metrics)
    except (ValueError, CheckpointError) as error:
        raise gr.Error(str(error), print_exception=False) from None


def compare(context: list[str], replies: list[str], reference: str, metrics: list[str]) -> dict[str, Any]:
    """Judge several replies to one conversation side by side."""
    try:
        return compared(context, replies, reference, metrics).to_dict()
    except (ValueError, CheckpointError) as error:
        raise gr.Error(str(error), print_exception=False) from None


def dialogue(turns: list[str], speakers: list[str], metrics: list[str]) -> dict[str, Any]:
    """Judge a whole conversation."""
    try:
        return judged(turns, speakers, metrics).to_dict()
    except (ValueError, CheckpointError) as error:
        raise gr.Error(str(error), print_exception=False) from None


def build(texts_limit: dict[str, Any]) -> None:
    """Add the endpoints to the page."""
    gr.api(score, api_name="score", **texts_limit)  # type: ignore[attr-defined]
    gr.api(compare, api_name="compare", **texts_limit)  # type: ignore[attr-defined]
    gr.api(dialogue, api_name="dialogue", **texts_limit)  # type: ignore[attr-defined]


def _scored(rows: Any, metrics: Any) -> dict[str, Any]:
    if isinstance(rows, str) or not isinstance(rows, Sequence) or not rows:
        raise Refused("rows is not a list of objects; pass at least one row with context and response")
    if len(rows) > MAX_CALL_ROWS:
        raise Refused(f"there are {len(rows):,} rows; one call takes {MAX_CALL_ROWS}, so make several")
    offered = ready()
    if isinstance(metrics, str) or not isinstance(metrics, Sequence) or not metrics:
        raise Refused(f"metrics is not a list of names; choose from {', '.join(offered)}")
    if unknown := next((name for name in metrics if name not in offered), None):
        raise Refused(f"there is no metric {str(unknown)[:40]!r} here; there are {', '.join(offered)}")
    exchanges = [check_exchange(number, **_row(number, row)) for number, row in enumerate(rows)]
    found = {}
    for name in dict.fromkeys(metrics):
        scores = judge(name, exchanges)
        shares = human_percentile(name, scores.values) if info_of(name).level is Level.TURN else None
        beside = {} if shares is None else {"human_percentile": [float(share) for share in shares]}
        found[name] = {**scores.to_dict(), **beside}
    return found


def _row(number: int, row: Any) -> dict[str, Any]:
    """One row within the limits; whether its values are of the right kind the library says."""
    if not isinstance(row, Mapping):
        raise BadRow(number, f"the row is a {type(row).__name__}; pass an object with context and response")
    if unknown := next((key for key in row if key not in _FIELDS), None):
        raise BadRow(number, f"there is no field {str(unknown)[:40]!r}; fields are {', '.join(_FIELDS)}")
    if "reference" in row and "references" in row:
        raise BadRow(number, "both reference and references are given; keep one of them")
    values = {key: _within(number, key, value) for key, value in row.items()}
    references = values.pop("reference", None)
    return {"response": None, "context": None, "references": references, **values}


def _within(number: int, key: str, value: Any) -> Any:
    try:
        if isinstance(value, str):
            return taken(key, value)[0]
        if isinstance(value, list) and all(isinstance(one, str) for one in value):
            return taken_all(f"{key} text", f"texts in {key}", value, MAX_CALL_TURNS)[0]
    except Refused as error:
        raise BadRow(number, str(error)) from None
    return value
