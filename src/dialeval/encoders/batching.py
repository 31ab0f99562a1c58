"""The encoder engine: tokenise, drop repeats, batch by token budget, run, restore the order.

Every metric that reads text with a transformer goes through here, so that one row's value never
depends on the rows beside it beyond float rounding (batches change the order of summation; in
float32 features move by less than 1e-5).
"""

from __future__ import annotations

import warnings
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass
from functools import cache, partial
from itertools import islice
from typing import Any, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import pad

from dialeval.core.exchange import Exchange
from dialeval.encoders.base import first_token
from dialeval.encoders.int8 import has_fast_int8, run_in_int8, times_as_fast, weights_together
from dialeval.encoders.layout import PairTokenizer, TokenPair
from dialeval.io.files import progress_bar

Segment = Literal["pair", "context"]
Precision = Literal["float32", "bfloat16", "int8"]

#: Rows tokenised and sorted together: large enough to fill length buckets, small enough to stay in memory.
CHUNK_ROWS = 8192
#: Results kept so that a pair seen in an earlier chunk is not encoded again.
REMEMBERED_BYTES = 64 * 2**20
#: Padded tokens in one batch. On a CPU the widest activations then stay in its cache: large batches are slower
#: there, and so are those too small to keep the cores busy. A graphics card takes fewer where its memory asks for it.
DEFAULT_BATCH_TOKENS = {"cpu": 2048, "cuda": 131_072, "mps": 16_384}
#: Activations of a token that are alive at once, in vectors of the encoder's width and four bytes a number.
_ALIVE = 24


@dataclass(frozen=True)
class Encoded:
    """One result row per exchange, and which exchanges lost tokens to the length limit."""

    rows: NDArray[np.float32]
    cut: NDArray[np.bool_]


def choose_device(device: str | torch.device | None = None) -> torch.device:
    """The device asked for; by default the first GPU there is, else the CPU."""
    if device is not None and str(device) != "auto":
        try:
            chosen = torch.device(device)
            # Read back, because one device (meta) takes tensors and holds no numbers.
            torch.zeros(1, device=chosen).item()
        except (RuntimeError, AssertionError, TypeError, ValueError) as error:
            raise ValueError(f"device {device!r} is not available here: {str(error).splitlines()[0]}") from None
        return chosen
    if torch.cuda.is_available():
        return torch.device("cuda")
    if torch.backends.mps.is_available():
        return torch.device("mps")
    return torch.device("cpu")


def gains_by_bfloat16(device: torch.device) -> bool:
    """Whether bfloat16 is faster than float32: on a GPU that has it, and on a CPU whose products are.

    Of CPUs with the same instructions (AVX-512 BF16) some reach half of the rate of float32 and some nearly three times
    as much, so it is measured, once.
    """
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    return device.type == "cpu" and bfloat16_gain() > _GAIN


#: Times as fast as in float32 from which on bfloat16 is worth its digits; products are not all of the work.
_GAIN = 1.5


@cache
def bfloat16_gain() -> float:
    """How many times as fast a product of an encoder's size is in bfloat16: the quickest of some tries of each."""
    plain, quick = (
        partial(nn.functional.linear, torch.ones(512, 384, dtype=dtype), torch.ones(1536, 384, dtype=dtype))
        for dtype in (torch.float32, torch.bfloat16)
    )
    return times_as_fast(quick, plain)


def choose_dtype(dtype: str | torch.dtype, device: torch.device) -> torch.dtype:
    """`float32` is the reference; `auto` takes bfloat16 where it is faster."""
    if dtype == "auto":
        return torch.bfloat16 if gains_by_bfloat16(device) else torch.float32
    known = {"float32": torch.float32, "bfloat16": torch.bfloat16}
    for name, value in known.items():
        if dtype in (name, value):
            return value
    raise ValueError(f"dtype is {dtype!r}; it is 'float32', 'bfloat16' or 'auto'")


def choose_precision(dtype: str | torch.dtype, device: torch.device) -> Precision:
    """In what to score: `auto` takes bfloat16 where it is fast, else int8 on a CPU where that is, else float32.

    Where both are fast they take turns in being the faster one, and bfloat16 has the nearer values.
    """
    if dtype in ("int8", torch.int8):
        if device.type != "cpu":
            raise ValueError(f"int8 runs on the CPU, not on {device}; use bfloat16 there, or device='cpu'")
        if not weights_together():
            raise ValueError("this CPU, or this torch, has no exact products of whole numbers; use float32")
        if not has_fast_int8():
            warnings.warn("int8 is no faster than float32 on this machine; use dtype='auto'", stacklevel=2)
        return "int8"
    if dtype == "auto" and device.type == "cpu" and not gains_by_bfloat16(device) and has_fast_int8():
        return "int8"
    try:
        chosen: Precision = "bfloat16" if choose_dtype(dtype, device) is torch.bfloat16 else "float32"
    except ValueError:
        raise ValueError(f"dtype is {dtype!r}; it is 'float32', 'bfloat16', 'int8' or 'auto'") from None
    if chosen == "bfloat16" and dtype != "auto" and not gains_by_bfloat16(device):
        warnings.warn("bfloat16 is slower than float32 on this machine; use dtype='auto'", stacklevel=2)
    return chosen


def weights_dtype(precision: Precision) -> torch.dtype:
    """What the weights are kept in; whole numbers are made from them where they are used."""
    return torch.bfloat16 if precision == "bfloat16" else torch.float32


#: Small talk to find out where an encoder's numbers are large; any other would do.
_SAMPLES = (
    Exchange(("Hi there! Did you have a good weekend?",), "Yes, we went to the sea. It rained, though."),
    Exchange(("I lost my job last week...", "Oh no, what happened?"), "They closed the whole office in 2019."),
    Exchange(("Which train goes to the airport?",), "I have three cats and I like pizza :)"),
    Exchange(("", "What do you do for a living?"), "ok"),
)


def speed_up(
    encoders: Sequence[Any], precision: Precision, tokenizer: PairTokenizer, *, asked: str | torch.dtype
) -> Precision:
    """Let encoders of one kind score in the fastest way of this precision; returns the one they use.

    Where int8 was chosen by `auto` and the layers are of a kind that cannot, that is float32.
    """
    if precision != "int8":
        return precision
    samples = collate(tokenizer.pairs(_SAMPLES), tokenizer.pad_id, segment_ids=tokenizer.layout.segment_ids)
    if all(run_in_int8(encoder, samples) for encoder in encoders):
        return "int8"
    if asked != "auto":
        raise ValueError("this encoder's layers are of a kind that does not run in int8; use float32")
    return "float32"


def default_batch_tokens(device: torch.device, width: int) -> int:
    """The padded tokens of a batch for an encoder of a width; on a graphics card at most what half of it can hold."""
    usual = DEFAULT_BATCH_TOKENS.get(device.type, 4096)
    if device.type != "cuda":
        return usual
    free, _ = torch.cuda.mem_get_info(device)
    return max(1024, min(usual, free // 2 // (_ALIVE * 4 * width)))


#: Rows that go through heads at once.
_HEAD_ROWS = 64


class PairEncoder:
    """Runs a network over exchanges and returns one row of numbers for each.

    The network maps `(input_ids, attention_mask, token_type_ids)` to a `[batch, width]` tensor, and `heads` map that to
    the rows; what the numbers mean (features, logits, both) is the business of the approach that made them.

    `same_widths` puts only rows of one padded width into a batch. Rows then go through sums of the same length
    whatever is beside them, which int8 needs: its rounding makes steps out of differences in the last bit.
    """

    def __init__(
        self,
        network: nn.Module,
        tokenizer: PairTokenizer,
        *,
        heads: Callable[[Tensor], Tensor] | None = None,
        segment: Segment = "pair",
        batch_tokens: int | None = None,
        deduplicate: bool = True,
        same_widths: bool = False,
        allow_nan: bool = False,
    ) -> None:
        self.network = network.eval()
        self.heads = heads
        self.tokenizer = tokenizer
        self.segment = segment
        self.device = next(network.parameters()).device
        if batch_tokens is None:
            batch_tokens = default_batch_tokens(self.device, _width(network))
        self.batch_tokens = batch_tokens
        if not 1 <= batch_tokens < float("inf"):
            raise ValueError(f"batch_tokens is {batch_tokens}; it must be positive")
        self.deduplicate = deduplicate
        self.same_widths = same_widths
        #: For training, which tells by itself when a network has diverged.
        self.allow_nan = allow_nan
        #: Whether the next chunk is tokenised while this one is encoded. A CPU has no hands free for that.
        self.ahead = self.device.type == "cuda"
        self._remembered: OrderedDict[bytes, NDArray[np.float32]] = OrderedDict()

    def with_heads(self, heads: Callable[[Tensor], Tensor] | None) -> Self:
        """The same encoder under other heads; what one of both has encoded the other remembers."""
        other = copy(self)
        other.heads = heads
        return other

    def forget(self) -> None:
        """Drop remembered results, to measure or to free memory."""
        self._remembered.clear()

    def encode(self, exchanges: Sequence[Exchange], *, progress: bool = False) -> Encoded:
        """All rows at once, in the order of the exchanges."""
        parts = list(self.stream_chunks(exchanges, progress=progress, total=len(exchanges)))
        if not parts:
            raise ValueError("there are no rows to encode")
        return Encoded(np.concatenate([part.rows for part in parts]), np.concatenate([part.cut for part in parts]))

    def stream_chunks(
        self, exchanges: Iterable[Exchange], *, progress: bool = False, total: int | None = None
    ) -> Iterator[Encoded]:
        """Chunk after chunk in bounded memory, also for a stream that never ends."""
        iterator = iter(exchanges)
        with progress_bar("encoding", total, shown=progress) as advance, ThreadPoolExecutor(1) as other:
            pairs = self._tokenised(list(islice(iterator, CHUNK_ROWS)))
            while pairs:
                if self.ahead:
                    waiting = other.submit(self._tokenised, list(islice(iterator, CHUNK_ROWS)))
                    yield self._encode_chunk(pairs, advance)
                    pairs = waiting.result()
                else:
                    yield self._encode_chunk(pairs, advance)
                    pairs = self._tokenised(list(islice(iterator, CHUNK_ROWS)))

    def _tokenised(self, chunk: Sequence[Exchange]) -> list[TokenPair]:
        lay_out = self.tokenizer.pairs if self.segment == "pair" else self.tokenizer.contexts
        return lay_out(chunk) if chunk else []

    def _encode_chunk(self, pairs: Sequence[TokenPair], advance: Callable[[int], None]) -> Encoded:
        keys = [pair.key for pair in pairs]
        if not self.deduplicate:
            keys = [key + row.to_bytes(8, "little") for row, key in enumerate(keys)]
        rows, of_key = Counter(keys), dict(zip(keys, pairs, strict=True))
        known = {key: self._remembered[key] for key in rows if key in self._remembered}
        advance(sum(rows[key] for key in known))
        fresh = [key for key in rows if key not in known]
        lengths = [len(of_key[key].ids) for key in fresh]
        for places in token_batches(lengths, self.batch_tokens, step=_STEP, same_widths=self.same_widths):
            batch = [fresh[place] for place in places]
            values = self._run([of_key[key] for key in batch])
            known |= dict(zip(batch, values, strict=True))
            if self.deduplicate:
                self._remember(batch, values)
            advance(sum(rows[key] for key in batch))
        encoded = np.stack([known[key] for key in keys])
        if self.heads is not None:
            encoded = self._through_heads(torch.from_numpy(encoded), self.heads)
        return Encoded(encoded, np.array([pair.cut for pair in pairs]))

    def _through_heads(self, states: Tensor, heads: Callable[[Tensor], Tensor]) -> NDArray[np.float32]:
        """In blocks of one size, so that a row gives the same to the last bit in any company."""
        with torch.inference_mode():
            blocks = [pad(block, (0, 0, 0, _HEAD_ROWS - len(block))) for block in torch.split(states, _HEAD_ROWS)]
            rows = torch.cat([heads(block.to(self.device)).float().cpu() for block in blocks])
        outputs: NDArray[np.float32] = rows[: len(states)].numpy()
        return outputs

    def _run(self, pairs: Sequence[TokenPair]) -> NDArray[np.float32]:
        tensors = collate(pairs, self.tokenizer.pad_id, segment_ids=self.tokenizer.layout.segment_ids)
        if self.device.type == "cuda":  # only what the system cannot page out is copied while the card computes
            tensors = {name: tensor.pin_memory() for name, tensor in tensors.items()}
        on_device = {name: tensor.to(self.device, non_blocking=True) for name, tensor in tensors.items()}
        with torch.inference_mode():
            output: Tensor = self.network(**on_device)
        rows: NDArray[np.float32] = output.float().cpu().numpy()
        if not self.allow_nan and not np.isfinite(rows).all():
            raise ValueError("the network gives values that are no numbers; its weights are damaged: fetch them again")
        return rows

    def _remember(self, keys: Sequence[bytes], values: NDArray[np.float32]) -> None:
        for key, value in zip(keys, values, strict=True):
            # A copy: a view would keep its whole batch alive.
            self._remembered[key] = value.copy()
            while len(self._remembered) * (value.nbytes + len(key) + 200) > REMEMBERED_BYTES:
                self._remembered.popitem(last=False)


def token_batches(
    lengths: Sequence[int], batch_tokens: int, *, step: int = 1, same_widths: bool = False
) -> Iterator[list[int]]:
    """Places of rows in batches that stay within a budget when padded to a multiple of `step`, each in one of them.

    The longest come first, so that a lack of memory shows at once.
    """
    batch: list[int] = []
    widest = 0
    for place in sorted(range(len(lengths)), key=lambda place: -lengths[place]):
        width = _padded(lengths[place], step)
        if batch and ((len(batch) + 1) * widest > batch_tokens or (same_widths and width < widest)):
            yield batch
            batch = []
        widest = widest if batch else width
        batch.append(place)
    if batch:
        yield batch


def _width(network: nn.Module) -> int:
    """How wide the activations are, by the widest table that a network looks words up in."""
    return max((module.embedding_dim for module in network.modules() if isinstance(module, nn.Embedding)), default=1024)


def collate(pairs: Sequence[TokenPair], pad_id: int, *, segment_ids: bool) -> dict[str, Tensor]:
    """Pad pairs to one rectangle of tensors, as the encoder's forward takes them."""
    shape = (len(pairs), _padded(max(len(pair.ids) for pair in pairs), _STEP))
    ids, mask, types = np.full(shape, pad_id), np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    for row, pair in enumerate(pairs):
        length = len(pair.ids)
        ids[row, :length] = pair.ids
        mask[row, :length] = 1
        if segment_ids:
            types[row, pair.boundary : length] = 1
    tensors = {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}
    return {name: torch.from_numpy(tensor) for name, tensor in tensors.items()}


#: Of widths: fewer distinct shapes, aligned matrix tiles.
_STEP = 8


def _padded(length: int, step: int) -> int:
    return -(-length // step) * step


class FirstToken(nn.Module):
    """What networks on one encoder have in common."""

    def __init__(self, encoder: Any) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None = None) -> Tensor:
        """See `first_token`."""
        return first_token(self.encoder, input_ids, attention_mask, token_type_ids)
