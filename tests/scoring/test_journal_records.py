"""A journal that somebody has changed is told in one sentence; nothing that no run could have written is kept."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import dialeval.scoring.run
import overlap_metric
from dialeval.cli import build_app
from dialeval.exchange import Exchange
from dialeval.metric import Judged
from dialeval.scoring.task import chunked

pytestmark = pytest.mark.slow

JOURNAL, SCORES = Path("scores.jsonl.partial"), Path("scores.jsonl")


def score() -> tuple[int, str]:
    found = CliRunner().invoke(build_app(), ["score", "-m", "faceted", "-i", "rows.jsonl", "-o", str(SCORES)])
    assert found.exception is None or isinstance(found.exception, SystemExit), found.exception
    return found.exit_code, found.stderr


@pytest.fixture
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The one finished chunk of an interrupted run."""
    monkeypatch.chdir(tmp_path)
    overlap_metric.register()
    monkeypatch.setattr(dialeval.scoring.run, "chunked", functools.partial(chunked, pairs=2))
    rows = [{"context": [f"{at} a"], "response": f"{at} b", "id": f"{at}", "system": "s"} for at in range(4)]
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    judge, done = overlap_metric.Faceted.judge, 0

    def once(self: overlap_metric.Faceted, exchanges: Sequence[Exchange], **options: bool) -> Judged:
        nonlocal done
        done += 1
        if done > 1:
            raise KeyboardInterrupt
        return judge(self, exchanges, **options)

    with monkeypatch.context() as changed:
        changed.setattr(overlap_metric.Faceted, "judge", once)
        assert score()[0] == 130
    header, line = JOURNAL.read_text().splitlines()
    assert '"run"' in header
    found: dict[str, Any] = json.loads(line)
    return found


def rewritten(line: str) -> None:
    JOURNAL.write_text(JOURNAL.read_text().splitlines()[0] + "\n" + line + "\n")


def test_what_was_finished_is_taken_as_it_is(record: dict[str, Any]) -> None:
    record["values"]["faceted"] = [0.25, None]
    rewritten(json.dumps(record))
    assert score()[0] == 0
    assert [json.loads(line)["faceted"] for line in SCORES.read_text().splitlines()][:2] == [0.25, None]


def value(one: Any) -> Callable[[dict[str, Any]], Any]:
    return lambda record: record["values"].update(faceted=[one, 0.5])


CHANGES: dict[str, Callable[[dict[str, Any]], Any]] = {
    **{f"a value {one!r:.20}": value(one) for one in ("x", [1], {}, True, 10**400, float("nan"), float("inf"))},
    "no value of an aspect": lambda record: record["values"].pop("faceted.words"),
    "another column": lambda record: record["values"].update(other=[1.0, 1.0]),
    "a row less": lambda record: (record["row"].pop(), [column.pop() for column in record["values"].values()]),
    "other rows": lambda record: record.update(row=[7, 8]),
    "rows that are texts": lambda record: record.update(row=["a", "b"]),
    "other ids": lambda record: record.update(id=[{"a": 1}, "1"]),
    "no ids": lambda record: record.pop("id"),
    "systems that are lists": lambda record: record.update(system=[["s"], ["s"]]),
    "no counts": lambda record: record.pop("n_truncated"),
    "counts of another metric": lambda record: record.update(n_truncated={"other": 0}),
    "counts that are texts": lambda record: record["n_truncated"].update(faceted="x"),
    "empty rows below nothing": lambda record: record.update(n_empty=-1),
    "no signature": lambda record: record.update(signature={}),
    "a signature that is a list": lambda record: record["signature"].update(faceted=[]),
    "problems of nobody": lambda record: record.update(problems={"other": []}),
    "problems that are texts": lambda record: record.update(problems={"faceted": ["x"]}),
    "usage that is a text": lambda record: record.update(usage={"faceted": {"tokens": "x"}}),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_no_run_could_have_written(change: str, record: dict[str, Any]) -> None:
    CHANGES[change](record)
    rewritten(json.dumps(record))
    code, message = score()
    assert (code, "is damaged where it holds rows 0 to 1" in message) == (2, True), message
    assert not SCORES.exists()


@pytest.mark.parametrize("line", ['{"x": ' + "[" * 100_000, '{"x": ' + "9" * 5_000 + "}", '{"table": 1}\n' * 5_000])
def test_what_cannot_be_read_is_dropped_like_a_torn_line(line: str, record: dict[str, Any]) -> None:
    rewritten(line)
    assert score()[0] == 0
    assert SCORES.read_text().count("\n") == 4
