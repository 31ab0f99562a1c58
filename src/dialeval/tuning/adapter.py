"""The deeper way: the adapter and the heads learn from the opinions, too."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dialeval.approaches.judge import (
    FEATURES,
    HEADS,
    JudgeNetwork,
    ranking_loss,
    soft_label_loss,
    turn_features,
    turn_ranks,
)
from dialeval.approaches.row_signs import TurnSigns, read_signs
from dialeval.approaches.stack import Matrix, Vector
from dialeval.engine.encoding import PairEncoder, collate, has_fast_bfloat16
from dialeval.engine.formatting import PairTokenizer
from dialeval.engine.lora import quicken_adapters
from dialeval.engine.speedups import compute_first_token_only
from dialeval.exchange import Exchange
from dialeval.tuning.crossing import divide
from dialeval.tuning.opinions import Opinions, Preferences
from dialeval.weights.find import CheckpointError

#: The heads whose mean logit is to rank replies as people do.
RELEVANCE = ("valid", "follows", "fits")
#: Features that the network computes; the others are signs of the words, which no training moves.
LEARNED = tuple(FEATURES.index(name) for name in (*HEADS, "human_like"))
BATCH = 32
#: Opinions that pass the network in one training: a few times all of them, within these bounds.
ROUNDS, FEWEST_SEEN, MOST_SEEN = 3, 1500, 6000
WARMUP = 0.1
LEARNING_RATE = 1e-4
#: Every opinion is judged by a network that has not seen it; that many are trained for it, and then one on all.
FOLDS = 3

Advance = Callable[[int], None]


def open_network(checkpoint: str | Path | None, device: str | None) -> JudgeNetwork:
    """The checkpoint's network with its adapter apart, so that it can be trained and saved."""
    return JudgeNetwork.from_pretrained(checkpoint, device=device, trainable=True)


def trained(
    checkpoint: str | Path | None, opinions: Opinions, chosen: NDArray[np.intp], *, device: str | None, seed: int,
    advance: Advance,
) -> JudgeNetwork:  # fmt: skip
    """The checkpoint's network after it has learned from some of the opinions."""
    network = open_network(checkpoint, device)
    if network.config.encoder.tuning != "lora":
        raise CheckpointError(f"{checkpoint} has no adapter to train; tune it without --deep")
    with torch.random.fork_rng(), _quick(network) as autocast:
        torch.manual_seed(seed)
        network.train()
        learning = [parameter for parameter in network.parameters() if parameter.requires_grad]
        steps = seen(len(chosen)) // BATCH
        optimizer = torch.optim.AdamW(learning, lr=LEARNING_RATE, weight_decay=0.01)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: _up_and_down(step, steps))
        tokenizer = PairTokenizer(network.tokenizer, network.config.layout)
        for batch, _ in zip(_batches(chosen, seed), range(steps), strict=False):
            replies = [opinions.exchanges[int(at)] for at in opinions.rows_of(batch)]
            tensors = collate(tokenizer.pairs(replies), tokenizer.pad_id, segment_ids=network.config.layout.segment_ids)
            device_of = next(network.parameters()).device
            with autocast():
                rows = network(**{name: tensor.to(device_of) for name, tensor in tensors.items()})
            loss = loss_of(rows[:, -len(HEADS) :].float(), opinions, batch)
            loss.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(learning, 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
            advance(1)
    # What will be saved is what was measured.
    network.round_adapters()
    return network.eval()


def loss_of(logits: Tensor, opinions: Opinions, batch: NDArray[np.intp]) -> Tensor:
    """Replies in the order of their ratings, or the preferred one of each pair above the other."""
    said = logits[:, [HEADS.index(name) for name in RELEVANCE]].mean(dim=1)
    targets = torch.as_tensor(opinions.targets[batch], dtype=said.dtype, device=said.device)
    if isinstance(opinions, Preferences):
        return soft_label_loss(said[: len(batch)] - said[len(batch) :], (1 + targets) / 2)
    return ranking_loss(said, targets, torch.ones_like(targets))


def seen(count: int) -> int:
    """How many opinions pass the network in one training."""
    return int(np.clip(ROUNDS * count, FEWEST_SEEN, MOST_SEEN))


def steps_in_all(count: int) -> int:
    """Steps of all trainings together, for the bar."""
    return FOLDS * (seen(count - count // FOLDS) // BATCH) + seen(count) // BATCH


def features_by(network: JudgeNetwork, exchanges: tuple[Exchange, ...]) -> Matrix:
    """The stack's features as this network sees them."""
    encoder = PairEncoder(network, PairTokenizer(network.tokenizer, network.config.layout))
    table = network.array("rarity")
    return turn_features(network, encoder.encode(exchanges).rows, [read_signs(row, table) for row in exchanges])


def moved_tables(tables: Matrix, before: Matrix, after: Matrix) -> Matrix:
    """Reference tables carried over to learned features that have changed, so that ranks keep their meaning.

    Where a quantile of these rows lay before, there lies the same quantile now; beyond them the scale goes on.
    """
    carried = tables.copy()
    for at in LEARNED:
        carried[at] = moved(tables[at], before[:, at], after[:, at])
    return carried


def moved(table: Vector, before: Vector, after: Vector) -> Vector:
    """One table."""
    grid = np.linspace(0, 1, 101)
    old, new = np.quantile(before, grid), np.quantile(after, grid)
    if old[0] == old[-1]:
        return table.copy()  # these rows tell nothing about how the feature has moved
    scale = (new[-1] - new[0]) / max(old[-1] - old[0], 1e-9)
    beyond = np.minimum(table - old[0], 0) + np.maximum(table - old[-1], 0)
    return np.asarray(np.interp(table, old, new) + scale * beyond)


def crossed_ranks(
    checkpoint: str | Path | None, opinions: Opinions, features: Matrix, read: Sequence[TurnSigns], tables: Matrix, *,
    device: str | None, seed: int, advance: Advance,
) -> Matrix:  # fmt: skip
    """Ranks of all replies, each by a network that has seen no opinion about its context."""
    folds = divide(opinions.groups, FOLDS, seed)
    ranks = np.empty_like(features)
    for fold in range(FOLDS):
        others, held = np.flatnonzero(folds != fold), opinions.rows_of(np.flatnonzero(folds == fold))
        network = trained(checkpoint, opinions, others, device=device, seed=seed + fold, advance=advance)
        after = features_by(network, opinions.exchanges)
        ranks[held] = turn_ranks(after, read, moved_tables(tables, features, after))[held]
    return ranks


def _batches(chosen: NDArray[np.intp], seed: int) -> Iterator[NDArray[np.intp]]:
    rng = np.random.default_rng(seed)
    while True:
        order = rng.permutation(chosen)
        # A short last batch is left out: it would weigh as much as a whole one.
        for start in range(0, len(order) - min(BATCH, len(order)) + 1, BATCH):
            yield order[start : start + BATCH]


def _up_and_down(step: int, steps: int) -> float:
    warm = max(1.0, WARMUP * steps)
    return min((step + 1) / warm, max(0.0, (steps - step) / max(1.0, steps - warm)))


@contextmanager
def _quick(network: JudgeNetwork) -> Iterator[Callable[[], Any]]:
    """bfloat16 where the device computes in it, and no more of the last layer than the token that is read.

    The backward pass of fused attention is slow in bfloat16 on a CPU, so plain products take its place there.
    """
    device = next(network.parameters()).device
    plain: Any = network.encoder
    plain = plain.get_base_model() if hasattr(plain, "get_base_model") else plain
    compute_first_token_only(plain)
    quicken_adapters(plain)
    is_fast = has_fast_bfloat16(device)
    fused = plain.config._attn_implementation
    if is_fast and device.type == "cpu":
        plain.set_attn_implementation("eager")
    try:
        yield lambda: torch.autocast(device.type, dtype=torch.bfloat16, enabled=is_fast)
    finally:
        plain.set_attn_implementation(fused)
