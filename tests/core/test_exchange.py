"""The door: what passes is well formed, and a column or a row at a time makes no difference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anything import ANYTHING
from dialeval.core.exchange import BadRow, Dialogue, Exchange, check_dialogue, check_exchange, exchanges_from_columns
from dialeval.judge.verdicts import compare_replies
from overlap_metric import Overlap
from refusals import refused

FIELDS = ("response", "context", "references", "facts", "system", "id", "following", "speakers")


@settings(deadline=None)
@given(st.fixed_dictionaries(dict.fromkeys(FIELDS, ANYTHING)))
def test_whatever_is_passed_is_an_exchange_or_a_bad_row(values: dict[str, Any]) -> None:
    try:
        exchange = check_exchange(5, **values)
    except BadRow as caught:
        error = str(caught)
    else:
        error = ""
    if error:
        assert error.startswith("row 5: ")
        assert "\n" not in error
        return
    texts = [exchange.response, *exchange.context, *exchange.references, *exchange.facts, *exchange.speakers]
    texts += [] if exchange.following is None else [exchange.following]
    assert len(exchange.speakers) in (0, len(exchange.context))
    assert all(type(text) is str for text in texts)
    assert all(label is None or type(label) is str for label in (exchange.system, exchange.id))
    "".join(texts).encode()
    assert not exchange.is_empty


def test_columns_of_many_types_give_the_same() -> None:
    expected = [Exchange(("a", "b"), "c", ("d",)), Exchange(("e",), "f", ("g", "h"))]
    responses, contexts, references = ["c", "f"], [["a", "b"], ["e"]], ["d", ["g", "h"]]
    assert exchanges_from_columns(responses, contexts, references) == expected
    assert exchanges_from_columns(tuple(responses), (tuple(turns) for turns in contexts), iter(references)) == expected
    assert exchanges_from_columns(pd.Series(responses), pd.Series(contexts), pd.Series(references)) == expected
    assert exchanges_from_columns(np.array(responses), [np.array(turns) for turns in contexts], references) == expected


def test_missing_values_of_a_data_frame() -> None:
    frame = pd.DataFrame({"reference": ["a", None], "system": ["s", float("nan")]})
    exchanges = exchanges_from_columns(["x", "y"], ["c", "d"], frame["reference"], systems=frame["system"])
    assert [exchange.references for exchange in exchanges] == [("a",), ()]
    assert [exchange.system for exchange in exchanges] == ["s", None]


def test_numbers_may_be_ids_but_not_floats() -> None:
    (exchange,) = exchanges_from_columns(["x"], ["c"], ids=[7])
    assert exchange.id == "7"
    refused(BadRow, "row 0", exchanges_from_columns, ["x"], ["c"], ids=[7.0])


def test_what_follows_and_who_speaks() -> None:
    columns: dict[str, Any] = {"responses": ["x"] * 4, "contexts": [["c", "d"]] * 3 + ["e"]}
    exchanges = exchanges_from_columns(
        **columns, following=["y", None, " \u200b", float("nan")], speakers=[["A", 2], None, [], "B"]
    )
    assert [exchange.following for exchange in exchanges] == ["y", None, None, None]
    assert [exchange.speakers for exchange in exchanges] == [("A", "2"), (), (), ("B",)]


@pytest.mark.parametrize(
    ("column", "value", "named"),
    [
        ("speakers", ["A"], "row 0: speakers"),
        ("speakers", ["A", None], "row 0: speakers[1]"),
        ("speakers", 3, "row 0: speakers"),
        ("following", ["y"], "row 0: following"),
    ],
)
def test_what_follows_or_who_speaks_is_wrong(column: str, value: Any, named: str) -> None:
    refused(BadRow, named, exchanges_from_columns, ["x"], [["c", "d"]], **{column: [value]})


@pytest.mark.parametrize("policy", ["skip", None, True])
def test_a_policy_that_does_not_exist(policy: Any) -> None:
    refused(ValueError, f"empty is {policy!r}", exchanges_from_columns, ["a"], [["b"]], empty=policy)


DIALOGUE = [["a", "b", "c"]]


@pytest.mark.parametrize(
    ("dialogues", "beside", "named"),
    [
        (["text"], {}, "row 0: dialogue is a str"),
        ("text", {}, "dialogues is one str"),
        ([["a", None]], {}, "row 0: dialogue[1]"),
        ([["a", 7]], {}, "row 0: dialogue[1]"),
        ([["a"]], {}, "row 0: the dialogue has 1 turn"),
        ([{"a": 1, "b": 2}], {}, "row 0: dialogue"),
        (DIALOGUE, {"facts": "a"}, "facts is one str"),
        (DIALOGUE, {"facts": [[1]]}, "row 0: facts[0]"),
        (DIALOGUE, {"facts": [["f"], ["g"]]}, "2 facts"),
        (DIALOGUE, {"speakers": ["ABA"]}, "row 0: speakers"),
        (DIALOGUE, {"ids": [["x"]]}, "row 0: id"),
    ],
)
def test_letters_are_neither_turns_nor_facts(dialogues: Any, beside: Any, named: str) -> None:
    refused(ValueError, named, Overlap().score_dialogues, dialogues, **beside)


def test_a_blank_fact_is_none() -> None:
    blank = ("", " ", "\u200b", "\n\t")
    assert Exchange(("Hi",), "Ho", facts=(*blank, "I ski.")) == Exchange(("Hi",), "Ho", facts=("I ski.",))
    assert check_exchange(0, context="Hi", response="Ho", facts=blank).facts == ()
    assert check_dialogue(0, dialogue=["a", "b"], facts=["I ski.", ""]).facts == ("I ski.",)


def test_one_text_is_one_fact() -> None:
    seen: list[Exchange] = []

    class Seeing(Overlap):
        def judge(self, exchanges: Any, *, progress: bool = False) -> Any:
            seen.extend(exchanges)
            return super().judge(exchanges)

    Seeing().score_dialogues(DIALOGUE, facts=["text"])
    compare_replies(Seeing(), "text", ["a", "b"], facts="text")
    assert {exchange.facts for exchange in seen} == {("text",)}
    assert {exchange.context for exchange in seen} == {("a",), ("a", "b"), ("text",)}
    refused(ValueError, "responses is one str", compare_replies, Overlap(), ["a"], "text")


@pytest.mark.parametrize("field", ["context", "references", "facts", "speakers"])
def test_a_row_made_by_hand_holds_texts_and_no_letters(field: str) -> None:
    refused(TypeError, field, lambda: Exchange(**{"context": ("a",), "response": "b", field: "text"}))
    if field in ("facts", "speakers"):
        refused(TypeError, field, lambda: Dialogue(**{"turns": ("a", "b"), field: "text"}))
    refused(TypeError, "turns", lambda: Dialogue("text"))  # type: ignore[arg-type]
