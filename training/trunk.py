"""Train the encoder that every metric shares: which of eight replies comes next.

    python training/trunk.py --corpora CORPORA --encoder FOLDER --out runs/trunk

All layers but the embeddings are trained. The same command goes on where it was stopped. OUT/trunk.safetensors holds
their mean over the last steps in float16, which is also what is validated. The contexts of a step follow from seed and
step alone.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from safetensors.torch import save_file
from torch import Tensor, nn
from transformers import AutoTokenizer

from common import override, read_recipe
from corpora.batches import CandidateSet
from dialeval.encoders.layout import PairFormat, PairTokenizer, TokenPair
from trunk_network import Trunk, next_reply_loss
from trunk_steps import Batch, Steps, padded, prefetched, read_sets


class Trainer:
    """Weights in float32, the copy of them that computes, the optimizer, and the mean of the weights over steps."""

    def __init__(
        self,
        recipe: dict[str, Any],
        encoder: Path,
        dtype: torch.dtype,
        device: torch.device,
        heads: int = 1,
        lora: dict[str, Any] | None = None,
    ) -> None:
        torch.manual_seed(recipe["seed"])
        self.recipe, self.device, self.dtype = recipe, device, dtype
        self.batch_tokens = recipe["batch_tokens"].get(device.type, recipe["batch_tokens"]["cpu"])
        self.master = Trunk(encoder, heads, lora).to(device)
        self.model = self.master
        if dtype != torch.float32:
            self.model = Trunk(encoder, heads, lora).to(device, dtype)
        self.weights = [parameter for parameter in self.master.parameters() if parameter.requires_grad]
        self.copies = [parameter for parameter in self.model.parameters() if parameter.requires_grad]
        self.sizes = [parameter.numel() for parameter in self.weights]
        self.optimizer = torch.optim.AdamW(
            self.weights, lr=0.0, betas=tuple(recipe["betas"]), weight_decay=recipe["weight_decay"], fused=True
        )
        #: Over as many steps as the recipe says: at a constant rate the weights of one step are worse than their mean.
        self.mean = [parameter.detach().clone() for parameter in self.weights] if "mean_over" in recipe else []
        self.updates = 0
        self.copy_weights()

    @torch.no_grad()
    def copy_weights(self) -> None:
        """Round the weights to what computes."""
        if self.model is not self.master:
            for copy, weight in zip(self.copies, self.weights, strict=True):
                copy.copy_(weight)

    @torch.no_grad()
    def take(self, weights: Sequence[Tensor]) -> None:
        """Take over these weights."""
        for weight, value in zip(self.weights, weights, strict=True):
            weight.copy_(value)
        self.copy_weights()

    @contextmanager
    def by_mean(self) -> Iterator[None]:
        """Use the mean of the weights over the last steps for a while, if one is kept."""
        held = [weight.detach().clone() for weight in self.weights]
        self.take(self.mean if self.mean and self.updates else held)
        yield
        self.take(held)

    def logits(self, pairs: Sequence[TokenPair], pad_id: int) -> Tensor:
        """`[pairs]` or `[pairs, heads]`."""
        return self.through(padded(pairs, pad_id, self.batch_tokens))

    def through(self, batches: Sequence[Batch], dropout: float = 0.0) -> Tensor:
        """The outputs of all batches, in the order of the pairs."""
        outputs, order = [], []
        if dropout:  # the same in the same step, also after an interruption
            rank = dist.get_rank() if dist.is_initialized() else 0
            torch.manual_seed(hash((self.recipe["seed"], self.updates, rank)) % 2**32)
        for numbers, tensors in batches:
            inputs = {name: tensor.to(self.device, non_blocking=True) for name, tensor in tensors.items()}
            outputs.append(self.model(**inputs, dropout=dropout))
            order.append(numbers.to(self.device, non_blocking=True))
        return torch.cat(outputs)[torch.cat(order).argsort()]

    def step(self, batches: Sequence[Batch], rate: float) -> Tensor:
        """One update; the loss and how often the true reply came first, over all processes."""
        logits = self.through(batches, self.recipe["dropout"]).view(-1, 1 + sum(self.recipe["negatives"].values()))
        loss = next_reply_loss(logits, self.recipe["binary_weight"]).sum() / self.recipe["batch_contexts"]
        hits = (logits.argmax(dim=1) == 0).sum() / self.recipe["batch_contexts"]
        return self.update(loss, torch.stack([loss.detach(), hits]), [rate])

    def update(self, loss: Tensor, figures: Tensor, rates: Sequence[float]) -> Tensor:
        """Move the weights, the groups of the optimizer by their rates; the figures, summed over all processes."""
        loss.backward()  # type: ignore[no-untyped-call]
        gradient = torch.cat([copy.grad.float().flatten() for copy in self.copies if copy.grad is not None])
        if dist.is_initialized():
            dist.all_reduce(gradient)
            dist.all_reduce(figures)
        for weight, copy, whole in zip(self.weights, self.copies, torch.split(gradient, self.sizes), strict=True):
            copy.grad = None
            weight.grad = whole.view_as(weight)
        nn.utils.clip_grad_norm_(self.weights, self.recipe["clip"])
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            group["lr"] = rate
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.copy_weights()
        self.updates += 1
        for mean, weight in zip(self.mean, self.weights, strict=False):
            mean.lerp_(weight.detach(), 1 / min(self.updates, self.recipe["mean_over"]))
        return figures

    @torch.inference_mode()
    def validate(self, held_out: dict[str, CandidateSet], tokenizer: PairTokenizer, share: slice) -> dict[str, float]:
        """Accuracy among the candidates by corpus, always over the same contexts."""
        settings, accuracies = self.recipe["validation"], {}
        for name, corpus in held_out.items():
            chosen = np.random.default_rng(self.recipe["seed"]).permutation(len(corpus))[: settings["contexts"]]
            exchanges = [exchange for index in chosen[share] for exchange in corpus.get(int(index)).exchanges()]
            logits = self.logits(tokenizer.pairs(exchanges), tokenizer.pad_id).view(-1, settings["candidates"])
            hits = torch.tensor([float((logits[:, 0] > logits[:, 1:].amax(dim=1)).sum()), len(logits)])
            if dist.is_initialized():
                dist.all_reduce(hits)
            accuracies[name] = round(float(hits[0] / hits[1]), 4)
        return {"mean": round(sum(accuracies.values()) / len(accuracies), 4), **accuracies}

    def state(self) -> dict[str, Any]:
        """What resumption needs beside the step."""
        mean = {"mean": self.mean, "updates": self.updates}
        return {"weights": self.weights, "optimizer": self.optimizer.state_dict(), **mean}

    def take_layers(self, layers: dict[str, Tensor]) -> None:
        """All that is tuned of the encoder, every tensor of it and no other."""
        named = self.master.named_parameters()
        tuned = {name: weight for name, weight in named if weight.requires_grad and "head" not in name}
        if layers.keys() != tuned.keys():
            wrong = sorted(layers.keys() ^ tuned.keys())
            raise SystemExit(f"the start is of another encoder: {len(wrong)} tensors differ, {wrong[0]} for example")
        with torch.no_grad():
            for name, weight in tuned.items():
                weight.copy_(layers[name])

    def save_weights(self, path: Path, **metadata: Any) -> None:
        """Save what is trained in float16, with the metadata in the file's header."""
        weights = {name: weight.half() for name, weight in self.master.named_parameters() if weight.requires_grad}
        save_file(weights, path, {name: json.dumps(value) for name, value in metadata.items()})

    def load(self, state: dict[str, Any]) -> dict[str, Any]:
        """Take over a state."""
        self.take(state["weights"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.updates = state["updates"]
        if self.mean:
            self.mean = state["mean"]
        return state


def main() -> None:
    """Read the recipe and start the processes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpora", type=Path, required=True, help="folder of NAME/SPLIT.jsonl.gz")
    parser.add_argument("--encoder", type=Path, required=True, help="folder of the base encoder")
    parser.add_argument("--out", type=Path, required=True, help="state, snapshots and log.jsonl")
    parser.add_argument("--recipe", type=Path, default=Path(__file__).parent / "recipes" / "trunk.yaml")
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default="bfloat16", help="in what to compute")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--processes", type=int, default=1, help="of one thread each, on a CPU")
    parser.add_argument("--steps", type=int, help="stop after this step (default: all contexts)")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="override the recipe")
    arguments = parser.parse_args()
    recipe = read_recipe(arguments.recipe)
    override(recipe, arguments.set)
    arguments.out.mkdir(parents=True, exist_ok=True)
    in_processes(run, arguments.processes, recipe, arguments)


def in_processes(work: Callable[..., None], count: int, *arguments: Any) -> None:
    """Call `work(rank, ...)` in this process, or in several that find one another."""
    if count == 1:
        work(0, *arguments)
        return
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free.getsockname()[1])}
    # Who ends this process by a signal ends the others, too: daemons go when it leaves in order.
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        mp.spawn(work, arguments, nprocs=count, daemon=True)  # type: ignore[attr-defined, no-untyped-call]
    finally:
        signal.signal(signal.SIGTERM, before)


def run(rank: int, recipe: dict[str, Any], arguments: argparse.Namespace) -> None:
    """Resume, step, validate, save, in one of the processes."""
    torch.set_flush_denormal(True)
    share = slice(rank, None, arguments.processes)
    if arguments.processes > 1:
        torch.set_num_threads(1)
        dist.init_process_group("gloo", rank=rank, world_size=arguments.processes)
    dtype, device = getattr(torch, arguments.dtype), torch.device(arguments.device)
    trainer = Trainer(recipe, arguments.encoder, dtype, device, lora=recipe.get("lora"))
    tokenizer = PairTokenizer(AutoTokenizer.from_pretrained(arguments.encoder), PairFormat(**recipe["layout"]))
    train, held_out = read_sets(recipe, arguments.corpora)
    kept = arguments.out / "state.pt"
    state = {"step": 0, "seconds": 0.0, "validated": 0.0}
    if kept.exists():
        state = trainer.load(torch.load(kept, map_location=arguments.device))
    first, size = int(state["step"]), int(recipe["batch_contexts"])
    last = math.ceil(sum(stage["contexts"] for stage in recipe["stages"]) / size)
    last = min(last, arguments.steps or last)
    spent, validated = state["seconds"] - _seconds(), state["validated"]
    log(arguments.out, "start", step=first, commit=commit(), processes=arguments.processes, dtype=arguments.dtype,
         contexts={name: len(corpus) for name, corpus in train.items()})  # fmt: skip
    steps = prefetched(Steps(recipe, train, tokenizer, share, trainer.batch_tokens), range(first, last), trainer.device)
    mark, results = time.monotonic(), []
    for step, batches in zip(range(first + 1, last + 1), steps, strict=True):
        rate = float(recipe["learning_rate"] * min(1.0, step / recipe["warmup"]))
        results.append(trainer.step(batches, rate))  # read later: a GPU need not wait
        if step % 20 == 0 or step == last:
            loss, accuracy = torch.stack(results).mean(dim=0).tolist()
            done = len(results) * size * (1 + sum(recipe["negatives"].values()))
            log(arguments.out, "train", step=step, contexts=step * size, loss=round(loss, 4),
                 accuracy=round(accuracy, 4), pairs_per_second=round(done / (time.monotonic() - mark), 1),
                 processor_hours=round((spent + _seconds()) / 3600, 3))  # fmt: skip
            mark, results = time.monotonic(), []
        reached = any((step - 1) * size < wanted <= step * size for wanted in recipe["snapshots"])
        if step % recipe["save_every"] == 0 or step == last or reached:
            total = spent + _seconds()
            with trainer.by_mean():
                if total - validated >= recipe["validation"]["every_processor_hours"] * 3600 or step == last or reached:
                    validated, figures = total, trainer.validate(held_out, tokenizer, share)
                    log(arguments.out, "validation", step=step, contexts=step * size,
                         processor_hours=round(total / 3600, 3), **figures)  # fmt: skip
                    mark = time.monotonic()
                stood = {"step": step, "seconds": spent + _seconds(), "validated": validated}
                if rank == 0:
                    trainer.save_weights(arguments.out / "trunk.safetensors", stood=stood)
            state = {**trainer.state(), **stood}
            save_state(state, kept)
            if reached:
                save_state(state, arguments.out / f"contexts-{step * size}.pt")


def _seconds() -> float:
    """Processor time of all processes."""
    total = torch.tensor([time.process_time()], dtype=torch.float64)
    if dist.is_initialized():
        dist.all_reduce(total)
    return float(total)


def save_state(state: dict[str, Any], path: Path) -> None:
    """Whole or not at all, by the first of several processes."""
    if not dist.is_initialized() or dist.get_rank() == 0:
        torch.save(state, path.with_suffix(".tmp"))
        os.replace(path.with_suffix(".tmp"), path)


def log(folder: Path, event: str, **values: Any) -> None:
    """A line of log.jsonl, by the first of several processes."""
    if not dist.is_initialized() or dist.get_rank() == 0:
        with (folder / "log.jsonl").open("a") as stream:
            stream.write(json.dumps({"event": event, **values}) + "\n")


def commit() -> str:
    """The commit of the checkout that trains."""
    return subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False).stdout.strip()


if __name__ == "__main__":
    main()
