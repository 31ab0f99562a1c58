"""Encoders of the papers' architectures with few and random weights, built without a download: BERT, RoBERTa, GPT-2."""

from __future__ import annotations

from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers import (
    BertConfig,
    BertForPreTraining,
    GPT2Config,
    GPT2LMHeadModel,
    PreTrainedTokenizerFast,
    RobertaConfig,
    RobertaForMaskedLM,
)

from tiny_words import WORDS

_SHAPE = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}


def bert(folder: Path) -> Path:
    """With both of the heads that BERT was released with, and a pooler."""
    torch.manual_seed(0)
    words = ["[PAD]", "[unused0]", "[unused1]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *dict.fromkeys(WORDS), *".,'?!"]
    tokenizer = Tokenizer(models.WordPiece({word: number for number, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 5), ("[CLS]", 4))
    special = {f"{name}_token": f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep", "mask")}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special).save_pretrained(folder)
    BertForPreTraining(BertConfig(vocab_size=len(words), max_position_embeddings=512, **_SHAPE)).save_pretrained(folder)
    return folder


def roberta(folder: Path) -> Path:
    """One kind of segment, positions that begin behind the padding's id, bytes for letters."""
    torch.manual_seed(0)
    vocabulary = _bytes("<s>", "<pad>", "</s>", "<unk>", "<mask>")
    tokenizer = _byte_level(vocabulary)
    ends = ("</s>", vocabulary["</s>"]), ("<s>", vocabulary["<s>"])
    tokenizer.post_processor = processors.RobertaProcessing(*ends)
    special = {"bos_token": "<s>", "eos_token": "</s>", "cls_token": "<s>", "sep_token": "</s>"}
    special |= {"pad_token": "<pad>", "unk_token": "<unk>", "mask_token": "<mask>"}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special).save_pretrained(folder)
    config = RobertaConfig(vocab_size=len(vocabulary), max_position_embeddings=514, type_vocab_size=1, **_SHAPE)
    RobertaForMaskedLM(config).save_pretrained(folder)
    return folder


def gpt2(folder: Path) -> Path:
    """The decoder of CMN."""
    torch.manual_seed(0)
    vocabulary = _bytes("<|endoftext|>")
    tokenizer = _byte_level(vocabulary)
    special = dict.fromkeys(("bos_token", "eos_token", "unk_token"), "<|endoftext|>")
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special).save_pretrained(folder)
    config = GPT2Config(vocab_size=len(vocabulary), n_positions=512, n_embd=32, n_layer=2, n_head=4)
    GPT2LMHeadModel(config).save_pretrained(folder)
    return folder


def _bytes(*special: str) -> dict[str, int]:
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    return {piece: number for number, piece in enumerate([*special, *letters])}


def _byte_level(vocabulary: dict[str, int]) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE(vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer
