"""What the speed page compares: the metrics of the suite, and named alternatives on the same encoder weights.

All of them read at most `MAX_LENGTH` tokens of a text, run on the CPU and are told nothing about
the rows that they will be timed on. Imports stay inside the builders: each contender is measured in
a process of its own, whose memory must not show the others.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rows import generated

from dialeval.core.exchange import Exchange

MAX_LENGTH = 128
#: mauve's own default is one text at a time; this is CrossEncoder's.
MAUVE_BATCH = 32

Action = Callable[[Sequence[Exchange]], Any]


class Missing(Exception):
    """An alternative that cannot be measured here; the message goes into the table."""


@dataclass(frozen=True)
class Contender:
    """Something that can be timed: `build` loads it, what it returns scores rows."""

    title: str
    #: Texts of a row that go through the encoder.
    passes: int
    build: Callable[[], Action]


def rows_with_references(count: int, seed: int = 0) -> list[Exchange]:
    """Generated rows; each has the response of its neighbour as its reference, so that lengths are alike."""
    rows = generated(count, seed)
    return [replace(row, references=(rows[number - 1].response,)) for number, row in enumerate(rows)]


def encoder_copy(folder_prefix: str = "bert-") -> str:
    """The base encoder's own weights in a folder whose tokenizer cuts at `MAX_LENGTH`.

    mauve only takes models with "bert" or "gpt2" in their path, hence the name.
    """
    from transformers import AutoTokenizer

    from dialeval.checkpoints.find import find_encoder

    source = find_encoder().folder
    folder = tempfile.mkdtemp(prefix=folder_prefix)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    AutoTokenizer.from_pretrained(source, model_max_length=MAX_LENGTH).save_pretrained(folder)
    for name in ("config.json", "model.safetensors"):
        (Path(folder) / name).symlink_to((source / name).resolve())
    return folder


def _metric(name: str, dtype: str) -> Callable[[], Action]:
    def build() -> Action:
        import dialeval

        return dialeval.load(name, dtype=dtype, max_length=MAX_LENGTH).score_exchanges

    return build


def cross_encoder(per_row: int = 1) -> Action:
    """sentence-transformers' CrossEncoder at its defaults; with three pairs per row it reads what CMN reads."""
    try:
        from sentence_transformers import CrossEncoder
    except ImportError:
        raise Missing("sentence-transformers is not installed: pip install '.[agreement]'") from None
    model = CrossEncoder(encoder_copy(), num_labels=1, device="cpu", max_length=MAX_LENGTH)

    def predict(rows: Sequence[Exchange]) -> Any:
        pairs = [
            (" ".join(row.context), text) for row in rows for text in (row.response, *row.references[:1], "")[:per_row]
        ]
        return model.predict(pairs, show_progress_bar=False)

    return predict


def _bert_score() -> Action:
    """The scorer behind `bert_score.score`, loaded once, as every other contender is."""
    try:
        from bert_score import BERTScorer
    except ImportError:
        raise Missing("bert-score is not installed: pip install '.[agreement]'") from None
    scorer = BERTScorer(model_type=encoder_copy(), num_layers=_layers(), device="cpu")
    return lambda rows: scorer.score(*_sides(rows))


def _mauve() -> Action:
    """mauve-text with its own clustering; without "bert" weights it would take GPT-2."""
    try:
        from mauve import compute_mauve
    except ImportError:
        raise Missing("mauve-text is not installed: pip install '.[bench]'") from None
    options = {"featurize_model_name": encoder_copy(), "max_text_length": MAX_LENGTH, "batch_size": MAUVE_BATCH}

    def compute(rows: Sequence[Exchange]) -> Any:
        predictions, references = _sides(rows)
        return compute_mauve(p_text=references, q_text=predictions, device_id=-1, **options)

    return compute


def _sides(rows: Sequence[Exchange]) -> tuple[list[str], list[str]]:
    """Replies and references, both with their context, so that an alternative reads as much as the suite does."""
    replies = [" ".join((*row.context, row.response)) for row in rows]
    return replies, [" ".join((*row.context, row.references[0])) for row in rows]


def _layers() -> int:
    from transformers import AutoConfig

    from dialeval.checkpoints.find import find_encoder

    return int(AutoConfig.from_pretrained(find_encoder().folder).num_hidden_layers)


#: Encoder passes per row. DENSITY, DEB and QuantiDCE are heads on the judge's encoder, at its rate.
METRICS = {"judge": 1, "cmn": 3, "fbd": 2, "prd": 2}
#: What each is held against: first the one with as many passes.
RIVALS = {
    "judge": ("cross_encoder", "bert_score"),
    "cmn": ("cross_encoder_x3", "bert_score"),
    "fbd": ("mauve", "bert_score"),
    "prd": ("mauve", "bert_score"),
}
ALTERNATIVES = {
    "cross_encoder": Contender("CrossEncoder.predict", 1, cross_encoder),
    "cross_encoder_x3": Contender("CrossEncoder.predict, three pairs per row", 3, lambda: cross_encoder(3)),
    "mauve": Contender("mauve-text", 2, _mauve),
    "bert_score": Contender("bert-score", 2, _bert_score),
}
CONTENDERS = {
    **{
        f"{name}_{dtype}": Contender(f"{name}, {dtype}", passes, _metric(name, dtype))
        for dtype in ("float32", "int8", "bfloat16")
        for name, passes in METRICS.items()
    },
    **ALTERNATIVES,
}
