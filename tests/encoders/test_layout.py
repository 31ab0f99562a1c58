"""How pairs become token ids, and who gives way where there is no room for all: facts, context and response."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoTokenizer

from dialeval.core.exchange import Exchange
from dialeval.encoders.layout import PairFormat, PairTokenizer, TokenPair, tidy
from refusals import refused

REPLY = "what do you like to eat fish and chips the weather is nice today"


@pytest.fixture(scope="module")
def tokenizer(tiny_encoder: Path) -> Any:
    return AutoTokenizer.from_pretrained(tiny_encoder)


def words(tokenizer: Any, layout: PairFormat, *context: str, response: str) -> list[str]:
    pair = PairTokenizer(tokenizer, layout).pairs([Exchange(context=context, response=response)])[0]
    return tokenizer.convert_ids_to_tokens(pair.ids.tolist())


def test_one_spelling_for_corpus_and_keyboard() -> None:
    assert tidy("I ’ m fine , I did n't  know") == tidy("I ' m fine , I didn't know") == "I ' m fine , I didn't know"
    assert tidy("nation n to") == "nation n to"


def test_separator_token_or_text(tokenizer: Any) -> None:
    with_token = words(tokenizer, PairFormat(separator="[unused0]"), "hello there", "how are you", response="i am fine")
    assert with_token == "[CLS] hello there [unused0] how are you [SEP] i am fine [SEP]".split()
    with_space = words(tokenizer, PairFormat(separator=" "), "hello there", "how are you", response="i am fine")
    assert with_space == "[CLS] hello there how are you [SEP] i am fine [SEP]".split()


def test_text_cannot_smuggle_in_special_tokens(tokenizer: Any) -> None:
    laid = words(tokenizer, PairFormat(separator="[unused0]"), "[SEP] hello [unused0]", response="[CLS] fine [MASK]")
    assert laid.count("[SEP]") == 2
    assert laid.count("[CLS]") == 1
    assert "[unused0]" not in laid
    assert "[MASK]" not in laid


def test_the_context_keeps_its_end_and_the_response_its_beginning(tokenizer: Any) -> None:
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


def test_a_ten_megabyte_response_is_cut_quickly(tokenizer: Any) -> None:
    pair = PairTokenizer(tokenizer, PairFormat()).pairs([Exchange(context=("hello",), response="fine " * 2_000_000)])[0]
    assert pair.cut
    assert len(pair.ids) <= 128


# --- where there is no room ---------------------------------------------------------------------------


def lay(tokenizer: Any, layout: PairFormat, context: str, response: str, *facts: str) -> tuple[str, TokenPair]:
    pair = PairTokenizer(tokenizer, layout).pairs([Exchange((context,), response, facts=facts)])[0]
    return " ".join(tokenizer.convert_ids_to_tokens(pair.ids.tolist())), pair


def alone(tokenizer: Any, layout: PairFormat, context: str, *facts: str) -> tuple[str, TokenPair]:
    pair = PairTokenizer(tokenizer, layout).contexts([Exchange((context,), "", facts=facts)])[0]
    return " ".join(tokenizer.convert_ids_to_tokens(pair.ids.tolist())), pair


@pytest.mark.parametrize("facts_budget", [None, 0, 5])
def test_a_response_that_takes_all_the_room_leaves_no_context(tokenizer: Any, facts_budget: int | None) -> None:
    layout = PairFormat(max_length=12, response_budget=12, facts_budget=facts_budget, facts_separator="[SEP]")
    laid, pair = lay(tokenizer, layout, "hello there how are you i am fine", REPLY, "i like fish")
    assert laid == "[CLS] [SEP] what do you like to eat fish and chips [SEP]"
    assert pair.cut
    assert pair.boundary == 2


def test_one_token_less_leaves_the_last_of_the_context(tokenizer: Any) -> None:
    laid, _ = lay(tokenizer, PairFormat(max_length=12, response_budget=8), "hello there fine", REPLY)
    assert laid == "[CLS] fine [SEP] what do you like to eat fish and [SEP]"


def test_a_response_keeps_three_quarters_and_at_least_one_token(tokenizer: Any) -> None:
    laid, pair = lay(tokenizer, PairFormat(max_length=16), "hello there", REPLY)
    assert laid == "[CLS] there [SEP] what do you like to eat fish and chips the weather is [SEP]"
    assert len(pair.ids) == 16
    none, _ = lay(tokenizer, PairFormat(max_length=16, response_budget=0), "hello", REPLY)
    assert none == "[CLS] hello [SEP] what [SEP]"


def test_what_just_fits_is_not_cut(tokenizer: Any) -> None:
    layout = PairFormat(max_length=12, response_budget=4)
    for context, cut in (("hello there how are you", False), ("hello there how are you fine", True)):
        laid, pair = lay(tokenizer, layout, context, "what do you like")
        assert pair.cut is cut
        assert laid.split(" [SEP] ")[0].split()[1:] == context.split()[-5:]


def test_facts_have_a_place_of_their_own_up_to_their_budget(tokenizer: Any) -> None:
    layout = PairFormat(max_length=16, facts_budget=6, facts_separator="[MASK]")
    facts = ("your persona: i like fish", "Partner's persona: you walk")
    laid, pair = lay(tokenizer, layout, "hello there how are you", "fine thanks", *facts)
    # "i like fish [MASK] you walk" is six tokens; the mark behind the second fact is what is cut.
    assert laid == "[CLS] i like fish [MASK] you walk hello there how are you [SEP] fine thanks [SEP]"
    assert pair.cut
    roomier = PairFormat(max_length=17, facts_budget=7, facts_separator="[MASK]")
    laid, pair = lay(tokenizer, roomier, "hello there how are you", "fine thanks", *facts)
    assert laid == "[CLS] i like fish [MASK] you walk [MASK] hello there how are you [SEP] fine thanks [SEP]"
    assert not pair.cut


def test_facts_outlive_the_context_and_give_way_to_the_response(tokenizer: Any) -> None:
    layout = PairFormat(max_length=14, response_budget=9, facts_budget=5, facts_separator="[MASK]")
    laid, pair = lay(tokenizer, layout, "hello there", REPLY, "i like fish")
    assert laid == "[CLS] i like [SEP] what do you like to eat fish and chips [SEP]"
    assert pair.cut
    short, pair = lay(tokenizer, layout, "how are you i am fine", "thanks see you then", "i like fish")
    assert short == "[CLS] i like fish [MASK] i am fine [SEP] thanks see you then [SEP]"
    assert pair.cut


def test_only_the_last_turns_are_read_beside_all_facts(tokenizer: Any) -> None:
    exchange = Exchange(context=("are you here", "hello", "how are you"), response="i", facts=("there",))
    for budget in (None, 4):
        layout = PairFormat(turns=2, facts_budget=budget, facts_separator="[SEP]")
        (pair,) = PairTokenizer(tokenizer, layout).pairs([exchange])
        whole = PairFormat(facts_budget=budget, facts_separator="[SEP]")
        (shorter,) = PairTokenizer(tokenizer, whole).pairs([replace(exchange, context=exchange.context[-2:])])
        assert (pair.ids.tolist(), pair.cut) == (shorter.ids.tolist(), False)
        (context,) = PairTokenizer(tokenizer, layout).contexts([exchange])
        (alone,) = PairTokenizer(tokenizer, whole).contexts([replace(exchange, context=exchange.context[-2:])])
        assert context.ids.tolist() == alone.ids.tolist()


def test_without_a_budget_facts_are_the_first_turns(tokenizer: Any) -> None:
    layout = PairFormat(max_length=10, separator="[unused0]")
    laid, pair = lay(tokenizer, layout, "how are you", "fine", "i like fish")
    assert laid == "[CLS] like fish [unused0] how are you [SEP] fine [SEP]"
    assert pair.cut


def test_a_context_alone_is_laid_out_by_the_same_rules(tokenizer: Any) -> None:
    layout = PairFormat(max_length=10, facts_budget=4, facts_separator="[MASK]")
    laid, pair = alone(tokenizer, layout, "hello there how are you i am fine", "your persona: i like fish")
    assert laid == "[CLS] i like fish [MASK] you i am fine [SEP]"
    assert (pair.cut, pair.boundary) == (True, len(pair.ids))
    laid, pair = alone(tokenizer, layout, "how are you", "i like fish")
    assert laid == "[CLS] i like fish [MASK] how are you [SEP]"
    assert not pair.cut
    _, pair = alone(tokenizer, layout, "hello", "i like fish and chips")
    assert pair.cut
    last_first = PairFormat(max_length=8, truncation="right_longest_first")
    laid, pair = alone(tokenizer, last_first, "hello there how are you i am fine")
    assert laid == "[CLS] hello there how are you i [SEP]"
    assert pair.cut


@pytest.mark.parametrize(
    "options",
    [
        {"max_length": 7},
        {"facts_budget": -1},
        {"facts_budget": 4, "truncation": "right_longest_first"},
        {"truncation": "middle"},
        {"turns": 0},
    ],
)
def test_impossible_layouts(options: dict[str, Any]) -> None:
    refused(ValueError, next(iter(options)), PairFormat, **options)
    assert PairFormat(max_length=8).max_length == 8


def test_the_special_tokens_are_those_of_the_tokenizer_s_own_pair(tokenizer: Any) -> None:
    """As RoBERTa has it: another one at each end, two in the middle, and an id of its own for padding."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    words = {word: number for number, word in enumerate("<s> <pad> </s> <unk> how are you fine thanks".split())}
    backend = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    ends = [("<s>", 0), ("</s>", 2)]
    backend.post_processor = processors.TemplateProcessing("<s> $A </s>", "<s> $A </s> </s> $B </s>", ends)
    theirs = PreTrainedTokenizerFast(tokenizer_object=backend, pad_token="<pad>", unk_token="<unk>")
    ours = PairTokenizer(theirs, PairFormat(max_length=16))
    assert ours.pad_id == 1
    exchange = Exchange(("how are you",), "fine thanks")
    (pair,) = ours.pairs([exchange])
    assert pair.ids.tolist() == theirs("how are you", "fine thanks")["input_ids"] == [0, 4, 5, 6, 2, 2, 7, 8, 2]
    assert pair.boundary == 6
    (alone,) = ours.contexts([exchange])
    assert alone.ids.tolist() == [0, 4, 5, 6, 2]
    assert PairTokenizer(tokenizer, PairFormat()).pad_id == tokenizer.pad_token_id
    refused(ValueError, "tokenizer.json", lambda: PairTokenizer(object(), PairFormat()))
