"""How often the judge charges sound replies with a fault: people's, assistants' answers, and answers that hold code.

    python training/charges.py --corpora CORPORA --out results/charges

Writes OUT/CHECKPOINT.json: by fault how many of 1,000 replies are charged, over all of them and in each source, and
which they are. No weight was fitted to these dialogues; of a corpus without such a split they are every fifth one,
which `judge_heads.py` keeps for measuring. `--checkpoint` names another judge than the small one. Some replies of
people and of weak assistants do have the fault, so that no judge should come down to nought.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest

from common import left_out, plain_errors, read_recipe
from corpora.dialogues import read_corpus
from dialeval.core.exchange import Exchange
from dialeval.io.files import safe_name, write_atomically
from dialeval.judge.metric import Judge

#: Whose replies are counted: splits of which all dialogues are read, and those of which every fifth one is.
PEOPLE: Mapping[str, Sequence[str]] = {
    "dailydialog": ["validation"],
    "convai2": ["validation"],
    "empathetic_dialogues": ["validation"],
    "chitchat": ["validation"],
    "sgd": ["validation"],
    "taskmaster4": ["train"],
    "dream": ["validation", "test"],
    "esconv": ["test"],
    "counsel_chat": ["validation", "test"],
}
ASSISTANTS: Mapping[str, Sequence[str]] = {"assistant": ["validation", "train"]}
#: What marks an answer that holds code, and how the sources of answers are called.
FENCE, ANSWERS, CODE = "```", "answers of assistants", "answers with code"
FIFTH = 5
#: How often an interval over so many replies holds the rate.
CONFIDENCE = 0.95


def read_sources(root: Path, unwanted: frozenset[str], most: int) -> dict[str, list[Exchange]]:
    """At most so many replies of each source, drawn without a look at the judge."""
    replies: dict[str, list[Exchange]] = {}
    for name, splits in {**PEOPLE, **ASSISTANTS}.items():
        for split in splits:
            dialogues = read_corpus(root, name, split, leave_out=unwanted)[:: FIFTH if split == "train" else 1]
            rows = [dialogue.exchange(turn) for dialogue in dialogues for turn in range(1, len(dialogue.turns))]
            for row in rows:
                answers = CODE if FENCE in row.response else ANSWERS
                replies.setdefault(answers if name in ASSISTANTS else name, []).append(row)
    drawn = {}
    for number, (source, rows) in enumerate(replies.items()):
        order = np.random.default_rng([7, number]).permutation(len(rows))[:most]
        drawn[source] = [rows[int(index)] for index in order]
    return drawn


def charged(judge: Judge, rows: Sequence[Exchange]) -> dict[str, NDArray[np.float64]]:
    """By aspect: 1 where the judge charges the reply with its fault, 0 where not, NaN where it cannot have it."""
    read = judge.read(rows, progress=True)
    values = judge.aspects_of(read)
    return {
        aspect: np.where(np.isnan(values[aspect]), np.nan, values[aspect] < fault.below)
        for aspect, fault in judge.faults().items()
    }


def rate(charges: Sequence[NDArray[np.float64]]) -> dict[str, Any]:
    """How many of 1,000 replies that can have the fault are charged with it, and the interval of that rate."""
    judged, count = (int(sum(number(part).sum() for part in charges)) for number in (np.isfinite, np.nan_to_num))
    if not judged:
        return {"replies": 0, "charged": 0}
    low, high = binomtest(count, judged).proportion_ci(CONFIDENCE, method="wilson")
    per_1000 = [round(1000 * float(share), 2) for share in (count / judged, low, high)]
    return {"replies": judged, "charged": count, "per_1000": per_1000[0], "interval": per_1000[1:]}


def measure(judge: Judge, sources: Mapping[str, Sequence[Exchange]]) -> dict[str, Any]:
    """The rates by fault: over all sources, over people's, and in each, with the ids of the charged replies."""
    charges = {source: charged(judge, rows) for source, rows in sources.items()}
    figures: dict[str, Any] = {}
    for aspect, fault in judge.faults().items():
        of_source = {source: part[aspect] for source, part in charges.items() if np.isfinite(part[aspect]).any()}
        people = [part for source, part in of_source.items() if source in PEOPLE]
        figures[aspect] = {
            "says": fault.adjective,
            **rate(list(of_source.values())),
            "people": rate(people),
            "sources": {
                source: {**rate([part]), "which": [sources[source][int(row)].id for row in np.flatnonzero(part == 1)]}
                for source, part in of_source.items()
            },
        }
    return figures


def main() -> None:
    """Judge the replies and write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpora", type=Path, required=True, help="folder of NAME/SPLIT.jsonl.gz")
    parser.add_argument("--out", type=Path, required=True, help="folder of the files, one for each checkpoint")
    parser.add_argument("--checkpoint", help="a judge (default: the small one)")
    parser.add_argument("--replies", type=int, default=1000, help="of each source at most (default: %(default)s)")
    parser.add_argument("--cpu", action="store_true", help="stay on the CPU even if there is a GPU")
    arguments = parser.parse_args()
    recipe = read_recipe(Path(__file__).parent / "recipes" / "judge-minilm.yaml")
    sources = read_sources(arguments.corpora, left_out(recipe, arguments.corpora), arguments.replies)
    judge = Judge(arguments.checkpoint, device="cpu" if arguments.cpu else None)
    checkpoint = judge.signature()["checkpoint"]
    named = f" --checkpoint {arguments.checkpoint}" if arguments.checkpoint else ""
    record = {
        "made_by": f"python training/charges.py{named} --replies {arguments.replies}",
        "checkpoint": checkpoint,
        "replies": {source: len(rows) for source, rows in sources.items()},
        "faults": measure(judge, sources),
    }
    name = safe_name(Path(checkpoint.split("@")[0]).name)
    arguments.out.mkdir(parents=True, exist_ok=True)
    write_atomically(arguments.out / f"{name}.json", [json.dumps(record, indent=1)])


if __name__ == "__main__":
    plain_errors(main)
