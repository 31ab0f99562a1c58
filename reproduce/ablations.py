"""Train what the papers' ablation tables vary, each variant for the same short time.

    python -m reproduce.ablations --corpora CORPORA --ratings MIRROR --out runs/ablations
    python -m reproduce.ablations --corpora CORPORA --out runs/ablations --only density-plain,deb-both

The variants stand in recipes/ablations.yaml; some begin from density-lora.yaml or deb-lora.yaml. Finished ones are kept
and interrupted ones go on, so the same command continues. --table gets what each reached on held-out dialogues.
`python -m reproduce papers` says which commands measure them against people, and lays the outcome beside the published
tables.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import yaml

from dialeval.io.files import read_json_lines
from dialeval.io.tables import markdown_table

HERE = Path(__file__).parent
TRAINING = HERE.parent / "training"
#: Figures of a run's log that the papers print, and their names here; those of heads end with the head's name.
FIGURES = {
    "r1": "R@1",
    "mrr": "MRR",
    "accuracy_random": "accuracy, random",
    "accuracy_adversarial": "accuracy, adversarial",
    "levels_in_order": "levels in order",
    "positive_above_adversarial": "right above adversarial",
    "auc_{head}": "AUC",
    "auc_random_{head}": "AUC, random",
    "auc_adversarial_{head}": "AUC, adversarial",
}
#: Which of CMN's scores is meant where a part of the whole was not trained.
SCORINGS = {"cmn-without-nsp": "without_nsp"}


def command(name: str, variant: dict[str, Any], arguments: argparse.Namespace) -> list[str]:
    """How one variant is trained."""
    out = arguments.out / name
    values = {**variant["set"], "name": name}
    made = [sys.executable, str(TRAINING / variant["script"]), "--corpora", str(arguments.corpora), "--out", str(out)]
    made += ["--recipe", str(recipe_file(variant["recipe"]))]
    if arguments.ratings is not None and variant["script"] == "quantidce.py":
        made += ["--ratings", str(arguments.ratings)]
    for key, value in values.items():
        made += ["--set", f"{key}={json.dumps(value)}"]
    return [*made, "--resume"] if out.exists() else made


def recipe_file(name: str) -> Path:
    """The recipe that a variant changes: one of this folder's, or of a checkpoint."""
    recipe = HERE / "recipes" / f"{name}.yaml"
    return recipe if recipe.is_file() else TRAINING / "recipes" / recipe.name


def train(name: str, variant: dict[str, Any], arguments: argparse.Namespace) -> None:
    """Run one variant unless its checkpoint is there."""
    out = arguments.out / name
    if is_done(out):
        print(f"{name}: done before", flush=True)
        return
    earlier = variant.get("first_stage_of")
    if earlier and not is_done(arguments.out / earlier):
        raise SystemExit(f"{name} takes the first stage of {earlier}, which was not trained; run {earlier} first")
    if earlier and not (out / "pretraining").exists():
        shutil.copytree(arguments.out / earlier / "pretraining", out / "pretraining")
    print(f"{name}: training", flush=True)
    status = subprocess.run(command(name, variant, arguments), check=False).returncode
    if status:
        raise SystemExit(f"{name} failed with status {status}; after a repair the same command goes on from there")


def is_done(out: Path) -> bool:
    """When its log has its last line and its checkpoint is whole; heads of the baselines get no card."""
    return (out / "checkpoint" / "config.json").is_file() and bool(reached(out))


def reached(out: Path) -> dict[str, float]:
    """The last line of a run's log."""
    log = out / "log.jsonl"
    final = [line for line in read_json_lines(log) if line["kind"] == "final"] if log.is_file() else []
    return dict(final[-1]) if final else {}


_HOW_TO_READ = """# The variants of the papers' ablations on held-out dialogues

Made by `python -m reproduce.ablations --corpora CORPORA --ratings MIRROR --out runs/ablations --table TABLE`, one
short training each ([recipe](../../reproduce/recipes/ablations.yaml)). Where there is one seed, differences of some
hundredths say nothing; where there are several, their mean stands first, ± the standard deviation between them.
R@1 and MRR: the true reply among 16 of DailyDialog's validation part, or among 20 of ConvAI2's. Accuracies: true
against random and against adversarial replies, at one half. Levels in order: the share of contexts whose mean scores
stand as random < adversarial < right. Right above adversarial: the share of pairs. AUC: of right replies against wrong
ones, of both kinds for CMN. All but the first two columns are from contexts of DailyDialog++'s dev part that were held
out.
"""


def validation_table(names: list[str], folder: Path) -> str:
    """Markdown: a row per finished variant, a column per figure."""
    rows: list[list[str]] = []
    for name in names:
        if is_done(folder / name):
            figures = reached(folder / name)
            approach = name.partition("-")[0]
            head = SCORINGS.get(name, "full") if approach == "cmn" else approach
            values = [figures.get(key.format(head=head)) for key in FIGURES]
            rows.append([name, *("" if value is None else f"{value:.3f}" for value in values)])
    rows = [*over_seeds(rows), *rows]
    return "\n".join([_HOW_TO_READ, *markdown_table(["variant", *FIGURES.values()], rows)]) + "\n"


def over_seeds(rows: list[list[str]]) -> list[list[str]]:
    """A row of means for every variant that was trained with several seeds, from the figures as they are shown."""
    groups: dict[str, list[list[str]]] = {}
    for name, *cells in rows:
        groups.setdefault(name.partition("-seed")[0], []).append(cells)
    summary = []
    for name, runs in groups.items():
        if len(runs) > 1:
            columns = [[float(cell) for cell in column if cell] for column in zip(*runs, strict=True)]
            complete = [values if len(values) == len(runs) else [] for values in columns]
            shown = [f"{fmean(values):.3f} ± {stdev(values):.3f}" if values else "" for values in complete]
            summary.append([f"{name}, {len(runs)} seeds", *shown])
    return summary


def main() -> None:
    """Train what is asked for, then write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpora", required=True, type=Path, help="folder with NAME/SPLIT.jsonl.gz of each corpus")
    parser.add_argument("--ratings", type=Path, help="folder or mirror with the rated rows; downloaded if left out")
    parser.add_argument("--out", required=True, type=Path, help="folder of the runs")
    parser.add_argument("--table", type=Path, help="Markdown file for the figures on held-out dialogues")
    parser.add_argument(
        "--variants", type=Path, default=HERE / "recipes" / "ablations.yaml", help="other variants than the papers'"
    )
    parser.add_argument("--only", help="names of variants, by commas; those whose first stage they share must be there")
    arguments = parser.parse_args()
    variants = yaml.safe_load(arguments.variants.read_text("utf-8"))
    wanted = list(variants) if arguments.only is None else arguments.only.split(",")
    for name in wanted:
        if name not in variants:
            parser.error(f"there is no variant {name!r}; there are {', '.join(variants)}")
    for name in wanted:
        train(name, variants[name], arguments)
    if arguments.table is not None:
        arguments.table.write_text(validation_table(list(variants), arguments.out), "utf-8")


if __name__ == "__main__":
    main()
