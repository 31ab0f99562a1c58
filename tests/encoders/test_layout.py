"""How pairs become token ids, and who gives way where there is no room for all: facts, context and response."""

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


def shown(tokenizer: Any, pair: TokenPair) -> str:
    return " ".join(tokenizer.convert_ids_to_tokens(pair.ids.tolist()))


PERSONA = ("your persona: i like fish", "Partner's persona: you walk")
#: By layout: facts, context and response, what becomes of them, and whether anything is cut.
ROOM: list[tuple[PairFormat, tuple[str, ...], str, str, str, bool]] = [
    # The context keeps its end and the response its beginning.
    (PairFormat(max_length=12, response_budget=4), (), "hello there how are you i am fine", REPLY,
     "[CLS] are you i am fine [SEP] what do you like [SEP]", True),
    (PairFormat(max_length=12, response_budget=4), (), "hello there how are you", "what do you like",
     "[CLS] hello there how are you [SEP] what do you like [SEP]", False),
    (PairFormat(max_length=12, response_budget=4), (), "hello there how are you fine", "what do you like",
     "[CLS] there how are you fine [SEP] what do you like [SEP]", True),
    # A response that takes all the room leaves no context, be there facts or not; one token less leaves the last of it.
    *((PairFormat(max_length=12, response_budget=12, facts_budget=budget, facts_separator="[SEP]"), ("i like fish",),
       "hello there how are you i am fine", REPLY, "[CLS] [SEP] what do you like to eat fish and chips [SEP]", True)
      for budget in (None, 0, 5)),
    (PairFormat(max_length=12, response_budget=8), (), "hello there fine", REPLY,
     "[CLS] fine [SEP] what do you like to eat fish and [SEP]", True),
    # It keeps three quarters where nothing is said, and at least one token.
    (PairFormat(max_length=16), (), "hello there", REPLY,
     "[CLS] there [SEP] what do you like to eat fish and chips the weather is [SEP]", True),
    (PairFormat(max_length=16, response_budget=0), (), "hello", REPLY, "[CLS] hello [SEP] what [SEP]", True),
    # "i like fish [MASK] you walk" is six tokens; the mark behind the second fact is what is cut.
    (PairFormat(max_length=16, facts_budget=6, facts_separator="[MASK]"), PERSONA, "hello there how are you",
     "fine thanks", "[CLS] i like fish [MASK] you walk hello there how are you [SEP] fine thanks [SEP]", True),
    (PairFormat(max_length=17, facts_budget=7, facts_separator="[MASK]"), PERSONA, "hello there how are you",
     "fine thanks", "[CLS] i like fish [MASK] you walk [MASK] hello there how are you [SEP] fine thanks [SEP]", False),
    # Facts outlive the context and give way to the response; without a budget they are the first turns.
    (PairFormat(max_length=14, response_budget=9, facts_budget=5, facts_separator="[MASK]"), ("i like fish",),
     "hello there", REPLY, "[CLS] i like [SEP] what do you like to eat fish and chips [SEP]", True),
    (PairFormat(max_length=14, response_budget=9, facts_budget=5, facts_separator="[MASK]"), ("i like fish",),
     "how are you i am fine", "thanks see you then",
     "[CLS] i like fish [MASK] i am fine [SEP] thanks see you then [SEP]", True),
    (PairFormat(max_length=10, separator="[unused0]"), ("i like fish",), "how are you", "fine",
     "[CLS] like fish [unused0] how are you [SEP] fine [SEP]", True),
]  # fmt: skip


@pytest.mark.parametrize(("layout", "facts", "context", "response", "expected", "cut"), ROOM)
def test_who_gives_way(
    tokenizer: Any, layout: PairFormat, facts: tuple[str, ...], context: str, response: str, expected: str, cut: bool
) -> None:
    (pair,) = PairTokenizer(tokenizer, layout).pairs([Exchange((context,), response, facts=facts)])
    assert (shown(tokenizer, pair), pair.cut) == (expected, cut)
    assert pair.boundary == expected.split().index("[SEP]") + 1


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


#: The same of contexts alone.
ALONE: list[tuple[PairFormat, tuple[str, ...], str, str, bool]] = [
    (PairFormat(max_length=10, facts_budget=4, facts_separator="[MASK]"), PERSONA[:1],
     "hello there how are you i am fine", "[CLS] i like fish [MASK] you i am fine [SEP]", True),
    (PairFormat(max_length=10, facts_budget=4, facts_separator="[MASK]"), ("i like fish",), "how are you",
     "[CLS] i like fish [MASK] how are you [SEP]", False),
    (PairFormat(max_length=10, facts_budget=4, facts_separator="[MASK]"), ("i like fish and chips",), "hello",
     "[CLS] i like fish and hello [SEP]", True),
    (PairFormat(max_length=8, truncation="right_longest_first"), (), "hello there how are you i am fine",
     "[CLS] hello there how are you i [SEP]", True),
]  # fmt: skip


@pytest.mark.parametrize(("layout", "facts", "context", "expected", "cut"), ALONE)
def test_a_context_alone_is_laid_out_by_the_same_rules(
    tokenizer: Any, layout: PairFormat, facts: tuple[str, ...], context: str, expected: str, cut: bool
) -> None:
    (pair,) = PairTokenizer(tokenizer, layout).contexts([Exchange((context,), "", facts=facts)])
    assert (shown(tokenizer, pair), pair.cut, pair.boundary) == (expected, cut, len(pair.ids))


def test_impossible_layouts() -> None:
    last_first = {"facts_budget": 4, "truncation": "right_longest_first"}
    for options in ({"max_length": 7}, {"facts_budget": -1}, last_first, {"truncation": "middle"}, {"turns": 0}):
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
