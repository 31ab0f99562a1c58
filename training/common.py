"""What all training scripts share: recipe files, the run folder, logging, schedules."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
import yaml
from accelerate import Accelerator
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from safetensors import safe_open
from torch import Tensor

from corpora.batches import CandidateSet
from corpora.dialogues import BadCorpus, CorpusDialogue, MissingCorpus, overlapping_ids, read_corpus
from corpora.negatives import NegativeCounts
from dialeval.checkpoints.config import CheckpointConfig
from dialeval.checkpoints.find import CheckpointError, find_checkpoint
from dialeval.encoders.batching import choose_device, gains_by_bfloat16
from dialeval.io import interrupts
from history import TrainingRun, joined, stages_of, total
from trunk_network import TRUNK_HEADS

Recipe = dict[str, Any]
#: Where recipes are: of checkpoints here, of what only the papers' tables need beside them in a checkout.
RECIPES = (Path(__file__).parent / "recipes", Path(__file__).parents[1] / "reproduce" / "recipes")


def parse_arguments(description: str, default_recipe: str, **folders: str) -> tuple[Recipe, argparse.Namespace]:
    """Read the recipe and the overrides given on the command line (`--set training.steps=100`).

    `folders` are further optional folders that a script takes: name and help.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recipe", default=str(RECIPES[0] / default_recipe), help="YAML file (default: %(default)s)")
    parser.add_argument("--corpora", required=True, type=Path, help="folder with NAME/SPLIT.jsonl.gz of each corpus")
    parser.add_argument("--out", required=True, type=Path, help="run folder: log, states, best and final checkpoint")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="override a recipe value")
    parser.add_argument("--resume", action="store_true", help="continue the run in --out from its last state")
    parser.add_argument("--cpu", action="store_true", help="stay on the CPU even if there is a GPU")
    for name, meaning in folders.items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=Path, help=meaning)
    arguments = parser.parse_args()
    recipe = read_recipe(Path(arguments.recipe))
    for override in arguments.set:
        _override(recipe, override, parser)
    _check_start(recipe.get("start_from"), parser)
    return recipe, arguments


def read_recipe(path: Path) -> Recipe:
    """A recipe, with what it leaves out taken from the recipe that it is `based_on`, in the same folder."""
    with path.open(encoding="utf-8") as stream:
        recipe: Recipe = yaml.safe_load(stream)
    base = recipe.pop("based_on", None)
    return recipe if base is None else _merged(read_recipe(path.parent / base), recipe)


def override(recipe: Recipe, options: Sequence[str]) -> None:
    """Replace whole values of a recipe, `NAME=VALUE` each."""
    recipe.update({name: yaml.safe_load(value) for name, value in (option.split("=", 1) for option in options)})


def find_recipe(name: str) -> Path | None:
    """The file of a recipe by its name."""
    return next((path for folder in RECIPES if (path := folder / f"{name}.yaml").is_file()), None)


def _merged(base: Recipe, changes: Recipe) -> Recipe:
    shared = {key for key, value in changes.items() if isinstance(value, dict) and isinstance(base.get(key), dict)}
    both = {key: _merged(base[key], changes[key]) for key in shared}
    return {**base, **changes, **both}


def _check_start(start: str | None, parser: argparse.ArgumentParser) -> None:
    """An earlier stage that was not run here is said before anything is read, with the ways on from there."""
    if start is None or (is_trunk(start) and Path(start).is_file()):
        return
    try:
        find_checkpoint(start, default=start)
    except CheckpointError as error:
        stage = Path(start).parent.name
        earlier = (
            f"run the recipe {stage}.yaml with --out {Path(start).parent} first, or " if find_recipe(stage) else ""
        )
        parser.error(
            f"start_from: {error}; {earlier}take a recipe own-*.yaml, which begins from an embedded checkpoint or, "
            "with --set start_from=null, from the bare encoder"
        )


def _override(recipe: Recipe, text: str, parser: argparse.ArgumentParser) -> None:
    key, equals, value = text.partition("=")
    *parents, last = key.split(".")
    node = recipe
    for parent in parents:
        node = node.get(parent, {})
    if not equals or last not in node:
        parser.error(f"--set {text}: the recipe has no key {key!r}")
    node[last] = yaml.safe_load(value)


def plain_errors(main: Callable[[], None]) -> None:
    """Run a script. What is wrong with the corpora ends it in one sentence, which is all that somebody can act on.

    So does an interrupt, whatever a library that was interrupted made of it.
    """
    with interrupts.listening():
        try:
            main()
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt) or interrupts.came():
                print("interrupted; the same command with --resume goes on from the last state", file=sys.stderr)
                raise SystemExit(interrupts.INTERRUPTED) from None
            if isinstance(error, BadCorpus | MissingCorpus):
                raise SystemExit(f"{Path(sys.argv[0]).name}: {error}") from None
            raise


def with_steps(settings: Recipe, rows: float, per_step: int) -> Recipe:
    """Settings whose steps are counted out from `epochs` over so many rows, unless `steps` says how many.

    The warm-up is then a tenth of them at most, so that a small corpus is trained on at all, or a share of one epoch,
    `warmup_epochs`, as the code of QuantiDCE has it.
    """
    epoch = rows / (per_step * settings["accumulation"] * int(os.environ.get("WORLD_SIZE", "1")))
    steps = settings["steps"]
    if steps is None:
        steps = max(1, int(settings["epochs"] * epoch))
    if "warmup_epochs" in settings:
        warmup = settings["warmup_epochs"] * epoch
    else:
        warmup = settings["warmup"] if settings["steps"] is not None else min(settings["warmup"], steps // 10)
    return {**settings, "steps": steps, "warmup": warmup}


def make_accelerator(recipe: Recipe, arguments: argparse.Namespace) -> Accelerator:
    """One accelerator; bfloat16 autocast where the recipe asks for it, with `auto` where that is faster."""
    wanted = recipe["training"]["bf16"]
    if wanted == "auto":
        wanted = gains_by_bfloat16(torch.device("cpu") if arguments.cpu else choose_device())
    return Accelerator(cpu=arguments.cpu, mixed_precision="bf16" if wanted else "no")


def read_candidate_sets(recipe: Recipe, root: Path) -> tuple[list[CandidateSet], list[float]]:
    """The training corpora of a recipe, without dialogues that overlap with evaluation data, and their shares."""
    sets, shares = [], []
    counts = NegativeCounts(**recipe["negatives"])
    for number, corpus in enumerate(recipe["corpora"]):
        dialogues = []
        for split in corpus["splits"]:
            dialogues += read_corpus(root, corpus["name"], split, leave_out=left_out(recipe, root))
        # Facts are given for this share of the contexts: a reply has to be judged with and without them.
        facts = float(corpus.get("facts", 1.0))
        sets.append(CandidateSet(dialogues, counts, seed=recipe["seed"] + number, fact_share=facts))
        shares.append(float(corpus["share"]))
    return sets, shares


def read_validation(recipe: Recipe, root: Path) -> CandidateSet:
    """Held-out dialogues with random negatives only, as the papers measure R@1.

    Dialogues that share text with evaluation data choose nothing either. `facts` is the share of contexts with them.
    """
    held_out = recipe["validation"]
    dialogues: list[CorpusDialogue] = read_corpus(
        root, held_out["corpus"], held_out["split"], leave_out=left_out(recipe, root)
    )
    negatives = NegativeCounts(random=held_out["candidates"] - 1)
    return CandidateSet(dialogues, negatives, seed=recipe["seed"], fact_share=float(held_out.get("facts", 1.0)))


def left_out(recipe: Recipe, root: Path) -> frozenset[str]:
    """Ids of dialogues that must neither be trained on nor choose anything: the overlaps file's and our recount's."""
    name = recipe.get("leave_out")
    return overlapping_ids(root / name) | frozenset(recounted()["leave_out"]) if name else frozenset()


def recounted() -> dict[str, Any]:
    """The overlaps that `recount.py` found beyond the overlaps file."""
    recount: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("overlaps.yaml").read_text("utf-8"))
    return recount


class Run:
    """A run folder: `log.jsonl`, TensorBoard events, `state/` to resume from, `progress.json`."""

    def __init__(
        self, folder: Path, accelerator: Accelerator, recipe: Recipe, *, resume: bool, unit: str, per_step: int
    ) -> None:
        """`per_step` is how many of what `unit` names one step of one process trains on."""
        self.folder = folder
        self.accelerator = accelerator
        self.unit, self.per_step = unit, per_step * accelerator.num_processes
        self.step = 0
        self.best = float("-inf")
        self.best_step = 0
        self.seconds = 0.0
        self._started = time.monotonic()
        self._progress_file = folder / "progress.json"
        if accelerator.is_main_process:
            folder.mkdir(parents=True, exist_ok=True)
            if not resume and self._progress_file.exists():
                raise SystemExit(f"{folder} holds a run already; pass --resume to continue it, or another --out")
        accelerator.wait_for_everyone()
        if resume and self._progress_file.exists():
            saved = json.loads(self._progress_file.read_text())
            if saved["recipe"] != recipe:
                raise SystemExit(f"{folder} was started with another recipe; resume it with the one in progress.json")
            self.step, self.best, self.seconds = saved["step"], saved["best"], saved["seconds"]
            self.best_step = saved["best_step"]
            accelerator.load_state(str(folder / saved["state"]))
            if accelerator.is_main_process:  # a kill may have come while they were removed
                self._remove_states_but(saved["state"])
            self._forget_lines_since(saved)
        elif accelerator.is_main_process:
            self._forget_lines_since({"log_bytes": 0})
        self.recipe = recipe
        self._board: Any = None

    def _forget_lines_since(self, saved: Mapping[str, Any]) -> None:
        """Steps after the state will be taken, and logged, again: the log ends where it ended then."""
        log = self.folder / "log.jsonl"
        if not self.accelerator.is_main_process or not log.exists():
            return
        kept = log.read_bytes()[: saved["log_bytes"]]
        temporary = log.with_suffix(".tmp")
        temporary.write_bytes(kept)
        temporary.replace(log)

    def save(self) -> None:
        """A state to resume from. The pointer moves last, so a kill while saving leaves the older state valid."""
        name = f"state-{self.step}"
        self.accelerator.save_state(str(self.folder / name))
        if self.accelerator.is_main_process:
            pointer = {
                "step": self.step,
                "best": self.best,
                "best_step": self.best_step,
                "seconds": self.seconds + time.monotonic() - self._started,
                "state": name,
                "recipe": self.recipe,
                "log_bytes": log.stat().st_size if (log := self.folder / "log.jsonl").exists() else 0,
            }
            temporary = self._progress_file.with_suffix(".tmp")
            temporary.write_text(json.dumps(pointer))
            temporary.replace(self._progress_file)
            self._remove_states_but(name)
        self.accelerator.wait_for_everyone()

    def _remove_states_but(self, name: str) -> None:
        for old in self.folder.glob("state-*"):
            if old.name != name:
                shutil.rmtree(old)

    def judged(self, quality: float, figures: Mapping[str, float]) -> bool:
        """Log a validation; whether it is the best so far, so that its weights are to be kept."""
        kept = quality > self.best
        if kept:
            self.best, self.best_step = quality, self.step
        self.log("validation", **figures, **{self.unit: self.step * self.per_step}, kept=int(kept))
        return kept

    @property
    def stage(self) -> TrainingRun:
        """What of this run is in the checkpoint."""
        hours = round(self.elapsed / 3600, 2)
        seen = {self.unit: self.best_step * self.per_step} if self.best_step else {}
        return TrainingRun(self.recipe["name"], self.best_step, self.step, hours, seen)

    def log(self, kind: str, **values: float) -> None:
        """One line to `log.jsonl` and the same numbers to TensorBoard."""
        if not self.accelerator.is_main_process:
            return
        row = {"kind": kind, "step": self.step, "seconds": round(self.elapsed, 1)}
        row |= {key: round(value, 5) for key, value in values.items()}
        with (self.folder / "log.jsonl").open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(row) + "\n")
        if self._board is None:
            from torch.utils.tensorboard import SummaryWriter

            self._board = SummaryWriter(str(self.folder / "tensorboard"), purge_step=self.step)
        for key, value in values.items():
            self._board.add_scalar(f"{kind}/{key}", value, self.step)

    @property
    def elapsed(self) -> float:
        """Seconds of training, over all sittings."""
        return self.seconds + time.monotonic() - self._started

    def bar(self, total: int) -> Progress:
        """Progress on stderr, shown by the main process only."""
        progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            disable=not self.accelerator.is_main_process,
        )
        progress.add_task("training", total=total, completed=self.step)
        return progress


def contaminated_by(recipe: Recipe) -> tuple[str, ...]:
    """Benchmarks that training has seen: what the recipe says, and what the checkpoint that it starts from had seen."""
    start, earlier = recipe["start_from"], tuple[str, ...]()
    if is_trunk(start):
        earlier = read_trunk(start)[1]["recipe"]["contaminated_by"]
    elif start:
        earlier = CheckpointConfig.read(find_checkpoint(start, default=start).folder).contaminated_by
    return tuple(dict.fromkeys([*recipe["contaminated_by"], *earlier]))


def is_trunk(start: str | None) -> bool:
    """Whether a recipe begins from the encoder that `training/aspects.py` saved, not from a checkpoint."""
    return start is not None and start.endswith(".safetensors")


def read_trunk(start: str) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors of that encoder and its heads, and what the header tells of its making."""
    with safe_open(start, framework="pt") as stored:
        made: dict[str, Any] = json.loads(stored.metadata()["made"])
        return {name: stored.get_tensor(name).float() for name in stored.keys()}, made  # noqa: SIM118


def trunk_head(stored: Mapping[str, Tensor], name: str) -> tuple[Tensor, Tensor]:
    """Weights and bias of one of the heads that the encoder learned with."""
    row = TRUNK_HEADS.index(name)
    return stored["head.weight"][row], stored["head.bias"][row]


def earlier_training(source: str | None) -> dict[str, Any]:
    """How the checkpoint that a run starts from was trained itself."""
    if source is None:
        return {}
    if is_trunk(source):
        return read_trunk(source)[1]
    return dict(CheckpointConfig.read(find_checkpoint(source, default=source).folder).training)


def provenance(
    run: Run, arguments: argparse.Namespace, *, earlier: Sequence[TrainingRun] = (), **figures: Any
) -> dict[str, Any]:
    """What a checkpoint's config says about its making: what shipped. Folders of the machine are left out.

    `earlier` are stages of other runs that went into it, beside those of the checkpoint that it started from.
    """
    accelerator, current = run.accelerator, run.stage
    begun = earlier_training(run.recipe.get("start_from"))
    stages = [*joined(stages_of(begun), earlier), current]
    if begun:
        figures["started_from"] = begun["recipe"]["name"]
        figures["corpora"] = list(dict.fromkeys([*figures.get("corpora", ()), *begun["corpora"]]))
        rated = begun["recipe"].get("ratings")
        before = {use: rated[use] for use in ("train", "labelled") if use in rated} if isinstance(rated, dict) else {}
        if before := before or begun.get("ratings_before", {}):
            figures["ratings_before"] = before
        if "taught" in begun:
            figures["taught"] = begun["taught"]
    script = Path(sys.argv[0]).name
    recipe = Path(arguments.recipe)
    room = "reproduce" if recipe.resolve().parent == RECIPES[1] else "training"
    words = [f"training/{script}", "--recipe", f"{room}/recipes/{recipe.name}"]
    words += ["--corpora", "CORPORA", "--out", "RUN", *[word for pair in arguments.set for word in ("--set", pair)]]
    device = (
        torch.cuda.get_device_name() if accelerator.device.type == "cuda" else f"CPU, {torch.get_num_threads()} threads"
    )
    return {
        "command": shlex.join(words),
        "recipe": run.recipe,
        "hardware": f"{accelerator.num_processes} process(es), {device}",
        "hours": current.hours,
        "steps": current.steps,
        "steps_run": current.steps_run,
        "stages": [asdict(stage) for stage in stages],
        "total": asdict(total(stages)),
        **figures,
    }
