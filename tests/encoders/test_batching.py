"""The engine: a row's result depends on that row alone, order comes back, memory stays bounded."""

from __future__ import annotations

import random
from itertools import islice, repeat
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import dialeval.encoders.batching as encoding
from dialeval.checkpoints.load import load_encoder, load_tokenizer
from dialeval.core.exchange import Exchange
from dialeval.encoders.batching import PairEncoder
from dialeval.encoders.layout import PairFormat, PairTokenizer
from tiny_words import WORDS

#: float32 features of one row may move this much when other rows share its batch.
TOLERANCE = 1e-5


class FirstToken(nn.Module):
    """The features of the first token, counting the rows it was run on."""

    def __init__(self, encoder: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder
        self.rows = 0

    def forward(self, **tensors: torch.Tensor) -> torch.Tensor:
        self.rows += len(tensors["input_ids"])
        return self.encoder(**tensors).last_hidden_state[:, 0]


@pytest.fixture(scope="module")
def network(tiny_encoder: Path) -> FirstToken:
    return FirstToken(load_encoder(tiny_encoder, 0))


@pytest.fixture(scope="module")
def tokenizer(tiny_encoder: Path) -> PairTokenizer:
    layout = PairFormat(max_length=48, separator="[unused0]")
    return PairTokenizer(load_tokenizer(tiny_encoder, layout), layout)


def exchanges(seed: int, count: int) -> list[Exchange]:
    rng = random.Random(seed)

    def text() -> str:
        return " ".join(rng.choices(WORDS, k=rng.randint(1, 20)))

    return [Exchange(tuple(text() for _ in range(rng.randint(1, 4))), text()) for _ in range(count)]


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), count=st.integers(1, 30), budget=st.integers(1, 2000), copies=st.integers(1, 3))
@pytest.mark.slow
def test_rows_do_not_see_their_neighbours(
    network: FirstToken, tokenizer: PairTokenizer, seed: int, count: int, budget: int, copies: int
) -> None:
    rows = exchanges(seed, count)
    alone = np.concatenate([PairEncoder(network, tokenizer).encode([row]).rows for row in rows])
    order = list(range(count)) * copies
    random.Random(seed).shuffle(order)
    together = PairEncoder(network, tokenizer, batch_tokens=budget).encode([rows[index] for index in order])
    assert np.abs(together.rows - alone[order]).max() < TOLERANCE
    plain = PairEncoder(network, tokenizer, batch_tokens=budget, deduplicate=False).encode(rows)
    assert np.abs(plain.rows - alone).max() < TOLERANCE


def test_an_endless_stream_is_scored_as_it_comes(
    network: FirstToken, tokenizer: PairTokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encoding, "CHUNK_ROWS", 4)
    endless = repeat(exchanges(4, 1)[0])
    chunks = list(islice(PairEncoder(network, tokenizer).stream_chunks(endless), 3))
    assert [len(chunk.rows) for chunk in chunks] == [4, 4, 4]


def test_cuts_are_counted(network: FirstToken, tokenizer: PairTokenizer) -> None:
    long = Exchange(("hello " * 100,), "fine")
    short = Exchange(("hello",), "fine")
    encoded = PairEncoder(network, tokenizer).encode([long, short, long])
    assert encoded.cut.tolist() == [True, False, True]
