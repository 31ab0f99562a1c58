"""The one training loop: steps, a log, validations, states to resume from. What is learned is the caller's loss."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, TypeVar

from torch import Tensor, nn

from common import Recipe, Run

Batch = TypeVar("Batch")
Figures = dict[str, float]


def trained(model: nn.Module) -> list[nn.Parameter]:
    """The parameters that learn."""
    return [parameter for parameter in model.parameters() if parameter.requires_grad]


def batches_of_process(batches: Iterator[Batch], run: Run, settings: Recipe) -> Iterator[Batch]:
    """Batches from where the run stands. Batch i goes to process i modulo their number.

    So N processes read what one would, N at a time.
    """
    accelerator = run.accelerator
    used = run.step * settings["accumulation"] * accelerator.num_processes
    return islice(batches, used + accelerator.process_index, None, accelerator.num_processes)


def train_steps(
    run: Run,
    settings: Recipe,
    *,
    model: nn.Module,
    optimizer: Any,
    schedule: Any,
    batches: Iterator[Batch],
    loss: Callable[[Batch], tuple[Tensor, Figures]],
    validate: Callable[[], None],
) -> None:
    """From the run's step to the last one.

    Args:
        run: The run folder; its `step` moves.
        settings: Of the recipe: steps, accumulation, clip, and how often to log, evaluate and save.
        model: As the accelerator prepared it.
        optimizer: As the accelerator prepared it.
        schedule: Of the learning rate.
        batches: This process's own.
        loss: Of a batch, with figures for the log.
        validate: Measures and keeps the best. A run of no steps is validated once.
    """
    accelerator, parameters = run.accelerator, trained(model)
    model.train()
    with run.bar(settings["steps"]) as progress:
        while run.step < settings["steps"]:
            for _ in range(settings["accumulation"]):
                total, figures = loss(next(batches))
                accelerator.backward(total / settings["accumulation"])
            clip(accelerator, parameters, settings)
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
                run.log("train", loss=total.item(), **figures, learning_rate=schedule.get_last_lr()[0], **speed)
            if run.step % settings["evaluate_every"] == 0 or ended:
                validate()
            if run.step % settings["save_every"] == 0 or ended:
                run.save()
    if not settings["steps"]:
        validate()
    accelerator.wait_for_everyone()


def clip(accelerator: Any, parameters: list[nn.Parameter], settings: Recipe) -> None:
    """Clip the norm of all gradients together, or of each tensor by itself as BERT's optimiser does."""
    if not settings.get("clip_each"):
        accelerator.clip_grad_norm_(parameters, settings["clip"])
        return
    for parameter in parameters:
        accelerator.clip_grad_norm_([parameter], settings["clip"])
