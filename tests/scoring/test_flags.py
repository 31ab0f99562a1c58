"""Rows are marked by conditions on their values."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from dialeval.core.specs import Condition
from shell import invoke, read_rows, write_rows

COLUMNS = ["judge", "judge.relevant", "deb", "judge.fluent", "other.fluent"]


@pytest.mark.parametrize(
    ("text", "column", "below", "bound"),
    [
        ("relevant<0.2", "judge.relevant", True, 0.2),
        (" judge > 1e-3 ", "judge", False, 0.001),
        ("other.fluent<-1", "other.fluent", True, -1),
    ],
)
def test_conditions_are_read(text: str, column: str, below: bool, bound: float) -> None:
    flag = Condition.read(text, COLUMNS)
    assert (flag.column, flag.below, flag.bound) == (column, below, bound)


@pytest.mark.parametrize(
    "text", ["", "relevant", "relevant<", "relevant<=0.2", "relevant<0.2.3", "kind<0.2", "fluent<1"]
)
def test_what_is_no_condition_is_refused_by_its_text(text: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        Condition.read(text, COLUMNS)
    assert repr(text) in str(caught.value)


def test_the_command_writes_and_counts_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    replies = ["I like it", "no no no", "what is it that you like"]
    rows = [{"context": ["What do you like?"], "response": reply} for reply in replies]
    write_rows("rows.jsonl", rows)
    given = ["score", "-m", "python:number_metrics:letters", "-i", "rows.jsonl", "--flag", "letters<9"]
    for output in ("scores.jsonl", "scores.csv", "scores.parquet"):
        ended = invoke(*given, "-o", output)
        assert "1 of them flagged" in ended.stderr
    found = [row["flags"] for row in read_rows("scores.jsonl")]
    assert found == pd.read_parquet("scores.parquet")["flags"].tolist()
    assert [bool(one) for one in found] == [False, True, False]
    invoke(*given[:-1], "kind<2", "-o", "more.jsonl", code=2)
    assert not Path("more.jsonl").exists()


@pytest.mark.parametrize(("known", "said"), [(3, "3 rows scored"), (2, "3 rows read, 2 of them scored"),
                                             (0, "3 rows read, none of them scored")])  # fmt: skip
def test_rows_without_a_value_are_not_called_scored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, known: int, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    rows = [{"context": ["Was ist das?"], "response": f"Das ist nicht gut für mich {at}."} for at in range(3)]
    write_rows("rows.jsonl", rows)
    Path(f"first_{known}.py").write_text(f"def some_{known}(rows):\n    return [1] * {known} + [None] * {3 - known}\n")
    given = ["score", "-m", f"python:first_{known}:some_{known}", "-i", "rows.jsonl", "-o", "out.jsonl"]
    ended = invoke(*given)
    assert said in ended.stderr
    # A function, or a language model, need not have learned from English.
    assert "not English" not in ended.stderr
