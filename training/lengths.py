"""How many rows are cut: in training, where a step costs as many tokens as it reads, and in scoring.

    python training/lengths.py --corpora CORPORA --ratings RATINGS --mirror MIRROR --out results/training/lengths.md

Contexts lose their oldest turns first; replies and facts have room of their own. A recipe's row of a corpus counts
some hundred of its pairs under the recipe's training length, a benchmark's all of its rows under the scoring length.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from rich.progress import track

from common import Recipe, left_out, read_recipe
from dialeval import benchmarks
from dialeval.corpora.batches import CandidateSet
from dialeval.corpora.dialogues import read_corpus
from dialeval.corpora.negatives import NegativeCounts
from dialeval.corpora.ratings import read_ratings
from dialeval.engine.formatting import PairFormat, PairTokenizer
from dialeval.exchange import Exchange
from dialeval.io import markdown_table
from dialeval.weights.find import find_encoder
from dialeval.weights.loading import load_tokenizer

RECIPES = Path(__file__).parent / "recipes"
#: The recipes behind embedded checkpoints whose layout has room for facts.
NAMES = ("trunk-minilm-longer", "density-minilm", "density-minilm-convai2", "deb-minilm", "judge-minilm")
BENCHMARKS = (
    "convai2_grade", "dailydialog_grade", "empathetic_grade", "dailydialog_zhao", "persona_zhao", "persona_usr",
    "fed_turn",
)  # fmt: skip
PAIRS = 500


def ordinary_pairs(recipe: Recipe, root: Path, name: str, splits: Sequence[str], facts: float) -> list[Exchange]:
    """Some pairs of a corpus of dialogues, with the facts that the recipe gives."""
    dialogues = []
    for split in splits:
        dialogues += read_corpus(root, name, split, leave_out=left_out(recipe, root))
    pairs = CandidateSet(dialogues, NegativeCounts(random=0), seed=recipe["seed"], fact_share=facts)
    order = np.random.default_rng(recipe["seed"]).permutation(len(pairs))[:PAIRS]
    return [pairs.get(int(index)).exchange for index in order]


def sources_of(recipe: Recipe, root: Path, ratings: Path) -> Iterator[tuple[str, list[Exchange]]]:
    """What a recipe trains on, as pairs; grouped replies are as long as their dialogues and are not read again."""
    if recipe["approach"] == "density":
        for corpus in recipe["corpora"]:
            yield (
                corpus["name"],
                ordinary_pairs(recipe, root, corpus["name"], corpus["splits"], float(corpus.get("facts", 1.0))),
            )
        return
    for corpus in recipe["augmentation"]:
        if "splits" in corpus:
            yield (
                corpus["name"],
                ordinary_pairs(recipe, root, corpus["name"], corpus["splits"], float(corpus.get("facts", 1.0))),
            )
    for name in recipe.get("ratings", {}).get("train", ()):
        rows = [row.exchange for row in read_ratings(ratings, name, level="turn", leave_out=frozenset())]
        order = np.random.default_rng(recipe["seed"]).permutation(len(rows))[:PAIRS]
        yield name, [rows[int(index)] for index in order]


def exchanges(benchmark: benchmarks.Benchmark) -> list[Exchange]:
    """The rows that are measured by default."""
    return [
        Exchange(tuple(row["context"]), row["response"], facts=tuple(row["facts"] or ())) for row in benchmark.select()
    ]


def cut_share(rows: Sequence[Exchange], encoder: str, layout: PairFormat) -> float:
    """Share of rows that lose a token."""
    tokenizer = PairTokenizer(load_tokenizer(find_encoder(encoder).folder, layout), layout)
    return float(np.mean([pair.cut for pair in tokenizer.pairs(rows)]))


def tables(corpora: Path, ratings: Path, mirror: Path | None) -> Iterator[str]:
    """Lines of Markdown."""
    yield "# How many rows are cut"
    yield ""
    yield "Written by `training/lengths.py`. Contexts lose their oldest turns first, replies and facts keep their room."
    yield ""
    rows = []
    for name in track(NAMES, "recipes"):
        recipe = read_recipe(RECIPES / f"{name}.yaml")
        layout = replace(PairFormat(**recipe["layout"]), max_length=recipe["training"]["max_length"])
        for source, read in sources_of(recipe, corpora, ratings):
            cut = cut_share(read, recipe["encoder"], layout)
            rows.append([name, source, str(layout.max_length), f"{cut:.1%}"])
    yield from markdown_table(["recipe", "trains on", "tokens", "cut"], rows, left=(0, 1))
    recipe = read_recipe(RECIPES / "judge-minilm.yaml")
    scoring = PairFormat(**recipe["layout"])
    yield ""
    rows = []
    for name in track(BENCHMARKS, "benchmarks"):
        benchmark = benchmarks.load(name, mirror=mirror)
        read = exchanges(benchmark)
        cut = cut_share(read, recipe["encoder"], scoring)
        rows.append([name, str(len(read)), str(scoring.max_length), f"{cut:.1%}"])
    yield from markdown_table(["benchmark", "rows", "tokens in scoring", "cut"], rows)


def main() -> None:
    """Count and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpora", required=True, type=Path, help="folder with NAME/SPLIT.jsonl.gz of each corpus")
    parser.add_argument("--ratings", required=True, type=Path, help="folder with SOURCE.jsonl.gz of each rated source")
    parser.add_argument("--mirror", type=Path, help="folder with the benchmarks' raw files (default: DIALEVAL_MIRROR)")
    parser.add_argument("--out", required=True, type=Path, help="the Markdown file to write")
    arguments = parser.parse_args()
    lines = list(tables(arguments.corpora, arguments.ratings, arguments.mirror))
    arguments.out.write_text("\n".join(lines) + "\n", "utf-8")


if __name__ == "__main__":
    main()
