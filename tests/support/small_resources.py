"""Small stand-ins, made on the spot, for what tests must not download: a WordNet and language models."""

from pathlib import Path
from typing import Any

WORDS = (
    "<end> [PAD] [UNK] [CLS] [SEP] [MASK] how are you i am fine thanks what do like tea coffee . ? ! not bad and"
).split()

_SYNSETS = {
    "noun": ("n", [["car", "auto", "automobile"], ["sofa", "couch"], ["tea"], ["thing"]]),
    "verb": ("v", [["start", "begin"], ["like", "enjoy"]]),
    "adj": ("a", [["big", "large"], ["happy", "glad"]]),
    "adv": ("r", [["quickly", "fast"]]),
}


def write_wordnet(folder: Path) -> Path:
    """A WordNet of nine synsets in the format of the original's files."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, (letter, synsets) in _SYNSETS.items():
        data = b"  1 WordNet 3.0 Copyright line of a test\n"
        index: dict[str, int] = {}
        for lemmas in synsets:
            index.update((lemma, len(data)) for lemma in lemmas)
            listed = " ".join(f"{lemma} 0" for lemma in lemmas)
            frames = " 01 + 02 00" if letter == "v" else ""
            data += f"{len(data):08d} 03 {letter} {len(lemmas):02x} {listed} 000{frames} | a meaning  \n".encode()
        (folder / f"data.{name}").write_bytes(data)
        lines = [f"{lemma} {letter} 1 0 1 0 {offset:08d}  \n" for lemma, offset in sorted(index.items())]
        (folder / f"index.{name}").write_text("  1 a licence line\n" + "".join(lines))
        (folder / f"{name}.exc").write_text("")
    (folder / "cntlist.rev").write_text("")
    return folder


def write_masked_model(folder: Path) -> Path:
    import torch
    from transformers import BertConfig, BertForMaskedLM

    torch.manual_seed(1)
    config = BertConfig(
        vocab_size=len(WORDS), hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=40, initializer_range=0.5,
    )  # fmt: skip
    BertForMaskedLM(config).save_pretrained(folder)
    _write_tokenizer(folder, pairs=True)
    return folder


def write_causal_model(folder: Path) -> Path:
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(2)
    config = GPT2Config(
        vocab_size=len(WORDS), n_embd=16, n_layer=2, n_head=2, n_positions=40, initializer_range=0.5,
        bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    GPT2LMHeadModel(config).save_pretrained(folder)
    _write_tokenizer(folder, pairs=False)
    return folder


def _write_tokenizer(folder: Path, *, pairs: bool) -> None:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    ids = {word: number for number, word in enumerate(WORDS)}
    backend: Any = Tokenizer(models.WordLevel(ids, unk_token="[UNK]"))
    backend.normalizer = normalizers.Lowercase()
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = {"pad_token": "[PAD]", "unk_token": "[UNK]"}
    if pairs:
        backend.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]",
            pair="[CLS] $A [SEP] $B:1 [SEP]:1",
            special_tokens=[("[CLS]", ids["[CLS]"]), ("[SEP]", ids["[SEP]"])],
        )
        special |= {"cls_token": "[CLS]", "sep_token": "[SEP]", "mask_token": "[MASK]"}
    else:
        special |= {"bos_token": "<end>", "eos_token": "<end>"}
    PreTrainedTokenizerFast(tokenizer_object=backend, model_max_length=40, **special).save_pretrained(folder)
