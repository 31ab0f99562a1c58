"""The one training loop: steps, a log, validations, states to resume from. What is learned is the caller's loss."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import torch
from accelerate.utils import send_to_device
from torch import Tensor, nn

from common import Recipe, Run, make_accelerator

Batch = TypeVar("Batch")
Figures = dict[str, float]
#: Runs the (wrapped) model on its tensors, on its device and under autocast.
Forward = Callable[[dict[str, Any]], Any]
#: Of BERT's Adam.
BETAS, EPSILON = (0.9, 0.999), 1e-6


def linear_schedule(
    optimizer: torch.optim.Optimizer, warmup: float, total: float, *, bias_correction: bool = True
) -> torch.optim.lr_scheduler.LambdaLR:
    """Up in `warmup` steps, then straight down to zero at `total`.

    Without `bias_correction` the first steps are as long as BERT's own Adam takes them, which corrects no mean.
    """

    def factor(step: int) -> float:
        longer = 1.0
        if not bias_correction:
            longer = (1 - BETAS[0] ** (step + 1)) / math.sqrt(1 - BETAS[1] ** (step + 1))
        if step < warmup:
            return longer * step / max(1, warmup)
        return longer * max(0.0, (total - step) / max(1, total - warmup))

    return torch.optim.lr_scheduler.LambdaLR(optimizer, factor)


def make_optimizer(model: nn.Module, settings: Recipe) -> torch.optim.Optimizer:
    """AdamW over what is trained; biases and layer norms do not decay."""
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    groups = [
        {"params": [weight for weight in trained if weight.ndim > 1], "weight_decay": settings["weight_decay"]},
        {"params": [weight for weight in trained if weight.ndim <= 1], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(
        [group for group in groups if group["params"]], lr=settings["learning_rate"], betas=BETAS, eps=EPSILON
    )


def make_schedule(optimizer: torch.optim.Optimizer, settings: Recipe) -> torch.optim.lr_scheduler.LambdaLR:
    """Of a recipe: to zero at `schedule_steps`, or the last step; without `decay` the rate stays where it came."""
    total = settings.get("schedule_steps") or settings["steps"]
    return linear_schedule(
        optimizer,
        settings["warmup"],
        total if settings.get("decay", True) else 10**12,
        bias_correction=settings.get("bias_correction", True),
    )


def run_stage(
    folder: Path,
    recipe: Recipe,
    settings: Recipe,
    arguments: argparse.Namespace,
    *,
    model: nn.Module,
    batches: Iterator[Batch],
    loss: Callable[[Forward, Batch], tuple[Tensor, Figures]],
    validate: Callable[[], tuple[float, Figures]],
    keep: Callable[[Path], None],
    unit: str,
    per_batch: int,
) -> Run:
    """Train one stage in its own run folder; `keep` saves to `FOLDER/best` whenever validation improves.

    Batch i goes to process i modulo their number, so N processes read what one would, N at a time. A run of no steps is
    validated once.

    Args:
        folder: Of the run.
        recipe: What is recorded of it.
        settings: Of the stage: steps, accumulation, clip, rates, and how often to log, evaluate and save.
        arguments: Of the command line.
        model: What is trained.
        batches: Of all processes.
        loss: Of a batch, with figures for the log.
        validate: What to maximise, and figures for the log.
        keep: Saves the weights.
        unit: What is counted.
        per_batch: How many of them a batch holds.
    """
    accelerator = make_accelerator(recipe, arguments)
    optimizer = make_optimizer(model, settings)
    schedule = make_schedule(optimizer, settings)
    prepared, optimizer = accelerator.prepare(model, optimizer)
    accelerator.register_for_checkpointing(schedule)
    per_step = per_batch * settings["accumulation"]
    run = Run(folder, accelerator, recipe, resume=arguments.resume, unit=unit, per_step=per_step)
    used = run.step * settings["accumulation"] * accelerator.num_processes
    shard = islice(batches, used + accelerator.process_index, None, accelerator.num_processes)

    def forward(tensors: dict[str, Any]) -> Any:
        with accelerator.autocast():
            return prepared(**send_to_device(tensors, accelerator.device))

    def judge() -> None:
        quality, figures = validate()
        if run.judged(quality, figures) and accelerator.is_main_process:
            keep(folder / "best")

    prepared.train()
    with run.bar(settings["steps"]) as progress:
        while run.step < settings["steps"]:
            for _ in range(settings["accumulation"]):
                total, figures = loss(forward, next(shard))
                accelerator.backward(total / settings["accumulation"])
            clip(accelerator, prepared, settings)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
            run.step += 1
            rate = run.per_step * run.step / run.elapsed
            caption = f"loss {total.item():.3f}, {rate:.0f} {run.unit}/s"
            progress.update(progress.task_ids[0], completed=run.step, description=caption)
            ended = run.step == settings["steps"]
            if run.step % settings["log_every"] == 0:
                speed = {f"{run.unit}_per_second": rate}
                run.log("train", loss=total.item(), **figures, learning_rate=float(schedule.get_last_lr()[0]), **speed)
            if run.step % settings["evaluate_every"] == 0 or ended:
                judge()
            if run.step % settings["save_every"] == 0 or ended:
                run.save()
    if not settings["steps"]:
        judge()
    accelerator.wait_for_everyone()
    if run.best == float("-inf"):
        raise SystemExit("validation never gave a number, so nothing was kept; lower the learning rate")
    return run


def clip(accelerator: Any, model: nn.Module, settings: Recipe) -> None:
    """Clip the norm of all gradients together, or of each tensor by itself as BERT's optimiser does."""
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    for together in [[parameter] for parameter in parameters] if settings.get("clip_each") else [parameters]:
        accelerator.clip_grad_norm_(together, settings["clip"])


def fit_head(
    module: nn.Module, settings: Recipe, batches: Iterator[Batch], loss: Callable[[Batch], Tensor]
) -> Iterator[tuple[int, Figures]]:
    """Train a small head in this process, without resuming; yields each step and what to log of it."""
    optimizer = torch.optim.AdamW(
        module.parameters(), lr=settings["learning_rate"], weight_decay=settings["weight_decay"]
    )
    schedule = linear_schedule(optimizer, settings["warmup"], settings["steps"])
    for step in range(1, settings["steps"] + 1):
        module.train()
        total = loss(next(batches))
        optimizer.zero_grad()
        torch.autograd.backward(total)
        nn.utils.clip_grad_norm_(module.parameters(), settings["clip"])
        optimizer.step()
        schedule.step()
        yield step, {"loss": total.item(), "learning_rate": float(schedule.get_last_lr()[0])}
