"""How pairs become token ids."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoTokenizer

from dialeval.core.exchange import Exchange
from dialeval.encoders.layout import PairFormat, PairTokenizer, tidy


@pytest.fixture(scope="module")
def tokenizer(tiny_encoder: Path):
    return AutoTokenizer.from_pretrained(tiny_encoder)


def words(tokenizer, layout: PairFormat, *context: str, response: str) -> list[str]:
    pair = PairTokenizer(tokenizer, layout).pairs([Exchange(context=context, response=response)])[0]
    return tokenizer.convert_ids_to_tokens(pair.ids.tolist())


def test_one_spelling_for_corpus_and_keyboard() -> None:
    assert tidy("I ’ m fine , I did n't  know") == tidy("I ' m fine , I didn't know") == "I ' m fine , I didn't know"
    assert tidy("nation n to") == "nation n to"


def test_separator_token_or_text(tokenizer) -> None:
    with_token = words(tokenizer, PairFormat(separator="[unused0]"), "hello there", "how are you", response="i am fine")
    assert with_token == "[CLS] hello there [unused0] how are you [SEP] i am fine [SEP]".split()
    with_space = words(tokenizer, PairFormat(separator=" "), "hello there", "how are you", response="i am fine")
    assert with_space == "[CLS] hello there how are you [SEP] i am fine [SEP]".split()


def test_text_cannot_smuggle_in_special_tokens(tokenizer) -> None:
    laid = words(tokenizer, PairFormat(separator="[unused0]"), "[SEP] hello [unused0]", response="[CLS] fine [MASK]")
    assert laid.count("[SEP]") == 2
    assert laid.count("[CLS]") == 1
    assert "[unused0]" not in laid
    assert "[MASK]" not in laid


def test_the_context_keeps_its_end_and_the_response_its_beginning(tokenizer) -> None:
    layout = PairFormat(max_length=12, response_budget=4)
    pair = PairTokenizer(tokenizer, layout).pairs(
        [Exchange(context=("hello there how are you i am fine",), response="what do you like to eat")]
    )[0]
    laid = tokenizer.convert_ids_to_tokens(pair.ids.tolist())
    assert laid == "[CLS] are you i am fine [SEP] what do you like [SEP]".split()
    assert pair.cut
    assert laid[pair.boundary] == "what"


@settings(max_examples=200, deadline=None)
@given(context=st.integers(0, 40), response=st.integers(1, 40), limit=st.integers(8, 30))
@pytest.mark.slow
def test_longest_first_is_what_the_tokenizer_itself_does(
    tiny_encoder: Path, context: int, response: int, limit: int
) -> None:
    tokenizer = AutoTokenizer.from_pretrained(tiny_encoder)
    first, second = " ".join(["hello"] * context), " ".join(["fine"] * response)
    expected = tokenizer(first, second, truncation=True, max_length=limit)["input_ids"]
    layout = PairFormat(max_length=limit, truncation="right_longest_first")
    pair = PairTokenizer(tokenizer, layout).pairs([Exchange(context=(first,), response=second)])[0]
    assert pair.ids.tolist() == expected
    assert pair.cut == (context + response + 3 > limit)


@settings(max_examples=100, deadline=None)
@given(turns=st.lists(st.text(max_size=60), min_size=1, max_size=5), response=st.text(max_size=60))
def test_any_text_fits_and_keeps_its_response(tiny_encoder: Path, turns: list[str], response: str) -> None:
    tokenizer = AutoTokenizer.from_pretrained(tiny_encoder)
    layout = PairFormat(max_length=16, separator="[unused0]")
    try:
        "".join([*turns, response]).encode()
    except UnicodeEncodeError:
        return  # refused at the door
    pair = PairTokenizer(tokenizer, layout).pairs([Exchange(context=tuple(turns), response=response)])[0]
    assert len(pair.ids) <= 16
    whole = tokenizer(tidy(response), add_special_tokens=False, split_special_tokens=True)["input_ids"]
    assert pair.ids[pair.boundary : -1].tolist() == whole[:12]


def test_a_ten_megabyte_response_is_cut_quickly(tokenizer) -> None:
    pair = PairTokenizer(tokenizer, PairFormat()).pairs([Exchange(context=("hello",), response="fine " * 2_000_000)])[0]
    assert pair.cut
    assert len(pair.ids) <= 128
