"""The page of a metric's Space, the same for all modules: rows to score in a table, and the metric's card below."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from dialeval.checkpoints.find import CheckpointError
from dialeval.hub.evaluate_module import loaded
from dialeval.registry import metric_class
from dialeval.registry.metric import MetricInfo

#: A page is for trying; files are for `dialeval score`.
MAX_CHARACTERS, MAX_ROWS = 20_000, 500

ROWS = [
    ["Did you find your keys? | Not yet.", "Maybe they are in the car.", "Have you looked in the car?"],
    ["Shall we cook tonight? | I am rather tired.", "I like pancakes with syrup.", "I can cook while you rest."],
    ["Do you have any pets?", "Two cats, and they hate each other.", "Yes, an old dog called Max."],
    ["My train is late again.", "I do not know.", "Oh no, how long do you have to wait?"],
]


def direction(info: MetricInfo) -> str:
    """In words, which way is better and how far it goes."""
    low, high = info.range
    bounds = f"{low:g} to {high:g}" if math.isfinite(low) or math.isfinite(high) else "without bounds"
    return f"{'Higher' if info.higher_is_better else 'Lower'} is better ({bounds})."


def build_page(app: str) -> Any:
    """The page as a gradio Interface; `app` is the path of the module's app.py, beside its script and card."""
    import gradio as gr

    (name,) = (path.stem for path in Path(app).parent.glob("*.py") if path.name != "app.py")
    info = metric_class(name)[0].info

    def judge(table: list[list[Any]]) -> tuple[float, list[list[Any]], str]:
        cells = [[str(cell or "").strip() for cell in [*row, "", "", ""][:3]] for row in table]
        rows = [row for row in cells if any(row)]
        if len(rows) > MAX_ROWS or sum(len(cell) for row in rows for cell in row) > MAX_CHARACTERS:
            raise gr.Error(f"more than {MAX_ROWS} rows or {MAX_CHARACTERS:,} characters; `dialeval score` reads files")
        contexts = [[turn.strip() for turn in context.split("|") if turn.strip()] for context, _, _ in rows]
        references = [[reference] if reference else [] for *_, reference in rows]
        try:
            scores = loaded(name).score([reply for _, reply, _ in rows], contexts, references)
        except (ValueError, CheckpointError) as error:
            raise gr.Error(str(error), print_exception=False) from None
        return scores.aggregate, [[value] for value in scores.values.tolist()], str(scores.signature)

    card = Path(app).with_name("README.md").read_text("utf-8").split("---\n", 2)[2]
    table = gr.Dataframe(ROWS, headers=["context, turns separated by |", "reply", "reference"], type="array", wrap=True)
    outputs = [gr.Number(label=info.title), gr.Dataframe(headers=["value"]), gr.Textbox(label="Signature")]
    texts: dict[str, Any] = {"title": info.title, "description": f"{info.summary} {direction(info)}", "article": card}
    return gr.Interface(judge, table, outputs, **texts, flagging_mode="never", analytics_enabled=False)
