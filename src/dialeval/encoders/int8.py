"""Encoders whose matrix products run on whole numbers of eight bits: the fastest way on CPUs without fast bfloat16.

Weights have one step per output channel, coarser where there are no VNNI units (`weights_together`). Each token of an
input has its own, made from the largest of its numbers, so that nothing depends on the tokens beside it. Sums of whole
numbers are exact in any order; with batches of one width (`PairEncoder.same_widths`) the features of a row are
therefore the same to the last bit in any company.

The products are oneDNN's, as torch brings them. They take unsigned inputs with the zero in the middle, and give
float32 with the weights' steps in it; what is left for each token is one multiplication, which adds the bias or the
residual as well. Rows go through in blocks, so that everything between two products stays in the processor's cache.
Attention, LayerNorm and embeddings stay in float32.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import pad, scaled_dot_product_attention

from dialeval.encoders.base import Layer, plain_layers
from dialeval.encoders.bert import BertEncoder

#: Rows that go through a layer together: few enough for their widest activations to stay in the processor's cache.
_BLOCK = 512
#: Zero and the largest step to either side, for numbers of both signs.
_MIDDLE, _SIDE = 128, 127
#: GELU never falls below -.17: most of the steps are for what lies above zero.
_GELU_FLOOR, _GELU_ZERO = 0.17, 32
#: A row of zeros has a step, too.
_TINY = 1e-12
#: A few channels behind a LayerNorm hold numbers ten times as large as all others, for which every step would have to
#: be as coarse. So many of them are multiplied in float32.
_LARGE = 32
#: Times as fast as in float32 from which on int8 is worth its digits.
_GAIN = 1.2
#: float32 products of fewer rows, and attention for a single token, add up in another order, which depends on how many
#: rows and threads there are.
_FEWEST, _FEWEST_ASKING = 32, 2


def run_in_int8(encoder: nn.Module, samples: Mapping[str, Tensor]) -> bool:
    """From now on this encoder's layers run in int8; returns whether that could be done.

    Ordinary BERTs can. No weight is touched, so that the encoder is saved and copied as before. `samples` are inputs
    of the encoder that show which channels hold large numbers.
    """
    if not isinstance(encoder, BertEncoder):
        return False
    layers = plain_layers(encoder)
    large = _large_channels(encoder, layers, samples)
    encoder.quick_layers = [Int8Layer(layer, *channels) for layer, channels in zip(layers, large, strict=True)]
    return True


def _large_channels(encoder: nn.Module, layers: Sequence[Layer], samples: Mapping[str, Tensor]) -> list[list[Tensor]]:
    """Of each layer, before attention and between the halves: the channels with the largest numbers."""
    channels: list[list[Tensor]] = [[] for _ in layers]
    handles = []
    for number, layer in enumerate(layers):

        def look(_: nn.Module, given: tuple[Tensor, ...], number: int = number) -> None:
            largest = given[0].flatten(0, -2).abs().amax(0)
            channels[number].append(largest.topk(min(_LARGE, len(largest))).indices.sort().values)

        handles += [layer.key.register_forward_pre_hook(look), layer.up.register_forward_pre_hook(look)]
    try:
        with torch.no_grad():
            encoder(**samples)
    finally:
        for handle in handles:
            handle.remove()
    return channels


class _Rows(NamedTuple):
    """Rows of whole numbers: what stands for zero in them, and the step of each row, `[rows, 1]`."""

    whole: Tensor
    zero: int
    steps: Tensor

    @classmethod
    def of(cls, rows: Tensor) -> _Rows:
        """Rows of numbers of both signs."""
        steps = rows.abs().amax(1, keepdim=True).clamp_(min=_TINY).div_(_SIDE)
        whole = (rows / steps).round_().to(torch.int8)
        # To int8 torch converts with vector instructions and to uint8 without: the highest bit moves the zero.
        return cls(whole.bitwise_xor_(-_MIDDLE).view(torch.uint8), _MIDDLE, steps)

    @classmethod
    def of_gelu(cls, rows: Tensor) -> _Rows:
        """Rows that GELU gave, which are changed: hardly anything lies below zero, so that the steps can be finer."""
        steps = rows.amax(1, keepdim=True).div_(255 - _GELU_ZERO).clamp_(min=_GELU_FLOOR / _GELU_ZERO)
        whole = rows.div_(steps).round_().sub_(_MIDDLE - _GELU_ZERO).to(torch.int8)
        return cls(whole.bitwise_xor_(-_MIDDLE).view(torch.uint8), _GELU_ZERO, steps)


@dataclass(frozen=True)
class Product:
    """A matrix product and its bias; what leaves the whole numbers lacks the steps of the rows, which come last."""

    packed: Tensor
    steps: Tensor
    zeros: Tensor
    bias: Tensor
    #: Of channels with large numbers: which they are, their weights, and a row with a zero for each and ones else.
    large: Tensor
    large_weight: Tensor
    others: Tensor

    @classmethod
    def of(cls, linears: Sequence[Any], large: Tensor | None = None) -> Product:
        """The linear layers that read one input, as one product."""
        weight = torch.cat([linear.weight.detach() for linear in linears])
        large = torch.empty(0, dtype=torch.long) if large is None else large
        large_weight = weight[:, large].T.contiguous()
        others = torch.ones(weight.shape[1]).index_fill_(0, large, 0.0)
        weight = weight * others
        groups = pad(weight.abs(), (0, weight.shape[1] % 2)).reshape(len(weight), -1, weights_together() or 1)
        steps = groups.sum(2).amax(1).clamp_(min=_TINY) / _SIDE
        whole = (weight / steps[:, None]).round_().to(torch.int8)
        packed = torch.ops.onednn.qlinear_prepack(whole, [_BLOCK, weight.shape[1]])
        bias = torch.cat([linear.bias.detach() for linear in linears])
        return cls(packed, steps, torch.zeros(len(steps)).int(), bias, large, large_weight, others)

    def __call__(self, inputs: Tensor, out: Tensor | None = None) -> Tensor:
        """The product of float32 rows, in float32."""
        rows = _Rows.of(inputs * self.others)
        large = inputs.index_select(1, self.large)
        if len(large) < _FEWEST:
            large = pad(large, (0, 0, 0, _FEWEST - len(large)))
        rest = torch.addmm(self.bias, large, self.large_weight)[: len(inputs)]
        product = _multiplied(rows.whole, rows.zero, self.packed, self.steps, self.zeros)
        return torch.addcmul(rest, product, rows.steps, out=product if out is None else out)

    def added_to(self, others: Tensor, rows: _Rows) -> Tensor:
        """The product of whole rows plus what goes around it; no channel is taken to be large."""
        product = _multiplied(rows.whole, rows.zero, self.packed, self.steps, self.zeros)
        return torch.addcmul(others, product, rows.steps, out=product).add_(self.bias)


def _multiplied(whole: Tensor, zero: int, packed: Tensor, steps: Tensor, zeros: Tensor) -> Tensor:
    """Whole rows less their zero, times packed weights, in float32 with the weights' steps in it."""
    product: Tensor = torch.ops.onednn.qlinear_pointwise(
        whole, 1.0, zero, packed, steps, zeros, None, 1.0, 0, torch.float32, "none", [], ""
    )
    return product


class Int8Layer:
    """A layer whose products run in int8; attention and norms stay in float32."""

    def __init__(self, layer: Layer, before: Tensor, between: Tensor) -> None:
        self.layer = layer
        self.inward = Product.of((layer.query, layer.key, layer.value), before)
        self.outward, self.down = Product.of((layer.output,)), Product.of((layer.down,))
        self.up = Product.of((layer.up,), between)

    def __call__(self, states: Tensor, asking: Tensor, mask: Tensor | None, dropout: float = 0.0) -> Tensor:
        """As `Layer` has it; dropout is for training, which is never in int8."""
        query, key, value = self._heads(states)
        asks = asking.shape[1]
        if asks < states.shape[1]:
            # One row of the mask for each token that asks.
            query = query[:, :, :_FEWEST_ASKING]
            mask = None if mask is None else mask[:, :, :1].expand(-1, -1, _FEWEST_ASKING, -1)
        seen = scaled_dot_product_attention(query, key, value, attn_mask=mask)[:, :, :asks]
        flat = asking.reshape(-1, asking.shape[-1])
        seen = seen.transpose(1, 2).reshape(flat.shape)
        output = torch.empty_like(flat)
        for block in _blocks(len(flat)):
            attended = self.layer.norm(self.outward.added_to(flat[block], _Rows.of(seen[block])))
            raised = self.up(attended)
            torch.ops.aten.gelu.out(raised, out=raised)
            output[block] = self.layer.last_norm(self.down.added_to(attended, _Rows.of_gelu(raised)))
        return output.view(asking.shape)

    def _heads(self, states: Tensor) -> Tensor:
        """Query, key and value, each `[batch, heads, length, width of a head]`."""
        batch, length, width = states.shape
        flat = states.reshape(batch * length, width)
        asked = flat.new_empty(batch * length, 3 * width)
        for block in _blocks(len(flat)):
            self.inward(flat[block], out=asked[block])
        return asked.view(batch, length, 3, self.layer.heads, -1).permute(2, 0, 3, 1, 4)


def _blocks(count: int) -> Iterator[slice]:
    return (slice(start, start + _BLOCK) for start in range(0, count, _BLOCK))


@cache
def weights_together() -> int:
    """How many neighbouring weights may come to 127 together, so that products are exact; 0 where there are none here.

    Without VNNI units two products are added up in sixteen bits, which hold 255 times 128.
    """
    count = 64
    try:
        for together in (1, 2):
            weights = torch.tensor([_SIDE] + [0] * (together - 1)).repeat(count // together)[None].to(torch.int8)
            packed = torch.ops.onednn.qlinear_prepack(weights, [1, count])
            largest = torch.full((1, count), 255, dtype=torch.uint8)
            product = _multiplied(largest, 0, packed, torch.ones(1), torch.zeros(1).int())
            if product.item() == 255 * _SIDE * count / together:
                return together
    except (AttributeError, RuntimeError, TypeError):
        pass
    return 0


@cache
def int8_gain() -> float:
    """How many times as fast as in float32 a layer's widest product is, the making of whole numbers included."""
    linear, rows = nn.Linear(384, 1536), torch.ones(_BLOCK, 384)
    with torch.inference_mode():
        product = Product.of([linear])
        return times_as_fast(lambda: product(rows), lambda: linear(rows))


def times_as_fast(quick: Callable[[], object], plain: Callable[[], object], tries: int = 16) -> float:
    """How many times as fast the first is: the quickest of some tries of each, in turn.

    By one thread: several wait for each other where something else runs on the machine, too.
    """
    seconds: dict[Callable[[], object], float] = {}
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        for action in (quick, plain) * tries:
            started = time.perf_counter()
            action()
            seconds[action] = min(time.perf_counter() - started, seconds.get(action, math.inf))
    finally:
        torch.set_num_threads(threads)
    return seconds[plain] / seconds[quick]


def has_fast_int8() -> bool:
    """Whether products of whole numbers are exact here, and faster than those in float32."""
    return weights_together() > 0 and int8_gain() > _GAIN
