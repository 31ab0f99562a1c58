"""How many pairs a second a training step takes, and what of it is arithmetic that cannot be spared.

    python performance/training_steps.py                # two rounds of three steps for every way
    python performance/training_steps.py --rounds 5

A step of the trunk's recipe: 12 contexts with 6 replies each, the selection loss, adapters of rank 32 on all layers,
no dropout, the first token of the last layer only. Ways, by turns and in processor time: PEFT's layers over one
rectangle of tokens; ours (`dialeval.engine.lora`) over one; ours over groups of like lengths, as the recipes train.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import torch
from pages import table
from rich.console import Console
from rows import generated
from torch import Tensor

from dialeval.approaches.density import DensityNetwork, response_selection_loss
from dialeval.engine.bert import compute_first_token_only
from dialeval.engine.encoding import has_fast_bfloat16
from dialeval.engine.formatting import PairFormat
from dialeval.engine.lora import quicken_adapters
from dialeval.exchange import Exchange
from dialeval.weights.config import CheckpointConfig, EncoderSource, LoraSettings
from dialeval.weights.find import BASE_ENCODER

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "training"))

from stages import Collator, with_dropout

FIRST = "PEFT's layers"
CONTEXTS, REPLIES, LENGTH, RANK = 12, 6, 64, 32


class Way:
    """A network that trains in one of the ways."""

    def __init__(self, *, bfloat16: bool, quick: bool, groups: bool) -> None:
        torch.manual_seed(0)
        config = CheckpointConfig(
            "density",
            name="measured",
            encoder=EncoderSource(id=BASE_ENCODER, tuning="lora"),
            layout=PairFormat(max_length=LENGTH, separator="[unused0]"),
            architecture={"bias": True},
        )
        made = DensityNetwork.create(config, lora=LoraSettings(rank=RANK, alpha=2 * RANK)).train()
        self.network = with_dropout(made, {"encoder_dropout": 0.0})
        plain: Any = self.network.encoder.get_base_model()  # type: ignore[operator]
        compute_first_token_only(plain)
        if quick:
            quicken_adapters(plain)
        if bfloat16:
            plain.set_attn_implementation("eager")
        self.bfloat16, self.groups = bfloat16, groups
        self.collator = Collator(self.network, LENGTH)
        self.optimizer = torch.optim.AdamW([one for one in self.network.parameters() if one.requires_grad], lr=1e-4)

    def step(self, pairs: list[Exchange]) -> None:
        """Forth and back, and the weights moved."""

        def forward(tensors: dict[str, Tensor]) -> Tensor:
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=self.bfloat16):
                output: Tensor = self.network(**tensors)
            return output

        output = self.collator.rows_of(forward, pairs) if self.groups else forward(self.collator(pairs))
        response_selection_loss(output[:, -1].float().view(CONTEXTS, REPLIES)).backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        self.optimizer.zero_grad()

    def operations(self, pairs: list[Exchange]) -> float:
        """Multiplications and additions that a step needs: through fixed weights forth and back, adapters once more."""
        shape: Any = self.network.encoder.config
        width, inner, layers = shape.hidden_size, shape.intermediate_size, shape.num_hidden_layers
        tokens = sum(len(pair.ids) for pair in self.collator.tokenizer.pairs(pairs))
        fixed = 4 * width * width + 2 * width * inner
        adapters = RANK * (4 * 2 * width + 2 * (width + inner))
        # Of the last layer every token gives a key and a value only.
        whole = layers - 1 + 2 * width * width / fixed
        return 2 * tokens * whole * (2 * fixed + 3 * adapters)


def batches(count: int) -> Iterator[list[Exchange]]:
    """Contexts of everyday lengths, each with as many replies as a step has."""
    rows = iter(generated(count * CONTEXTS * REPLIES, seed=3))
    for _ in range(count):
        made: list[Exchange] = []
        for _ in range(CONTEXTS):
            candidates = [next(rows) for _ in range(REPLIES)]
            made += [Exchange(candidates[0].context, one.response) for one in candidates]
        yield made


def processor_time(action: Callable[[], Any]) -> float:
    """Seconds of the processor."""
    started = time.process_time()
    action()
    return time.process_time() - started


def product_rate(dtype: torch.dtype) -> float:
    """Operations per second of processor time that products of this encoder's shapes reach."""
    tokens, work, spent = CONTEXTS * REPLIES * LENGTH, 0.0, 0.0
    for inward, outward, count in ((384, 384, 4), (384, 1536, 1), (1536, 384, 1)):
        rows, weight = torch.randn(tokens, inward, dtype=dtype), torch.randn(outward, inward, dtype=dtype)
        spent += count * min(
            processor_time(lambda rows=rows, weight=weight: torch.nn.functional.linear(rows, weight))  # type: ignore[misc]
            for _ in range(6)
        )
        work += count * 2 * tokens * inward * outward
    return work / spent


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=2, help="default: %(default)s")
    parser.add_argument("--steps", type=int, default=3, help="of a round (default: %(default)s)")
    arguments = parser.parse_args()
    console = Console(stderr=True)
    known = {"float32": False, **({"bfloat16": True} if has_fast_bfloat16(torch.device("cpu")) else {})}
    ways = {
        (name, what): Way(bfloat16=bfloat16, quick=quick, groups=groups)
        for name, bfloat16 in known.items()
        for what, quick, groups in (
            (FIRST, False, False),
            ("one pass", True, False),
            ("one pass, like lengths", True, True),
        )
    }
    pairs = list(batches(arguments.steps))
    taken: dict[tuple[str, str], list[float]] = {way: [] for way in ways}
    for turn in range(arguments.rounds + 1):
        for key, way in ways.items():
            seconds = processor_time(lambda way=way: [way.step(one) for one in pairs])  # type: ignore[misc]
            if turn:  # the first round warms up
                taken[key].append(seconds)
                console.print(*key, f"{seconds:.1f} s", markup=False)
    rows = []
    for (name, what), way in ways.items():
        middle = median(taken[name, what])
        rate = product_rate(torch.bfloat16 if way.bfloat16 else torch.float32)
        rows.append(
            (
                f"{name}, {what}",
                f"{arguments.steps * CONTEXTS * REPLIES / middle:.1f}",
                f"{median(taken[name, FIRST]) / middle:.2f}",
                f"{sum(map(way.operations, pairs)) / middle / rate:.0%}",
            )
        )
    header = ("way", "pairs per processor second", "times as fast as PEFT's layers", "share of the product rate")
    print(table(header, rows))


if __name__ == "__main__":
    main()
