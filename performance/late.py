"""A cross-encoder whose lower layers read context and reply apart, so that a context is read once for all its replies.

    python performance/late.py --joint 2 --corpora CORPORA --out runs/late-2
    python performance/late.py --joint 1 --corpora CORPORA --out runs/late-1
    python performance/sharing.py --late runs/late-1/checkpoint,runs/late-2/checkpoint

Only the last `--joint` layers look from one to the other; below them nothing that is computed for a context depends on
the reply. It begins from DEB, learns from the rows that DEB learned from and from what DEB says of them, and is
validated as DEB is, on held-out contexts of DailyDialog++: no benchmark is read. The other options are those of
`training/deb.py`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

import dialeval
from dialeval.approaches.deb import Deb, DebNetwork, next_response_loss
from dialeval.corpora.grouped import LabelledRow, labelled_rows, mixed_item_batches
from dialeval.exchange import Exchange
from dialeval.metric import Judged
from dialeval.weights.find import find_checkpoint

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "training"))

from common import Recipe, Run, parse_arguments, plain_errors
from deb import discrimination, training_rows
from stages import Collator, Figures, Forward, network_rows, new_network, read_grouped, run_stage

#: Where the first token of a reply stands, whatever the length of its context.
_REPLY_PLACE = 64


# --- network ---------------------------------------------------------------------------------------


class LateNetwork(DebNetwork):
    """DEB's, with two kinds of layers. Segment ids tell whose a token is; the encoder itself never sees them."""

    approach = "late"

    @property
    def plain(self) -> Any:
        """The encoder below an adapter, if it has one."""
        encoder: Any = self.encoder
        return encoder.get_base_model() if hasattr(encoder, "get_base_model") else encoder

    def parts(self) -> tuple[list[nn.Module], list[nn.Module]]:
        """Layers that read apart, and those that read both."""
        layers, joint = list(self.plain.encoder.layer), int(self.config.architecture["joint"])
        return layers[:-joint], layers[-joint:]

    def embedded(self, ids: Tensor, places: Tensor) -> Tensor:
        """`[batch, length, width]` before the first layer."""
        known = self.plain.embeddings
        words = known.word_embeddings(ids) + known.token_type_embeddings(torch.zeros_like(ids))
        states: Tensor = known.LayerNorm(words + known.position_embeddings(places))
        return states

    def hidden(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> Tensor:
        """`[batch, length, width]`: last hidden states, all in one rectangle, as training needs them."""
        real, sides = attention_mask.bool(), token_type_ids
        places = torch.arange(input_ids.shape[1], device=input_ids.device)[None].expand_as(input_ids)
        begins = ((sides == 0) & real).sum(dim=1, keepdim=True)
        states = self.embedded(input_ids, torch.where(sides == 1, places - begins + _REPLY_PLACE, places))
        apart, joint = self.parts()
        # Padding counts to the context and is seen by nobody; it may see the context, so that no row is empty.
        seen = real[:, None, None] & (sides[:, None, :, None] == sides[:, None, None])
        for layer in apart:
            states = _through(layer, states, seen)
        for layer in joint:
            states = _through(layer, states, real[:, None, None].expand(-1, 1, real.shape[1], -1))
        return states.float()


def _through(layer: nn.Module, states: Tensor, mask: Tensor | None) -> Tensor:
    output: Any = layer(states, mask)
    found: Tensor = output[0] if isinstance(output, tuple) else output
    return found


# --- metric ----------------------------------------------------------------------------------------


class Late(Deb):
    """Scores as DEB does, with every context and every reply read once."""

    network_class = LateNetwork
    network: LateNetwork

    def judge(self, exchanges: Sequence[Exchange], *, progress: bool = False) -> Judged:
        """Lower layers over all different texts, upper ones over the pairs."""
        pairs = self.encoder.tokenizer.pairs(exchanges)
        keys = [((0, one.ids[: one.boundary].tobytes()), (1, one.ids[one.boundary :].tobytes())) for one in pairs]
        with torch.inference_mode():
            read = self._apart({key for both in keys for key in both})
            order = sorted(range(len(pairs)), key=lambda row: -len(pairs[row].ids))
            rows = np.empty((len(pairs), self.network.classifier.in_features + 2), dtype=np.float32)
            for batch in _cut(order, [len(one.ids) for one in pairs], self.encoder.batch_tokens):
                rows[batch] = self._jointly([torch.cat([read[key] for key in keys[row]]) for row in batch])
        return Judged(self.values_of(rows), n_truncated=sum(one.cut for one in pairs))

    def _apart(self, keys: set[tuple[int, bytes]]) -> dict[tuple[int, bytes], Tensor]:
        texts = {key: torch.from_numpy(np.frombuffer(key[1], dtype=np.int32).astype(np.int64)) for key in keys}
        order = sorted(texts, key=lambda key: (-len(key[1]), key))
        found = {}
        for batch in _cut(range(len(order)), [len(texts[key]) for key in order], self.encoder.batch_tokens):
            chosen = [order[at] for at in batch]
            ids, mask = _rectangle([texts[key] for key in chosen])
            begins = torch.tensor([[_REPLY_PLACE * side] for side, _ in chosen])
            states = self.network.embedded(ids, begins + torch.arange(ids.shape[1]))
            for layer in self.network.parts()[0]:
                states = _through(layer, states, mask)
            # A copy of each: a view would keep its whole batch alive.
            found.update({key: states[row, : len(texts[key])].clone() for row, key in enumerate(chosen)})
        return found

    def _jointly(self, read: list[Tensor]) -> NDArray[np.float32]:
        states, mask = _rectangle(read)
        for layer in self.network.parts()[1]:
            states = _through(layer, states, mask)
        rows: NDArray[np.float32] = self.network.classify(states.float()).numpy()
        return rows


def _cut(order: Sequence[int], lengths: Sequence[int], most: int) -> list[list[int]]:
    """Runs of an order from long to short whose rectangle holds at most so many tokens."""
    batches: list[list[int]] = []
    for row in order:
        if batches and (len(batches[-1]) + 1) * lengths[batches[-1][0]] <= most:
            batches[-1].append(row)
        else:
            batches.append([row])
    return batches


def _rectangle(texts: list[Tensor]) -> tuple[Tensor, Tensor | None]:
    """Padded behind, and a mask unless all are of one length."""
    lengths = torch.tensor([len(one) for one in texts])
    padded = nn.utils.rnn.pad_sequence(texts, batch_first=True)
    real = torch.arange(padded.shape[1])[None] < lengths[:, None]
    whole = bool(real.all())
    return padded, None if whole else real[:, None, None].expand(-1, 1, padded.shape[1], -1)


# --- training --------------------------------------------------------------------------------------


def late_recipe(recipe: Recipe, joint: int, start: str) -> Recipe:
    """DEB's own, from DEB's weights, with segment ids that say where the reply begins."""
    return {
        **recipe,
        "name": f"late-{joint}-minilm",
        "approach": "late",
        "start_from": start,
        "head": {**recipe["head"], "joint": joint},
        "layout": {**recipe["layout"], "segment_ids": True},
    }


def train(recipe: Recipe, arguments: argparse.Namespace) -> Run:
    """Leaves OUT/best."""
    settings = recipe["fine_tuning"]
    teacher: Any = dialeval.load("deb", checkpoint=recipe["start_from"])
    sources, shares, held_out = read_grouped(recipe, arguments.corpora)
    rows = [training_rows(groups, recipe, seed=number) for number, groups in enumerate(sources.values())]
    torch.manual_seed(recipe["seed"])
    network = new_network(LateNetwork, recipe, recipe["head"])
    network.classifier.load_state_dict(teacher.network.classifier.state_dict())
    collator, judged = Collator(network, recipe["training"]["max_length"]), labelled_rows(held_out)
    batches = mixed_item_batches(
        rows,
        shares,
        size=settings["batch_size"],
        seed=recipe["seed"],
        length=lambda row: min(400, sum(map(len, row.exchange.context)) + len(row.exchange.response)),
    )

    def loss(forward: Forward, batch: list[LabelledRow]) -> tuple[Tensor, Figures]:
        exchanges, valid = [row.exchange for row in batch], torch.tensor([row.valid for row in batch])
        logits = collator.rows_of(forward, exchanges)[:, -2:].float()
        told = torch.from_numpy(teacher.encoder.encode(exchanges).rows[:, -2:]).to(logits.device)
        true = next_response_loss(logits, valid.to(logits.device))
        taught = nn.functional.cross_entropy(logits, told.softmax(dim=-1))
        right = ((logits[:, 0] > logits[:, 1]).cpu() == valid).float().mean()
        return true + taught, {"next_response": true.item(), "as_taught": taught.item(), "accuracy": right.item()}

    def validate() -> tuple[float, Figures]:
        logits = network_rows(network, [row.exchange for row in judged])[:, -2:]
        figures = discrimination(np.array([row.kind for row in judged]), logits)
        return float(np.mean([figures["accuracy_random"], figures["accuracy_adversarial"]])), figures

    return run_stage(
        arguments.out,
        recipe,
        settings,
        arguments,
        model=network,
        batches=batches,
        loss=loss,
        validate=validate,
        keep=network.save_pretrained,
        first_token_only=True,
    )


def main() -> None:
    """Train, and put the best network into OUT/checkpoint."""
    own = argparse.ArgumentParser(add_help=False)
    own.add_argument("--joint", type=int, choices=range(1, 6), default=2, help="layers that read both texts")
    own.add_argument("--start", default="deb-minilm", help="checkpoint of DEB to begin from and to learn from")
    mine, others = own.parse_known_args()
    sys.argv[1:] = ["--set", "start_from=null", *others]  # the trunk that DEB's recipe begins from is not needed
    recipe, arguments = parse_arguments(f"{__doc__}\n\n{own.format_help()}", "deb-minilm.yaml")
    recipe = late_recipe(recipe, mine.joint, str(find_checkpoint(mine.start, default=mine.start).folder))
    run = train(recipe, arguments)
    if run.accelerator.is_main_process:
        network = LateNetwork.from_pretrained(run.folder / "best", device="cpu", trainable=True)
        network.config = replace(network.config, training={"steps": recipe["fine_tuning"]["steps"]})
        network.save_pretrained(run.folder / "checkpoint")


if __name__ == "__main__":
    plain_errors(main)
