"""How an encoder grows with its training: the bare head for the next reply on held-out dialogues and on benchmarks.

    python training/growth.py --recipe training/recipes/trunk-mpnet-open.yaml --encoder FOLDER --out RUN

Reads a run of `training/trunk.py` and writes OUT/growth.jsonl, a line for every snapshot: replies seen, accuracy among
the candidates as the run's log has it, Spearman's correlation with people on benchmarks. Nothing is chosen by these.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch
from scipy.stats import spearmanr
from transformers import AutoTokenizer

from common import override, read_recipe
from dialeval import benchmarks
from dialeval.core.exchange import Exchange
from dialeval.encoders.layout import PairFormat, PairTokenizer
from dialeval.io.files import write_atomically
from trunk import Trainer

#: Those of single replies among the eight of `results/leaderboard.md`.
BENCHMARKS = (
    "convai2_grade",
    "dailydialog_grade",
    "empathetic_grade",
    "dailydialog_zhao",
    "persona_zhao",
    "persona_usr",
    "fed_turn",
)


def rated_replies(name: str) -> tuple[list[Exchange], list[float]]:
    """The rated replies of a benchmark, with the aspect that its leaderboard is about."""
    data = benchmarks.load(name)
    aspect = data.info.main_aspect or next(iter(data.info.aspects))
    rows = [row for row in data.select() if row["scores"][aspect] is not None]
    read = [Exchange(tuple(row["context"]), row["response"], facts=tuple(row["facts"] or ())) for row in rows]
    return read, [row["scores"][aspect] for row in rows]


def main() -> None:
    """Measure every snapshot."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recipe", type=Path, required=True)
    parser.add_argument("--encoder", type=Path, required=True, help="folder of the base encoder")
    parser.add_argument("--out", type=Path, required=True, help="folder of the run: contexts-N.pt and log.jsonl")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="what the run overrode")
    arguments = parser.parse_args()
    recipe, device = read_recipe(arguments.recipe), torch.device(arguments.device)
    override(recipe, arguments.set)
    lines = map(json.loads, (arguments.out / "log.jsonl").read_text().splitlines())
    accuracy = {line["contexts"]: line["mean"] for line in lines if line["event"] == "validation"}
    trainer = Trainer(recipe, arguments.encoder, torch.bfloat16, device, lora=recipe.get("lora"))
    tokenizer = PairTokenizer(AutoTokenizer.from_pretrained(arguments.encoder), PairFormat(**recipe["layout"]))
    rated = {name: rated_replies(name) for name in BENCHMARKS}
    snapshots = sorted((int(path.stem.split("-")[1]), path) for path in arguments.out.glob("contexts-*.pt"))
    grown = []
    for contexts, path in snapshots:
        trainer.load(torch.load(path, map_location=device))
        figures = {"replies": contexts * (1 + sum(recipe["negatives"].values())), "held_out": accuracy.get(contexts)}
        with trainer.by_mean(), torch.inference_mode():
            for name, (rows, people) in rated.items():
                scores = trainer.logits(tokenizer.pairs(rows), tokenizer.pad_id).cpu()
                figures[name] = round(float(spearmanr(scores, people).statistic), 4)
        figures["mean"] = round(sum(figures[name] for name in BENCHMARKS) / len(BENCHMARKS), 4)
        print(json.dumps(figures), flush=True)
        grown.append(json.dumps(figures))
    write_atomically(arguments.out / "growth.jsonl", grown)


if __name__ == "__main__":
    main()
