"""Arguments of other types than are wanted: taken for what they can mean, or refused by a sentence of ours."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dialeval
from dialeval.core.exchange import Exchange
from number_metrics import Number, rows
from refusals import refused

ODD = [
    None, True, 3, 1.5, float("nan"), 10**400, "\x1b[31m", b"bytes", [None], [[]], {1: 2}, {"a": None}, {"a"}, object(),
    len, np.array([1.0]), pd.DataFrame({"a": [1]}), pd.Series([1]), Path("no file"), iter([1]), range(3),
    Exchange(("a",), "b"),
]  # fmt: skip
VALUES = [1.0, 2.5, 3.25, 4.0]
SCORES = Number().score(rows(VALUES))
CALLS: list[tuple[Callable[..., object], dict[str, Any]]] = [
    (dialeval.rank, {"systems": {"a": rows(VALUES), "b": rows(VALUES)}, "metrics": Number(), "resamples": 100}),
    (dialeval.gate, {"new": rows(VALUES), "baseline": rows(VALUES), "metric": Number(), "margin": 0, "resamples": 100}),
    (dialeval.compare, {"first": SCORES, "second": SCORES, "resamples": 100}),
    (dialeval.read, {"table": rows(VALUES)}),
    (Number().score, {"responses": rows(VALUES)}),
]


@pytest.mark.parametrize(
    ("call", "given", "name"),
    [(call, given, name) for call, given in CALLS for name in inspect.signature(call).parameters],
)
def test_an_odd_argument_is_refused_in_a_sentence(
    call: Callable[..., object], given: dict[str, Any], name: str
) -> None:
    for odd in ODD:
        error = raised(call, **given | {name: odd})
        if error is not None:
            last = traceback.extract_tb(error.__traceback__)[-1]
            assert str(last.line).startswith("raise "), (odd, error)
            assert Path(dialeval.__file__).parent in Path(last.filename).parents, (odd, error)


def raised(call: Callable[..., object], **given: Any) -> Exception | None:
    try:
        call(**given)
    except (ValueError, TypeError, OSError) as error:
        return error
    return None


def test_a_metric_that_is_given_twice_stands_once() -> None:
    systems, metric = {"a": rows(VALUES), "b": rows(VALUES)}, Number()
    first, second = dialeval.rank(systems, [metric, metric], resamples=100).standings
    assert (first.system, second.system) == ("a", "b")
    refused(ValueError, "two metrics are named", dialeval.rank, systems, [metric, Number()], resamples=100)


def test_a_direction_that_no_column_has_is_refused() -> None:
    systems = {"a": rows(VALUES), "b": rows(VALUES)}
    refused(ValueError, "declares its own", dialeval.rank, systems, Number(), lower_is_better="number", resamples=100)


def test_a_text_is_no_yes() -> None:
    systems = {"a": rows(VALUES), "b": rows(VALUES)}
    refused(ValueError, "allow_missing", dialeval.rank, systems, Number(), allow_missing="no", resamples=100)
    refused(ValueError, "allow_missing", dialeval.compare, SCORES, SCORES, allow_missing="no", resamples=100)
    refused(ValueError, "overwrite", dialeval.tune, rows(VALUES), out="mine", overwrite="no")
