"""What the recipes with the papers' settings cost, counted from the recipes: a Markdown table.

    python training/effort.py
    python training/effort.py --teraflops 150

A token costs six floating-point operations per weight of the encoder that reads it (two forward, four backward). Every
text counts as long as the recipe allows, so the hours are an upper bound at the speed given; most pairs are shorter.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

from common import Recipe, read_recipe
from dialeval.corpora.negatives import NegativeCounts
from dialeval.io import markdown_table

RECIPES = Path(__file__).parent / "recipes"
#: Weights beside the embeddings, which are looked up and not multiplied: base sizes of BERT, RoBERTa and GPT-2.
WEIGHTS = 85_000_000
#: Rows of DailyDialog++'s dev part behind nine tenths of its contexts, for stages that count in epochs: contexts, and
#: labelled replies with right ones repeated until they are half.
DEV_CONTEXTS, DEV_REPLIES = 925, 18_500


@dataclass(frozen=True)
class Stage:
    """One stage: updates, texts of each, tokens of a text at most, and how many networks of base size read them."""

    updates: int
    texts: int
    tokens: int
    networks: int = 1

    @property
    def operations(self) -> float:
        """Floating-point operations, at most."""
        return 6.0 * WEIGHTS * self.networks * self.updates * self.texts * self.tokens


def stages_of(recipe: Recipe) -> list[Stage]:
    """The stages of a recipe."""
    approach = recipe["approach"]
    if approach in ("density", "cmn"):
        settings = recipe["training"]
        contexts = settings["batch_contexts"] * settings["accumulation"]
        if approach == "cmn":  # two encoders and a decoder
            return [Stage(settings["steps"], contexts, settings["max_length"], networks=3)]
        texts = contexts * (1 + NegativeCounts(**recipe["negatives"]).total)
        return [Stage(settings["steps"], texts, settings["max_length"])]
    found = []
    for name in ("pretraining", "fine_tuning"):
        settings = recipe[name]
        texts = settings["batch_size"] * (3 * settings["per_level"] if "per_level" in settings else 1)
        rows = 270 if "method" in settings else DEV_CONTEXTS if "per_level" in settings else DEV_REPLIES
        updates = settings["steps"] or int(settings["epochs"] * rows / settings["batch_size"])
        found.append(Stage(updates, texts, recipe["training"]["max_length"]))
    return found


def table(teraflops: float) -> list[str]:
    """A line per recipe."""
    rows = []
    for path in sorted(RECIPES.glob("*-base*.yaml")):
        stages = stages_of(read_recipe(path))
        updates = " + ".join(f"{stage.updates:,}" for stage in stages)
        texts = " + ".join(f"{stage.texts:,}" for stage in stages)
        hours = sum(stage.operations for stage in stages) / (teraflops * 1e12) / 3600
        rows.append([path.stem, updates, texts, str(stages[0].tokens), f"{hours:.1f}"])
    return markdown_table(["recipe", "updates", "texts an update", "tokens at most", "hours at most"], rows)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--teraflops", type=float, default=40.0, help="of the GPU, as it trains (default: %(default)s)")
    print("\n".join(table(parser.parse_args().teraflops)))


if __name__ == "__main__":
    main()
