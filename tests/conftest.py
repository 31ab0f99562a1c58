"""Fixtures shared by all tests: a tiny random encoder and corpus; and what is skipped where a resource is absent."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator

# One module cache for the whole session: evaluate binds the package of loaded modules to the first one that it sees.
os.environ["HF_MODULES_CACHE"] = tempfile.mkdtemp(prefix="dialeval-test-modules-")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("HF_EVALUATE_OFFLINE", "1")
os.environ.setdefault("HF_UPDATE_DOWNLOAD_COUNTS", "0")
# Beside other workers each has a core of its own; threads of all of them would wait for each other.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")

from pathlib import Path

import pytest

from resources import RESOURCES, hide, why_absent
from tiny_words import WORDS

hide()

pytest_plugins = ("pytester",)


@pytest.fixture(autouse=True)
def accelerate_begins_anew() -> Iterator[None]:
    """Accelerate keeps the precision of a process's first run; every training script here has a process to itself."""
    yield
    if "accelerate" in sys.modules:
        from accelerate.test_utils.testing import AccelerateTestCase

        AccelerateTestCase().tearDown()


@pytest.fixture(scope="session")
def tiny_encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A two-layer BERT with random weights and a word-piece tokenizer, saved as a folder."""
    import torch
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    folder = tmp_path_factory.mktemp("tiny-encoder")
    special = "[PAD] [unused0] [UNK] [CLS] [SEP] [MASK] [unused1]".split()
    vocabulary = list(dict.fromkeys([*special, *WORDS, *"abcdefghijklmnop.,'?!"]))
    tokenizer = Tokenizer(models.WordPiece({word: number for number, word in enumerate(vocabulary)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 4), ("[CLS]", 3))
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
    )
    fast.save_pretrained(folder)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=128,
    )
    BertModel(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def tiny_corpora(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus folder `chat/{train,validation}.jsonl` of dialogues made of the tiny vocabulary."""
    import json
    import random

    root = tmp_path_factory.mktemp("corpora")
    rng = random.Random(0)
    (root / "chat").mkdir()
    for split, count in (("train", 60), ("validation", 20)):
        rows = []
        for number in range(count):
            turns = [" ".join(rng.choices(WORDS, k=rng.randint(3, 9))) for _ in range(rng.randint(2, 6))]
            rows.append(json.dumps({"id": f"{split}-{number}", "utterances": turns}))
        (root / "chat" / f"{split}.jsonl").write_text("\n".join(rows) + "\n")
    (root / "overlaps.json").write_text(json.dumps({"chat": {"train vs validation": ["train-0", "train-1"]}}))
    return root


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what needs something that is not on this machine, and say so."""
    for item in items:
        for name in RESOURCES:
            if item.get_closest_marker(name) and (reason := why_absent(name)):
                item.add_marker(pytest.mark.skip(reason=reason))
