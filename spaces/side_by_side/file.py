"""The third tab: a file of replies in; systems side by side, the weakest replies and a download out."""

from __future__ import annotations

import atexit
import json
import shlex
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import Any

import gradio as gr
import numpy as np
from gradio.events import api as endpoint
from limits import BYTES, KEPT, ROWS, SENT, UNPACKED, Problem, checked_row, in_page_words
from parts import FOCUS, for_programs, grade, html, judge, note, one_at_a_time, ready_to_copy, share

from dialeval.core.exchange import Exchange
from dialeval.core.scores import Scores, aspect_column
from dialeval.io.harmless import csv_line
from dialeval.readers import Source, guess_columns
from dialeval.readers.pairing import pair, pair_by_context
from dialeval.systems.gate import columns_of, gate_values
from dialeval.systems.ranking import paired, rank_values
from dialeval.systems.ranking_outcome import Ranking

#: Fields that can be chosen, and what a visitor calls them.
FIELDS = {
    "response": "Reply",
    "context": "Context or history",
    "message": "Last message",
    "system": "System",
    "facts": "Facts",
}
NONE = "(none)"
_CHUNK, _MARGIN, _WORST, _BINS = 128, 0.05, 10, 10
_HIDDEN = (gr.update(value=None, visible=False), *[gr.update(value="", visible=False)] * 2)


def names_of(paths: Sequence[str]) -> dict[str, str]:
    """Uploads by path, as their owner calls them."""
    return {path: Path(path).name for path in paths}


def preview(paths: Sequence[str]) -> tuple[list[Mapping[str, Any]], dict[str, str]]:
    """The first three rows, and which of their columns hold what."""
    if not paths:
        raise Problem("upload", "Choose a file first.")
    if sum(Path(path).stat().st_size for path in paths) > BYTES:
        raise Problem("upload", f"That is more than {BYTES // 2**20} MB; take a sample of the rows.")
    try:
        rows = Source(paths[0], bounds=UNPACKED).preview()
    except (ValueError, OSError) as error:
        raise Problem("upload", in_page_words(error, names_of(paths))) from None
    if not rows:
        raise Problem("upload", f"{Path(paths[0]).name} holds no rows.")
    columns = list(rows[0])
    chosen = {field: field for field in FIELDS if field in columns}
    return rows, chosen if {"response", "context"} <= chosen.keys() else guess_columns(columns, rows)


def read(paths: Sequence[str], columns: Mapping[str, str]) -> dict[str, list[Exchange]]:
    """The rows by system: of one file by its column, else a file for each."""
    if "response" not in columns or not {"context", "message"} & columns.keys():
        raise Problem("column-response", "Choose which column holds the reply and which the context.")
    by_system: dict[str, list[Exchange]] = {}
    count = 0
    systems = {path: name.rsplit(".", 1)[0] for path, name in names_of(paths).items()}
    if len(set(systems.values())) < len(paths):
        raise Problem("upload", "Two files have the same name, which is that of their system. Rename one of them.")
    for path, name in systems.items():
        try:
            for row in _checked(Source(path, columns=columns, bounds=UNPACKED)):
                by_system.setdefault(name if len(paths) > 1 else row.system or "", []).append(row)
                if (count := count + 1) > ROWS:
                    raise Problem("upload", f"There are more than {ROWS:,} rows; take a sample of them.")
        except (ValueError, OSError) as error:
            raise Problem("upload", in_page_words(error, names_of(paths))) from None
    return by_system


def _checked(source: Source) -> Iterator[Exchange]:
    """The rows of a source, none larger than the page reads."""
    return (checked_row(row, raw.number) for raw, row in source.exchanges(empty="score"))


def score(rows: Sequence[Exchange]) -> Iterator[Scores]:
    """Scores in parts, so that a visitor sees how far they are and can stop."""
    for start in range(0, len(rows), _CHUNK):
        chunk = rows[start : start + _CHUNK]
        yield one_at_a_time("files", partial(judge("files").score_exchanges, chunk))


def joined(parts: Sequence[Scores], rows: Sequence[Exchange]) -> Scores:
    """The parts as one."""
    first = parts[0]
    return Scores(
        first.metric,
        np.concatenate([part.values for part in parts]),
        float(np.nanmean(np.concatenate([part.values for part in parts]))),
        first.signature,
        first.higher_is_better,
        ids=tuple(row.id for row in rows),
        aspects={name: np.concatenate([part.aspects[name] for part in parts]) for name in first.aspects},
        reasons=tuple(reason for part in parts for reason in part.reasons),
        interval=np.concatenate([part.interval for part in parts if part.interval is not None]),
        exchanges=tuple(rows),
    )


def ranking(rows: Mapping[str, list[Exchange]], values: Mapping[str, Any], files: int) -> Ranking:
    """Which system is best, as the clustered test supports it; the same test as `dialeval rank`."""
    pairs = paired(rows, by_context=files < 2)
    standings, tests = rank_values(judge("files"), rows, values, pairs)
    return Ranking(tuple(standings), tuple(tests), 0.95, {})


def verdict(rows: Mapping[str, list[Exchange]], columns: Mapping[str, Any], baseline: str, files: int) -> list[str]:
    """Of every other system, whether it is worse than the baseline, and what got worse beside its mean."""
    together = pair if files > 1 else pair_by_context
    sentences = []
    for name in rows:
        if name != baseline:
            pairs = together(rows[name], rows[baseline], (name, baseline))
            both = ({column: of_system[system] for column, of_system in columns.items()} for system in (name, baseline))
            outcome = gate_values(judge("files"), pairs, *both, n_rows=pairs.n_rows, margin=_MARGIN)
            sentences.append(f"{name} against {baseline}: {outcome.sentence}")
    return sentences


def report(rows: Mapping[str, list[Exchange]], scores: Scores, baseline: str, files: int) -> str:
    """All that the page says of a file."""
    ends = np.cumsum([len(items) for items in rows.values()])[:-1]
    columns = {name: dict(zip(rows, np.split(items, ends), strict=True)) for name, items in columns_of(scores).items()}
    values = columns[scores.metric]
    sentence, order, spread, gates = f"{len(scores):,} replies, {scores.aggregate:.2f} on average.", list(rows), {}, []
    if len(rows) > 1:
        try:
            ranked = ranking(rows, values, files)
            sentence = ranked.sentence("judge").partition(": ")[2]
            order = [standing.system for standing in ranked.standings]
            spread = {standing.system: f"{standing.low:.2f} to {standing.high:.2f}" for standing in ranked.standings}
            gates = verdict(rows, columns, baseline, files) if baseline in rows else []
        except ValueError as error:
            sentence = f"These systems cannot be compared. {in_page_words(error, {})}"
    systems = [
        {
            "name": name or "All replies", "rows": f"{len(values[name]):,}", "mean": f"{np.nanmean(values[name]):.2f}",
            "width": share(float(np.nanmean(values[name]))), "interval": spread.get(name, ""),
            "grade": grade(float(np.nanmean(values[name]))), "bins": _bins(values[name]),
            "aspects": {
                aspect.replace("_", " "): f"{np.nanmean(column[name]):.2f}"
                for aspect in scores.aspects
                if np.isfinite((column := columns[aspect_column(scores.metric, aspect)])[name]).any()
            },
        }
        for name in order
    ]  # fmt: skip
    named = [name for name, exchanges in rows.items() for _ in exchanges]
    worst = [
        {
            "value": f"{scores.values[row]:.2f}", "reason": scores.explain(row), "system": named[row],
            "context": scores.exchanges[row].context[-1] if scores.exchanges[row].context else "",
            "response": scores.exchanges[row].response,
        }
        for row in scores.weakest(_WORST)
    ]  # fmt: skip
    return html(
        "file", sentence=sentence, gates=gates, systems=systems, worst=worst, warnings=scores.warnings, margin=_MARGIN
    )


def _bins(values: Any) -> list[tuple[str, int]]:
    counts = np.histogram(values[np.isfinite(values)], bins=_BINS, range=(0, 1))[0]
    most = max(1, counts.max())
    return [(f"{number / _BINS:.1f}: {count}", round(100 * count / most)) for number, count in enumerate(counts)]


@cache
def own_folder() -> Path:
    """A folder of this process that nobody else can have put there, or read."""
    place = Path(tempfile.mkdtemp(prefix="dialeval-page-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    return place


def downloads(scores: Scores) -> list[str]:
    """All columns as CSV and Parquet; what lies there from an hour ago goes."""
    place = own_folder()
    for old in place.iterdir():
        if abs(time.time() - old.stat().st_mtime) > KEPT:  # before the clock was set back, too
            shutil.rmtree(old, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(dir=place))
    frame = scores.to_pandas()
    frame.to_parquet(folder / "scores.parquet", index=False)
    known = frame.astype(object).where(frame.notna(), None)
    lines = map(csv_line, [frame.columns, *known.itertuples(index=False)])
    (folder / "scores.csv").write_text("".join(lines), encoding="utf-8", newline="")
    return [str(folder / "scores.csv"), str(folder / "scores.parquet")]


def code(names: Sequence[str], columns: Mapping[str, str], systems: int) -> tuple[str, str]:
    """The command and the Python lines that score the same rows and, of several systems, rank them."""
    renamed = {field: column for field, column in columns.items() if field != column}
    mapped = ["--columns", ",".join(f"{field}={column}" for field, column in renamed.items())] if renamed else []
    commands = [
        ["dialeval", "score", "-m", "judge", "-i", name, "-o", f"{name.rsplit('.', 1)[0]}-scores.csv",
         "--explain", "short", *mapped]
        for name in names
    ]  # fmt: skip
    lines = ["import dialeval", "from dialeval.readers import Source", 'judge = dialeval.load("judge")']
    lines += [f"for name in {json.dumps(list(names), ensure_ascii=False)}:"]
    lines += [f"    rows = Source(name, columns={json.dumps(renamed, ensure_ascii=False)}).exchanges()"]
    lines += ['    print(judge.score_exchanges([row for _, row in rows]).to_pandas()[["judge", "judge.why"]])']
    if systems > 1:
        commands.append(["dialeval", "rank", *names, *mapped])
        given = json.dumps(names[0] if len(names) == 1 else list(names), ensure_ascii=False)
        lines.append(f"print(dialeval.rank({given}, columns={json.dumps(renamed, ensure_ascii=False)}).to_pandas())")
    return "\n".join(map(shlex.join, commands)), "\n".join(lines)


def _cell(value: Any) -> str:
    text = " / ".join(map(str, value)) if isinstance(value, list | tuple) else "" if value is None else str(value)
    return text[:200]


def _uploaded(paths: list[str] | None) -> tuple[Any, ...]:
    empty = [gr.update(choices=[NONE], value=NONE) for _ in FIELDS]
    hidden = gr.update(visible=False)
    if not paths:
        return ("", *empty, hidden, hidden)
    try:
        rows, guessed = preview(paths)
    except Problem as problem:
        return (note(problem), *empty, hidden, hidden)
    columns = [str(name) for name in rows[0]]
    shown = html("preview", columns=columns, rows=[[_cell(row.get(name, "")) for name in columns] for row in rows])
    boxes = [gr.update(choices=[NONE, *columns], value=guessed.get(field, NONE)) for field in FIELDS]
    return (shown, *boxes, gr.update(visible=True), gr.update(visible=True))


def _answer(paths: list[str] | None, baseline: str, *chosen: str) -> Iterator[tuple[Any, ...]]:
    columns = {field: name for field, name in zip(FIELDS, chosen, strict=True) if name and name != NONE}
    paths = paths or []
    try:
        preview(paths)
        by_system = read(paths, columns)
    except Problem as problem:
        yield note(problem), "", *_HIDDEN
        return
    rows, begun = [row for exchanges in by_system.values() for row in exchanges], time.monotonic()
    parts: list[Scores] = []
    for part in score(rows):
        parts.append(part)
        done = sum(map(len, parts))
        left = round((time.monotonic() - begun) / done * (len(rows) - done))
        shown = html("progress", done=f"{done:,}", total=f"{len(rows):,}", left=left, width=100 * done // len(rows))
        yield shown, "", *_HIDDEN
    scores = joined(parts, rows)
    yield (
        "",
        report(by_system, scores, baseline.strip(), len(paths)),
        gr.update(value=downloads(scores), visible=True),
        *(
            gr.update(value=text, visible=True)
            for text in code([Path(path).name for path in paths], columns, len(by_system))
        ),
    )  # fmt: skip


@for_programs
def api(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Judge rows with context and response, at most a hundred; values, intervals, aspects and reasons."""
    if not 0 < len(rows) <= SENT:
        raise Problem("rows", f"Pass a list of between 1 and {SENT} rows.")
    exchanges = list(islice(_checked(Source(rows, bounds=UNPACKED)), SENT + 1))
    if len(exchanges) > SENT:  # a row may hold a conversation
        raise Problem("rows", f"These rows hold more than {SENT} replies; send fewer at once.")
    return one_at_a_time("texts", lambda: judge("texts").score_exchanges(exchanges)).to_dict()


def build() -> None:
    """Lay the tab out."""
    with gr.Row(equal_height=False):
        with gr.Column(min_width=300):
            upload = gr.File(
                label="CSV, JSON lines, Parquet, Excel or text; a file for each system, or all in one",
                file_count="multiple", elem_id="upload", height=190,
            )  # fmt: skip
            head = gr.HTML("", elem_id="preview")
            with gr.Row(visible=False) as mapping:
                boxes = [
                    gr.Dropdown([NONE], value=NONE, label=label, elem_id=f"column-{field}", min_width=130)
                    for field, label in FIELDS.items()
                ]
            baseline = gr.Textbox(
                label="Baseline (optional)", info="A system's name: are the others worse than it?",
                elem_id="baseline", visible=False,
            )  # fmt: skip
            with gr.Row():
                go = gr.Button("Judge the file", variant="primary", elem_id="judge-file")
                stop = gr.Button("Stop", elem_id="stop")
        with gr.Column(min_width=300, scale=2):
            status = gr.HTML("", elem_id="file-status")
            answer = gr.HTML(html("file_empty"), elem_id="file-answer")
            files = gr.File(
                label="All rows", interactive=False, file_count="multiple", elem_id="downloads", visible=False
            )
            shell, python = ready_to_copy(visible=False)
    quick: dict[str, Any] = {"api_visibility": "private", "queue": False, "show_progress": "hidden"}
    upload.change(_uploaded, upload, [head, *boxes, mapping, baseline], **quick)
    running = go.click(
        _answer, [upload, baseline, *boxes], [status, answer, files, shell, python],
        concurrency_id="files", concurrency_limit=1, api_visibility="private",
    )  # fmt: skip
    running.then(None, js=FOCUS, api_visibility="private", queue=False)
    stop.click(lambda: html("stopped"), None, status, cancels=[running], api_visibility="private", queue=False)
    endpoint(api, api_name="file", concurrency_id="texts", concurrency_limit=1)
