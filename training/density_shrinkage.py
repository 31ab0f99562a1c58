"""How far DENSITY's Gaussians should be shrunk towards a sphere, by what tells true replies of validation dialogues.

    python training/density_shrinkage.py --corpora CORPORA --checkpoint runs/density-minilm/checkpoint \\
        --log results/training/density-shrinkage.json

True replies are held against random ones, other turns of the same dialogue and replies that share a rare word, all of
the recipe's validation dialogues: no benchmark and no rating takes part. The features are computed once, the
Gaussians fitted for every shrinkage, both alike. The log has, for each, the AUC of every rule and how far the human
precision is from a sphere; what it recommends goes into the recipe's `fit`.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import track

from common import Recipe, read_recipe, read_validation
from density_fit import (
    DENSITIES,
    FLOAT32_RESOLUTION,
    KINDS,
    Encode,
    fitting_pairs,
    held_out_pairs,
    moments_of,
    rotated,
    score_by_rule,
    separation,
)
from dialeval.approaches.density import Density, DensityNetwork, fit_gaussian
from dialeval.cards.spread import Spread
from dialeval.engine.moments import Moments
from dialeval.exchange import Exchange
from dialeval.io import write_atomically

SHRINKAGES = (0.0, 0.01, 0.03, 0.1, 0.3, 0.5, 0.7, 0.9, 0.95, 0.99)


def sweep(network: DensityNetwork, encode: Encode, recipe: Recipe, root: Path) -> list[dict[str, Any]]:
    """One line per shrinkage: AUC by rule and kind of wrong reply, and the spread of the human precision."""
    human, background = Moments(), Moments()
    for pairs in fitting_pairs(recipe, root):
        human.merge(moments_of(encode, pairs))
        background.merge(moments_of(encode, rotated(pairs)))
    held_out = held_out_pairs(read_validation(recipe, root), recipe)
    features = {id(pairs): encode(pairs) for pairs in held_out.values()}

    def known(pairs: Any) -> Any:
        return features[id(pairs)]

    lines = []
    for shrinkage in track(SHRINKAGES, description="shrinkages", console=Console(stderr=True)):
        mean, precision = fit_gaussian(human, shrinkage=shrinkage, resolution=FLOAT32_RESOLUTION)
        network.set_gaussian(mean, precision)
        network.set_background(*fit_gaussian(background, shrinkage=shrinkage, resolution=FLOAT32_RESOLUTION))
        areas = separation(score_by_rule(network, known, held_out))
        spread = Spread.of(precision)
        lines.append({"shrinkage": shrinkage, "auc": areas, "near_largest": spread.near_largest, "ratio": spread.ratio})
    return lines


def recommended(lines: list[dict[str, Any]]) -> dict[str, float]:
    """For each density the shrinkage with the highest mean AUC, the least of equals."""
    return {
        rule: max(lines, key=lambda line: (line["auc"][rule]["mean"], -line["shrinkage"]))["shrinkage"]
        for rule in DENSITIES
        if rule != "euclidean"  # it does not look at the covariance
    }


def main() -> None:
    """Encode once, sweep, write the log."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpora", required=True, type=Path, help="folder with NAME/SPLIT.jsonl.gz of each corpus")
    parser.add_argument("--checkpoint", required=True, help="a DENSITY checkpoint; its Gaussians are not used")
    parser.add_argument(
        "--recipe",
        type=Path,
        default=Path(__file__).parent / "recipes" / "density-minilm.yaml",
        help="whose fit and validation dialogues are taken (default: %(default)s)",
    )
    parser.add_argument("--log", required=True, type=Path, help="JSON file for what was found")
    arguments = parser.parse_args()
    recipe = read_recipe(arguments.recipe)
    scorer = Density(arguments.checkpoint, scoring="classifier")

    def encode(exchanges: Any) -> Any:
        some: list[Exchange] = list(exchanges)
        return scorer.encoder.encode(some, progress=True).rows

    lines = sweep(scorer.network, encode, recipe, arguments.corpora)
    about = {
        "recipe": recipe["name"],
        "checkpoint": Path(arguments.checkpoint).name,
        "fit": recipe["fit"]["corpora"],
        "validation": {key: recipe["validation"][key] for key in ("corpus", "split")},
        "held_out_pairs": recipe["fit"]["held_out_pairs"],
        "against": list(KINDS),
        "recommended": recommended(lines),
        "sweep": lines,
    }
    arguments.log.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(arguments.log, [json.dumps(about, indent=1)])
    print(json.dumps(about["recommended"]))


if __name__ == "__main__":
    main()
