"""The engine by value: what the network is given, in which batches, and what is kept."""

import threading
from collections.abc import Sequence
from itertools import islice, repeat
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import dialeval.encoders.batching as encoding
from dialeval.checkpoints.load import load_tokenizer
from dialeval.core.exchange import Exchange
from dialeval.encoders.batching import PairEncoder, choose_device, choose_dtype, collate
from dialeval.encoders.layout import PairFormat, PairTokenizer, TokenPair
from refusals import refused
from tiny_words import WORDS


def pair(*ids: int, boundary: int = 1) -> TokenPair:
    return TokenPair(np.array(ids, dtype=np.int32), boundary, False)


class Sums(nn.Module):
    """A row: the number of tokens, of those of segment one, and the sum of ids. Keeps the shapes that it was given."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1))
        self.given: list[tuple[int, ...]] = []

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> Tensor:
        self.given.append(tuple(input_ids.shape))
        parts = (attention_mask, token_type_ids, input_ids * attention_mask)
        return torch.stack([part.sum(dim=1) for part in parts], dim=1).double()


@pytest.fixture(scope="module")
def tokenizer(tiny_encoder: Any) -> PairTokenizer:
    layout = PairFormat(max_length=48, segment_ids=True)
    return PairTokenizer(load_tokenizer(tiny_encoder, layout), layout)


def rows(lengths: Sequence[int]) -> list[Exchange]:
    """Pairs of so many tokens: three special ones, one of the reply, the others of the context."""
    return [Exchange((" ".join(WORDS[at : at + length - 4]),), "fine") for at, length in enumerate(lengths)]


def test_pairs_are_padded_to_one_rectangle() -> None:
    found = collate([pair(5, 6, 7, boundary=2), pair(*range(1, 10), boundary=4)], 99, segment_ids=True)
    assert found["input_ids"].tolist() == [[5, 6, 7, *[99] * 13], [*range(1, 10), *[99] * 7]]
    assert found["attention_mask"].tolist() == [[1] * 3 + [0] * 13, [1] * 9 + [0] * 7]
    assert found["token_type_ids"].tolist() == [[0, 0, 1, *[0] * 13], [0] * 4 + [1] * 5 + [0] * 7]
    assert {tensor.dtype for tensor in found.values()} == {torch.int64}
    assert collate([pair(*range(8))], 0, segment_ids=True)["input_ids"].shape == (1, 8)
    without = collate([pair(5, 6, 7)], 0, segment_ids=False)
    assert without["token_type_ids"].sum() == 0


def test_rows_are_those_of_their_exchange_in_float32(tokenizer: PairTokenizer) -> None:
    lengths = [9, 30, 5, 17, 9]
    given = rows(lengths)
    found = PairEncoder(Sums(), tokenizer, batch_tokens=64).encode([*given, given[1]])
    assert found.rows.dtype == np.float32
    assert found.rows[:, 0].tolist() == [*lengths, 30]
    assert found.rows[:, 1].tolist() == [2] * 6  # the reply's token and the end
    assert found.rows[:, 2].tolist() == [float(one.ids.sum()) for one in tokenizer.pairs([*given, given[1]])]
    alone = PairEncoder(Sums(), tokenizer, segment="context").encode(given)
    assert alone.rows[:, 0].tolist() == [length - 2 for length in lengths]


def test_cuts_are_counted(tokenizer: PairTokenizer) -> None:
    long, short = (Exchange((context,), "fine") for context in ("hello " * 100, "hello"))
    assert PairEncoder(Sums(), tokenizer).encode([long, short, long]).cut.tolist() == [True, False, True]


def test_the_longest_go_first_and_batches_are_filled_up_to_the_budget(tokenizer: PairTokenizer) -> None:
    network = Sums()
    PairEncoder(network, tokenizer, batch_tokens=64).encode(rows([8, 9, 20, 16, 30, 5]))
    # Padded widths 32, 24, 16, 16, 8, 8: two of 32 fit, then four of 16.
    assert network.given == [(2, 32), (4, 16)]
    small = Sums()
    PairEncoder(small, tokenizer, batch_tokens=1).encode(rows([8, 20]))
    assert small.given == [(1, 24), (1, 8)]


def test_repeats_are_run_once_unless_told_otherwise(tokenizer: PairTokenizer) -> None:
    given = rows([8, 8, 8])
    network = Sums()
    PairEncoder(network, tokenizer).encode([given[0]] * 5)
    assert network.given == [(1, 8)]
    plain = Sums()
    engine = PairEncoder(plain, tokenizer, deduplicate=False)
    for _ in range(2):
        engine.encode([given[0]] * 5)
    assert plain.given == [(5, 8), (5, 8)]


def test_what_was_forgotten_is_run_again_and_the_oldest_goes_first(
    tokenizer: PairTokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    network = Sums()
    engine = PairEncoder(network, tokenizer, batch_tokens=8)
    given = rows([8, 8, 8])
    engine.encode(given)
    engine.encode(given)
    assert len(network.given) == 3
    engine.forget()
    engine.encode(given)
    assert len(network.given) == 6
    key = tokenizer.pairs(given)[0].key
    size = 3 * 4 + len(key) + 200
    monkeypatch.setattr(encoding, "REMEMBERED_BYTES", 2 * size)
    engine.forget()
    engine.encode(given)
    engine.encode(given[1:])
    assert len(network.given) == 9
    engine.encode(given[:1])
    assert len(network.given) == 10


def test_a_stream_comes_in_chunks(tokenizer: PairTokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoding, "CHUNK_ROWS", 3)
    engine = PairEncoder(Sums(), tokenizer, batch_tokens=16)
    one, _ = rows([8, 12])
    assert [len(part.rows) for part in engine.stream_chunks([one] * 7)] == [3, 3, 1]
    assert [len(part.rows) for part in islice(engine.stream_chunks(repeat(one)), 2)] == [3, 3]  # one without an end
    assert engine.encode([one] * 7, progress=True).rows.shape == (7, 3)


def test_tokenising_ahead_changes_nothing(tokenizer: PairTokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoding, "CHUNK_ROWS", 3)
    given = rows([8, 12, 9, 20, 11, 8, 10, 30])
    engine = PairEncoder(Sums(), tokenizer)
    assert not engine.ahead
    expected = engine.encode(given)
    engine.forget()
    engine.ahead, threads = True, set()
    pairs = tokenizer.pairs
    monkeypatch.setattr(tokenizer, "pairs", lambda chunk: (threads.add(threading.get_ident()), pairs(chunk))[1])
    again = engine.encode(given)
    assert np.array_equal(again.rows, expected.rows)
    assert np.array_equal(again.cut, expected.cut)
    assert len(threads) == 2
    engine.forget()
    monkeypatch.setattr(tokenizer, "pairs", lambda chunk: 1 / 0 if len(chunk) < 3 else pairs(chunk))
    with pytest.raises(ZeroDivisionError):
        engine.encode(given)


def test_devices_and_dtypes_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    cpu = torch.device("cpu")
    assert choose_device("cpu") == choose_device(cpu) == cpu
    assert choose_device("auto") == choose_device() == choose_device(None)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    assert choose_device() == cpu
    refused(ValueError, "'nowhere'", choose_device, "nowhere")
    for name, dtype in (("float32", torch.float32), ("bfloat16", torch.bfloat16)):
        assert choose_dtype(name, cpu) == choose_dtype(dtype, cpu) == dtype
    for fast, dtype in ((True, torch.bfloat16), (False, torch.float32)):
        monkeypatch.setattr(encoding, "gains_by_bfloat16", lambda device, fast=fast: fast)
        assert choose_dtype("auto", cpu) == dtype
    refused(ValueError, "float16", choose_dtype, "float16", cpu)


def test_a_graphics_card_of_little_memory_gets_smaller_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    card, usual = torch.device("cuda"), encoding.DEFAULT_BATCH_TOKENS
    for free, expected in ((80 * 2**30, usual["cuda"]), (2**30, 2**29 // (24 * 4 * 384)), (2**20, 1024)):
        monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device, free=free: (free, 2 * free))
        assert encoding.default_batch_tokens(card, 384) == expected
    assert encoding.default_batch_tokens(torch.device("cpu"), 384) == usual["cpu"]
    assert encoding.default_batch_tokens(torch.device("xpu"), 384) == 4096


def test_a_cpu_takes_bfloat16_where_it_is_measured_to_be_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    assert encoding.bfloat16_gain() > 0
    for gain, gains in ((0.6, False), (2.7, True)):
        monkeypatch.setattr(encoding, "bfloat16_gain", lambda gain=gain: gain)
        assert encoding.gains_by_bfloat16(torch.device("cpu")) is gains
    assert not encoding.gains_by_bfloat16(torch.device("meta"))


def test_the_budget_belongs_to_the_device_unless_given(tokenizer: PairTokenizer) -> None:
    assert PairEncoder(Sums(), tokenizer).batch_tokens == encoding.DEFAULT_BATCH_TOKENS["cpu"]
    assert PairEncoder(Sums(), tokenizer, batch_tokens=7).batch_tokens == 7
    refused(ValueError, "batch_tokens", lambda: PairEncoder(Sums(), tokenizer, batch_tokens=-1))
    refused(ValueError, "rows", PairEncoder(Sums(), tokenizer).encode, [])
