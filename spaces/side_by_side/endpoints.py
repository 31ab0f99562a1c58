"""The endpoints that programs call, and what the page says about them."""

from __future__ import annotations

from typing import Any

import gradio as gr
from limits import Refused
from pools import TEXTS

DOCUMENTED = """
All endpoints take and give JSON. From Python, with `pip install gradio_client`:

```python
from gradio_client import Client

page = Client("http://127.0.0.1:7860")  # or the name of the Space
rows = [{"context": ["Hi!", "How are you?"], "response": "Fine, thanks!"}]
page.predict(rows, ["density"], api_name="/score")
page.predict(["How are you?"], ["Fine, thanks!", "It is blue."], "", ["density"], api_name="/compare")
page.predict(["Hi!", "Hello, how are you?", "Great, thanks!"], [], ["judge"], api_name="/dialogue")
```

In a shell, a call gives an event, and the event its result:

```bash
EVENT=$(curl -s http://127.0.0.1:7860/gradio_api/call/score -H 'Content-Type: application/json' \\
  -d '{"data": [[{"context": ["How are you?"], "response": "Fine, thanks!"}], ["density"]]}' | cut -d'"' -f4)
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
"""


def score(rows: list[dict[str, Any]], metrics: list[str]) -> dict[str, Any]:
    """Score rows of context and response with one or more metrics."""
    return _asked("call_score", rows, metrics)


def compare(context: list[str], replies: list[str], reference: str, metrics: list[str]) -> dict[str, Any]:
    """Judge several replies to one conversation side by side."""
    return _asked("call_compare", context, replies, reference, metrics)


def dialogue(turns: list[str], speakers: list[str], metrics: list[str]) -> dict[str, Any]:
    """Judge a whole conversation."""
    return _asked("call_dialogue", turns, speakers, metrics)


def _asked(name: str, *arguments: Any) -> dict[str, Any]:
    try:
        answer: dict[str, Any] = TEXTS.ask(name, *arguments)
    except Refused as error:
        raise gr.Error(str(error), print_exception=False) from None
    return answer


def build(texts_limit: dict[str, Any]) -> None:
    """Add the endpoints to the page."""
    gr.api(score, api_name="score", **texts_limit)  # type: ignore[attr-defined]
    gr.api(compare, api_name="compare", **texts_limit)  # type: ignore[attr-defined]
    gr.api(dialogue, api_name="dialogue", **texts_limit)  # type: ignore[attr-defined]
