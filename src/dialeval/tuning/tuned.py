"""What tuning found, for people and for the record, and the folder of the checkpoint, which appears when complete."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dialeval.checkpoints.config import current_versions
from dialeval.hub.card import render_card
from dialeval.io.files import left_beside, parse_json, place_beside
from dialeval.io.places import check_can_be_made, check_parent, real
from dialeval.judge.metric import Judge
from dialeval.judge.network import JudgeNetwork
from dialeval.tuning.crossing import SURE, BeforeAfter, Fitted
from dialeval.tuning.opinions import Opinions, Ratings


@dataclass(frozen=True)
class Tuned:
    """The outcome of `tune`; `print` shows it."""

    folder: Path
    opinions: Opinions
    fitted: Fitted
    #: How well one person predicts the others.
    ceiling: float | None
    #: Share of held-out ratings inside their 90 % interval; None for preferences, which leave the old interval.
    coverage: float | None
    has_percentile: bool
    #: By aspect of the judge its agreement with people, None where too few replies have it.
    aspects: Mapping[str, float | None]
    n_truncated: int
    seed: int

    @property
    def changed(self) -> bool:
        """Whether anything was gained on held-out contexts; if not, the judge is as it was."""
        return self.fitted.changed

    @property
    def comparison(self) -> BeforeAfter:
        """The checkpoint as it was, and what tuning makes of it on contexts held out."""
        return self.fitted.comparison

    @property
    def raters(self) -> float:
        """Ratings per reply."""
        given = self.opinions.raters if isinstance(self.opinions, Ratings) else ()
        return float(np.mean([len(answers) for answers in given])) if given else 1.0

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> list[str]:
        """The outcome, a sentence a line."""
        comparison = self.comparison
        lines = [f"{len(self.opinions)} {self.opinions.unit} in {self.opinions.contexts} contexts"]
        if self.raters > 1:
            lines[0] += f", {self.raters:.1f} ratings each"
        if self.n_truncated:
            lines[0] += f"; {self.n_truncated} were truncated"
        lines += [f"{count} rows dropped: {reason}" for reason, count in self.opinions.dropped.items()]
        lines += [
            f"agreement on held-out contexts ({self.opinions.measure}, 95 % interval by context)",
            f"  before      {comparison.before}",
            f"  after       {comparison.after}",
            f"  difference  {comparison.difference}",
        ]
        if self.ceiling is not None:
            lines.append(f"one rater with the others: {self.ceiling:.3f}")
        lines.append("agreement of each aspect with your raters")
        lines += [f"  {name:<15} {value:.3f}" for name, value in self.aspects.items() if value is not None]
        if not self.changed:
            lines.append(
                f"no gain: no significant improvement ({SURE:.0%} bootstrap), or it agrees no better than chance; "
                "the judge is unchanged"
            )
        if self.fitted.lifted:
            lines.append(f"vetoes removed, since your ratings speak against them: {', '.join(self.fitted.lifted)}")
        if self.coverage is None:
            lines.append("preferences give no interval for single replies: the checkpoint's is kept")
        else:
            lines.append(f"refitted 90 % intervals cover {self.coverage:.1%} of the held-out ratings")
        if not self.has_percentile:
            lines.append("the human percentile of the old values was removed; fit a new one with --human")
        return lines

    def record(self) -> dict[str, Any]:
        """What the checkpoint's config says: counts and figures, never a text."""
        comparison = self.comparison
        return {
            "opinions": len(self.opinions),
            "kind": self.opinions.unit,
            "contexts": self.opinions.contexts,
            "ratings_each": round(self.raters, 2),
            "changed": self.changed,
            "lifted": list(self.fitted.lifted),
            "measure": self.opinions.measure,
            "before": comparison.before.record(),
            "after": comparison.after.record(),
            "difference": comparison.difference.record(),
            "ceiling": None if self.ceiling is None else round(self.ceiling, 4),
            "aspects": {name: None if aspect is None else round(aspect, 4) for name, aspect in self.aspects.items()},
            "coverage": None if self.coverage is None else round(self.coverage, 4),
            "cut_rows": self.n_truncated,
            "seed": self.seed,
        }


def check_place(out: Path, reads: Iterable[object], *, overwrite: bool) -> None:
    """Refuse, before anything is computed, a place that holds something, or what is read."""
    if out == Path.cwd():  # an empty name, too; whoever stands in it would stand nowhere once it is replaced
        raise ValueError("out is the folder that you are in; name a new one")
    check_parent(out)
    check_can_be_made(out)
    for workspace in left_beside(out):
        if not out.exists() and (workspace / "former").is_dir():  # killed between the two renames
            os.replace(workspace / "former", out)
        shutil.rmtree(workspace, ignore_errors=True)
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return
    if not overwrite:
        raise FileExistsError(f"{out} already exists; choose another name, or replace it with --overwrite")
    if not _is_checkpoint(out):
        raise FileExistsError(f"{out} is not a checkpoint and is not replaced; choose another name")
    for read in reads:
        if isinstance(read, str | Path) and real(Path(read)).is_relative_to(out):
            raise ValueError(f"{read} is an input and lies in {out}, which would be replaced; choose another name")


#: The quantiles of human replies that a correction makes wrong.
OVERALL = "turn.overall"


def write_folder(network: JudgeNetwork, out: Path, *, record: Mapping[str, Any]) -> None:
    """Save beside `out` and rename."""
    earlier = network.config.training
    tuned = dict(record)
    if "tuned" in earlier:
        tuned["earlier"] = earlier["tuned"]
    network.config = replace(
        network.config,
        name=out.name,
        contaminated_by=tuple(dict.fromkeys([*network.config.contaminated_by, *record["contaminated_by"]])),
        training={**earlier, "tuned": tuned},
        versions=current_versions(),
    )
    workspace = place_beside(out)
    workspace.mkdir(0o700)
    former = workspace / "former"
    try:
        fresh = workspace / "fresh"
        network.save_pretrained(fresh, card=render_card(network.config))
        Judge(fresh)  # what was written can be loaded
        if out.is_dir() and any(out.iterdir()):
            os.replace(out, former)
        try:
            os.replace(fresh, out)
        except BaseException as error:
            if former.exists():
                _put_back(former, out, error)
            raise
    finally:
        # Between the two renames the former checkpoint is in the workspace only; what cannot go back stays there.
        if out.exists() or not former.exists():
            shutil.rmtree(workspace, ignore_errors=True)


def _put_back(former: Path, out: Path, error: BaseException) -> None:
    try:
        os.replace(former, out)
    except OSError:
        failure = OSError(
            f"{out} cannot be written ({error}); the checkpoint that was there is in {former}: move it back"
        )
        failure.errno = getattr(error, "errno", None)
        raise failure from error


def _is_checkpoint(folder: Path) -> bool:
    try:
        config = parse_json((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(config, dict) and config.get("model_type") == "dialeval"
