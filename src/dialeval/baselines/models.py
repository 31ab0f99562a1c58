"""Finding and loading the pretrained models that some baselines stand on."""

from __future__ import annotations

import logging as standard_logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from dialeval.baselines.words import MissingResource
from dialeval.checkpoints.catalogue import base_encoders
from dialeval.checkpoints.find import Located, find_encoder, weights_digest
from dialeval.checkpoints.load import read_tokenizer
from dialeval.core.exchange import Exchange
from dialeval.encoders.base import longest_input
from dialeval.io.files import first_line


def weights_identity(model: str, located: Located) -> str:
    """`name@commit`, or `name@digest` for a folder, so that a signature tells one set of weights from another."""
    if (listed := base_encoders().get(model)) is not None:
        return f"{model}@{listed.sha256}"
    if located.revision is not None:
        return f"{model}@{located.revision}"
    return f"{located.folder.name}@{weights_digest(located.folder)}"


def load_language_model(kind: str, model: str | None, revision: str | None, *, needed_by: str, example: str) -> Any:
    """Load a model with its language-modelling head, its tokenizer and its identity.

    `kind` is the auto class. transformers would fill a head that is not in the file with random
    numbers and only warn; such a model is refused here.
    """
    import transformers

    if model is None:
        raise MissingResource(
            f"{needed_by} needs a language model and none comes with this package; "
            f"pass model= a folder or a name on the Hub, for example model={example!r}"
        )
    located = find_encoder(model, revision=revision)
    try:
        with quiet_loading():
            loaded, report = getattr(transformers, kind).from_pretrained(
                located.folder, local_files_only=True, use_safetensors=True, output_loading_info=True
            )
    except (OSError, ValueError) as error:
        raise MissingResource(f"{needed_by} cannot load {model} as a language model: {first_line(error)}") from None
    if report["missing_keys"]:
        lacking = ", ".join(sorted(report["missing_keys"])[:2])
        raise MissingResource(
            f"{needed_by} needs a language model, but {model} has no such head (without {lacking}); "
            f"pass another model, for example model={example!r}"
        )
    return loaded.eval().requires_grad_(False), read_tokenizer(located.folder), weights_identity(model, located)


def readable_tokens(config: Any, tokenizer: Any) -> int:
    """How many tokens a model can read: what its tokenizer says and what its positions allow."""
    stated = int(tokenizer.model_max_length)
    return stated if getattr(config, "max_position_embeddings", None) is None else min(stated, longest_input(config))


@contextmanager
def quiet_loading() -> Iterator[None]:
    """Keep transformers' bars and reports about unused weights out of the output; ours say what matters."""
    from transformers.utils import logging

    level: int = logging.get_verbosity()
    logging.set_verbosity(standard_logging.ERROR)
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        logging.set_verbosity(level)


#: Padded tokens in one batch. A vocabulary of 50,000 makes this 200 MB of logits.
DEFAULT_BATCH_TOKENS = 1024
#: Longest input by default; models that can take more are rarely worth it for one reply.
LONGEST = 1024


def input_limit(config: Any, tokenizer: Any, asked: int | None) -> int:
    """How many tokens a model reads: what was asked for, at most what it can take."""
    able = readable_tokens(config, tokenizer)
    if asked is None:
        return min(able, LONGEST)
    if not 8 <= asked <= able:
        raise ValueError(f"max_length is {asked}; this model takes 8 to {able} tokens")
    return asked


def count_longer(exchanges: Sequence[Exchange], tokenizer: Any, limit: int) -> int:
    """Rows in which the reply or a reference has more tokens than a model reads."""
    texts = list({text for row in exchanges for text in (row.response, *row.references)})
    ids = tokenizer(texts, truncation=False, padding=False, verbose=False)["input_ids"] if texts else []
    long = {text for text, tokens in zip(texts, ids, strict=True) if len(tokens) > limit}
    return sum(not long.isdisjoint((row.response, *row.references)) for row in exchanges)
