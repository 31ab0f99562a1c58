"""Sets of features, kept beside digests of the texts they came from, and the files they are saved in.

The digests put rows into one order whatever order they came in, and tell which rows share a
context, so that a saved set needs no text.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, get_args
from weakref import WeakValueDictionary

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save
from torch import Tensor, nn

from dialeval.checkpoints.catalogue import checkpoint_named
from dialeval.checkpoints.config import CheckpointConfig
from dialeval.checkpoints.find import (
    BASE_ENCODER,
    CheckpointError,
    find_checkpoint,
    find_encoder,
    first_line,
    weights_digest,
)
from dialeval.checkpoints.load import load_encoder, load_tokenizer
from dialeval.checkpoints.untrusted import check_files, read_json
from dialeval.core.exchange import Exchange
from dialeval.encoders.base import longest_input, states
from dialeval.encoders.batching import PairEncoder, choose_device, choose_precision, speed_up, weights_dtype
from dialeval.encoders.layout import PairFormat, PairTokenizer
from dialeval.io.files import replace_file
from dialeval.papers import network_class
from dialeval.statistics.moments import Moments

#: What a checkpoint folder calls its human side.
HUMAN_FILE = "human.safetensors"
_FORMAT = "dialeval-features-1"


@dataclass(frozen=True)
class FeatureSet:
    """Features of (context, reply) pairs, digests of the pairs and contexts, and which pairs were truncated."""

    rows: NDArray[np.float32]
    pairs: NDArray[np.uint64]
    contexts: NDArray[np.uint64]
    cut: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, chosen: NDArray[np.intp]) -> Self:
        """Some of the rows, or all of them in another order."""
        return type(self)(self.rows[chosen], self.pairs[chosen], self.contexts[chosen], self.cut[chosen])

    def merge(self, other: Self) -> Self:
        """These rows, then those."""
        return type(self)(*(np.concatenate([mine, vars(other)[name]]) for name, mine in vars(self).items()))


def digest(texts: Sequence[str]) -> int:
    """Sixty-four bits that stand for some texts."""
    content = json.dumps(list(texts), ensure_ascii=False).encode()
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "little")


def write_side(path: str | Path, side: FeatureSet | Moments, made_with: Mapping[str, str]) -> None:
    """Write one side of a comparison and what it was made with; the file appears when it is complete."""
    tensors = {name: np.ascontiguousarray(value) for name, value in vars(side).items()}
    target = Path(path).expanduser()
    replace_file(target, lambda hidden: hidden.write_bytes(save(tensors, {"format": _FORMAT, **made_with})))


def read_side(source: str | Path) -> tuple[FeatureSet | Moments, dict[str, str]]:
    """One side of a comparison from a file, or from a checkpoint that brings one, and what it was made with."""
    path = Path(source).expanduser()
    if not path.is_file():
        path = find_checkpoint(source, default=str(source)).folder / HUMAN_FILE
    try:
        with safe_open(path, framework="numpy") as stored:
            made_with: dict[str, str] = dict(stored.metadata() or {})
            tensors: dict[str, Any] = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118
    except FileNotFoundError:
        raise CheckpointError(f"{path} is missing; this checkpoint brings no human side") from None
    except (SafetensorError, OSError, TypeError, ValueError) as error:  # among them numbers that numpy does not have
        raise CheckpointError(f"{path} is not a saved set, or is damaged: {first_line(error)}") from None
    if (version := made_with.pop("format", None)) != _FORMAT:
        raise CheckpointError(f"{path} is not a saved set of features; its format is {version!r}")
    is_moments = "scatter" in tensors
    if problem := _problem(tensors, _OF_MOMENTS if is_moments else _OF_ROWS):
        raise CheckpointError(f"{path} is damaged: {problem}")
    if is_moments:
        return Moments(int(tensors.pop("count").item()), **tensors), made_with
    return FeatureSet(**tensors), made_with


#: Of each kind of file the tensors, with the kind of their numbers and what their sides must equal.
_OF_MOMENTS = {"count": ("iu", ("one",)), "mean": ("f", ("width",)), "scatter": ("f", ("width", "width"))}
_OF_ROWS = {
    "rows": ("f", ("rows", "width")),
    "pairs": ("u", ("rows",)),
    "contexts": ("u", ("rows",)),
    "cut": ("b", ("rows",)),
}


def _problem(tensors: Mapping[str, NDArray[Any]], wanted: Mapping[str, tuple[str, tuple[str, ...]]]) -> str:
    """What is wrong with the tensors of a file that anybody may have written; nothing if they are as they are saved."""
    if tensors.keys() != wanted.keys():
        return f"it holds {', '.join(sorted(tensors)[:4]) or 'nothing'}, not {', '.join(wanted)}"
    sides = {"one": 1}
    for name, (kinds, shape) in wanted.items():
        values = tensors[name]
        if values.dtype.kind not in kinds or len(values.shape) != len(shape):
            return f"{name} holds {values.dtype} in the shape {values.shape}"
        if any(sides.setdefault(side, length) != length for side, length in zip(shape, values.shape, strict=True)):
            return f"{name} has the shape {values.shape}, which does not fit the others"
        if not np.isfinite(values).all():
            return f"{name} holds values that are no numbers"
    if "count" in tensors and not 0 < int(tensors["count"].item()) < 2**53:
        return "it was made of no number of rows"
    return ""


def check_made_alike(first: Mapping[str, str], other: Mapping[str, str], what: str) -> None:
    """Refuse to compare features that were not made in the same way."""
    for key in first.keys() | other.keys():
        if first.get(key) != other.get(key):
            raise ValueError(
                f"{what} was made with {key}={other.get(key)} and not {first.get(key)}; make it again, or load alike"
            )


Pooling = Literal["cls", "mean"]

#: Tokens of a pair unless more or fewer are asked for; what the papers' encoders read.
_MAX_LENGTH = 512


class FeatureNetwork(nn.Module):
    """An encoder whose row of numbers is the last layer's first token, or the mean over all tokens."""

    def __init__(self, encoder: nn.Module, pooling: Pooling, *, segment_ids: bool) -> None:
        super().__init__()
        self.encoder = encoder
        self.pooling = pooling
        self.segment_ids = segment_ids

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> Tensor:
        """`[batch, width]`; neither a pooler nor a normalisation stands behind the last layer."""
        first_only = self.pooling == "cls"
        hidden = states(self.encoder, input_ids, attention_mask, token_type_ids, first_only=first_only)
        if first_only:
            return hidden[:, 0]
        mask = attention_mask[..., None].float()
        return (hidden.float() * mask).sum(dim=1) / mask.sum(dim=1)


class FrozenFeatures:
    """Turns pairs of context and reply into features by an encoder as it is: a pretrained one, or a checkpoint's."""

    _loaded: ClassVar[WeakValueDictionary[tuple[str, ...], FrozenFeatures]] = WeakValueDictionary()

    def __init__(
        self,
        encoder: str | Path | None = None,
        *,
        revision: str | None = None,
        pooling: Pooling = "cls",
        max_length: int | None = None,
        tidy: bool = True,
        device: str | torch.device | None = None,
        dtype: str | torch.dtype = "float32",
        batch_tokens: int | None = None,
    ) -> None:
        if pooling not in get_args(Pooling):
            raise ValueError(f"pooling is {pooling!r}; it is 'cls' or 'mean'")
        place = choose_device(device)
        precision = choose_precision(dtype, place)
        name = BASE_ENCODER if encoder is None else str(encoder)
        listed = checkpoint_named(name) is not None
        located = find_checkpoint(name, default=name) if listed else find_encoder(name, revision=revision)
        check_files(located.folder)
        is_ours = read_json(located.folder / "config.json").get("model_type") == "dialeval"
        model, tokenizer, layout = (_tuned if is_ours else _plain)(located.folder)
        config = CheckpointConfig.read(located.folder) if is_ours else None
        #: Benchmarks that a trained checkpoint learned from.
        self.contaminated_by = frozenset(config.contaminated_by if config else ())
        longest = longest_input(model.config)
        if max_length is not None and max_length > longest:
            raise ValueError(f"max_length is {max_length}; this encoder reads at most {longest} tokens")
        layout = replace(layout, max_length=max_length or min(layout.max_length, longest), tidy=tidy)
        pairs = PairTokenizer(tokenizer, layout)
        precision = speed_up([model], precision, pairs, asked=dtype)
        network = FeatureNetwork(model, pooling, segment_ids=layout.segment_ids).requires_grad_(False)
        network.to(place, weights_dtype(precision))
        self.encoder = PairEncoder(network, pairs, batch_tokens=batch_tokens, same_widths=precision == "int8")
        # A run's weights lie in a folder that is called `checkpoint`, whatever they are.
        own_name = (config.name if config else "") or located.folder.name
        self.name = own_name if located.origin == "folder" else name
        #: What must be equal for two sets of features to be comparable.
        self.made_with = {
            "weights": weights_digest(located.folder, config.encoder.layers if config else None)[:12],
            "pooling": pooling,
            "max_length": str(layout.max_length),
            "segments": str(layout.segment_ids).lower(),
            "tidy": str(layout.tidy).lower(),
            **({} if layout.turns is None else {"turns": str(layout.turns)}),
            "dtype": precision,
        }

    @classmethod
    def shared(cls, encoder: str | Path | None = None, **options: Any) -> FrozenFeatures:
        """The same, loaded once for all metrics that use it; a pair that two of them need is encoded once."""
        key = (str(encoder), *(f"{name}={options[name]}" for name in sorted(options)))
        loaded = cls._loaded.get(key)
        if loaded is None:
            loaded = cls._loaded[key] = cls(encoder, **options)
        return loaded

    def of(self, pairs: Sequence[Exchange], *, progress: bool = False) -> FeatureSet:
        """Features of all pairs, in their order."""
        encoded = self.encoder.encode(pairs, progress=progress)
        texts = [digest([*pair.context, pair.response]) for pair in pairs]
        contexts = [digest(pair.context) for pair in pairs]
        return FeatureSet(encoded.rows, np.array(texts, np.uint64), np.array(contexts, np.uint64), encoded.cut)

    def stream(self, pairs: Iterable[Exchange]) -> Iterator[NDArray[np.float32]]:
        """Block after block of features, for more pairs than fit into memory."""
        for encoded in self.encoder.stream_chunks(pairs):
            yield encoded.rows


def _plain(folder: Path) -> tuple[Any, Any, PairFormat]:
    """A pretrained encoder, its tokenizer, and pairs as BERT reads them."""
    tokenizer = load_tokenizer(folder, PairFormat())
    model: Any = load_encoder(folder, len(tokenizer))
    segments = (getattr(model.config, "type_vocab_size", 0) or 0) > 1
    return model, tokenizer, PairFormat(max_length=_MAX_LENGTH, segment_ids=segments)


def _tuned(folder: Path) -> tuple[Any, Any, PairFormat]:
    """The encoder of a trained checkpoint, its adapter merged, and pairs as it learned to read them."""
    approach = CheckpointConfig.read(folder).approach
    network = network_class(approach).from_pretrained(folder, device="cpu")
    return getattr(network, network.encoders[0]), network.tokenizer, network.config.layout
