"""The tab about trust: how far each metric agrees with people, from the committed results."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

import gradio as gr
from markup import note, number, problem, table, text
from trust_opening import opening

from dialeval.io import read_json_lines

_HERE = Path(__file__).parent
_STATISTICS = {"spearman": "Spearman", "pearson": "Pearson", "kendall": "Kendall"}
_ALL = "all"

_INTRO = """
A value is worth what people would say about the same reply. Here every metric is held against human ratings that are
part of the field's benchmarks. Read a row with its **95% interval**: intervals that overlap widely tell little apart.

- **Bold** marks the best metric of a question, and those that a paired permutation test cannot tell from it.
- **†** marks a **contaminated** number: the metric was trained on that benchmark, so it saw the answers. The number
  says little about new data and takes no part in the ranking.
- **One person** is what a single rater reaches against the others. A metric is compared with the mean of all raters,
  so it can come out above one person.
- **Turn** level compares single replies. **System** level compares the means of few systems, so its intervals are wide.
"""


def results_folder() -> Path | None:
    """Beside this file, where publishing puts them, or in the source checkout around it."""
    for folder in (_HERE / "results", _HERE.parents[1] / "results"):
        if (folder / "agreement.jsonl").is_file():
            return folder
    return None


@cache
def results() -> tuple[dict[str, Any], ...]:
    """The rows of the harness's table."""
    folder = results_folder()
    if folder is None:
        return ()
    return tuple(read_json_lines(folder / "agreement.jsonl"))


def build() -> None:
    """Put the tab's parts into the page."""
    gr.HTML(opening(results_folder()), elem_id="trust-opening")
    with gr.Accordion("Every benchmark, with intervals and figures", open=False, elem_id="trust-details"):
        _details()


def _details() -> None:
    gr.Markdown(_INTRO)
    with gr.Row():
        benchmark = gr.Dropdown([_ALL, *_present("benchmark")], value=_ALL, label="Benchmark", elem_id="benchmark")
        level = gr.Dropdown([_ALL, *_present("level")], value=_ALL, label="Level", elem_id="level")
        known = [(title, name) for name, title in _STATISTICS.items() if name in _present("statistic")]
        statistic = gr.Dropdown(known, value=known[0][1] if known else None, label="Correlation", elem_id="statistic")
    board = gr.HTML(_board(_ALL, _ALL, known[0][1] if known else ""), elem_id="board")
    plots = gr.HTML(_plots(_ALL), elem_id="plots")
    for one in (benchmark, level, statistic):
        one.change(
            lambda chosen, on, by: (_board(chosen, on, by), _plots(chosen)),
            [benchmark, level, statistic],
            [board, plots],
            api_visibility="private",
            queue=False,
        )


def _present(field: str) -> list[str]:
    return list(dict.fromkeys(row[field] for row in results()))


def _board(benchmark: str, level: str, statistic: str) -> str:
    if not results():
        return problem("there are no results beside this page; publish it from a checkout that has a results folder")
    wanted = {"benchmark": benchmark, "level": level, "statistic": statistic}
    rows = [row for row in results() if all(row[key] == one for key, one in wanted.items() if one != _ALL)]
    if not rows:
        return note("Nothing was measured with these choices; choose another benchmark or level.")
    questions: dict[tuple[str, str, str, str], list[dict[str, Any]]] = {}
    for row in rows:
        questions.setdefault((row["benchmark"], row["level"], row["aspect"], row["protocol"]), []).append(row)
    return "".join(_question(*key, own) for key, own in questions.items())


def _question(benchmark: str, level: str, aspect: str, protocol: str, rows: list[dict[str, Any]]) -> str:
    ranked = sorted(rows, key=lambda row: -(row["value"] if row["value"] is not None else -2))
    ceiling = rows[0]["ceiling"]
    caption = f"{benchmark}, {level} level, {aspect.lower()}" + (f", {protocol}" if protocol != "standard" else "")
    one = "" if ceiling is None or level != "turn" else note(f"One person against the others: {number(ceiling)}.")
    cells = [
        [_name(row), _value(row), f"{number(row['low'])} to {number(row['high'])}", f"{row['n']:,}"] for row in ranked
    ]
    title = _STATISTICS.get(rows[0]["statistic"], rows[0]["statistic"])
    return table(caption, ["metric", title, "95% interval", "systems" if level == "system" else "rows"], cells) + one


def _name(row: dict[str, Any]) -> str:
    mark = ' <abbr title="trained on this benchmark">†</abbr>' if row["contaminated"] else ""
    return f"{text(row['metric'], 40)}{mark}"


def _value(row: dict[str, Any]) -> str:
    shown = number(row["value"])
    return f'<span class="best">{shown}</span>' if row["in_best_group"] else shown


def _plots(benchmark: str) -> str:
    """The committed figures of a benchmark; of all of them, the overviews only."""
    folder = results_folder()
    if folder is None or not (folder / "plots").is_dir():
        return ""
    kinds = ("forest",) if benchmark == _ALL else ("forest", "scatter", "violin", "heatmap")
    pattern = "*" if benchmark == _ALL else f"{benchmark}*"
    found = [path for kind in kinds for path in sorted((folder / "plots").glob(f"{kind}_{pattern}.png"))]
    images = (
        f'<figure><a href="{address}" target="_blank" title="full size"><img loading="lazy" src="{address}" '
        f'alt="{_caption(path.stem)}"></a><figcaption>{_caption(path.stem)}</figcaption></figure>'
        for path, address in ((path, f"gradio_api/file={quote(str(path.resolve()))}") for path in found)
    )
    return f'<h3>Figures</h3><div class="figures">{"".join(images)}</div>'


def _caption(stem: str) -> str:
    kind, _, rest = stem.partition("_")
    kinds = {
        "forest": "Agreement with intervals",
        "scatter": "Scores against ratings",
        "violin": "Scores by system",
        "heatmap": "Agreement among metrics",
    }
    return f"{kinds[kind]}: {rest.replace('_', ' ')}"
