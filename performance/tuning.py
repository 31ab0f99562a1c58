"""What `dialeval tune` gains, on human ratings: agreement before and after on conversations that it never saw.

    python performance/tuning.py --ratings RATINGS            # sets of 100, 300 and 1,000 rows
    python performance/tuning.py --ratings RATINGS --rows 300 --no-pairs     # three numbers, a few minutes

RATINGS holds `abc_eval.jsonl(.gz)` and so on, with the ids to leave out in `overlaps.json.gz`. Writes the
table in docs/tune.md. Times are processor time: what else the machine does does not count.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from measure import machine
from pages import replace_block
from rich.console import Console

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "training"))

import dialeval
from corpora.ratings import Rated, overlapping_ratings, read_ratings
from dialeval.core.scores import Scores
from dialeval.io.tables import markdown_table
from dialeval.tuning import crossing
from dialeval.tuning.opinions import Ratings, read_opinions

PAGE = Path(__file__).resolve().parent.parent / "docs" / "tune.md"
#: Rows of conversations that no tuning sees.
UNSEEN = 300
#: Sources of ratings. The judge's own training has seen the rows of dbdc4, and none of the others.
SOURCES = ("uss", "dbdc4", "abc_eval")
NO_FAULT = "empathetic"  # the one behaviour of ABC-Eval that people welcome


def ratings_of(row: Rated) -> list[float]:
    """One number for each person who rated a reply; higher is better."""
    if row.source == "abc_eval":
        faults = [given for name, given in row.ratings.items() if name != NO_FAULT]
        return [1.0 - max(given) for given in zip(*faults, strict=True)]
    if row.source == "dbdc4":
        worth = {"O": 1.0, "T": 0.5, "X": 0.0}
        return [worth[label] for label, count in row.ratings["no_breakdown"].items() for _ in range(count)]
    return [float(rating) for rating in row.ratings["satisfaction"]]


def as_row(row: Rated) -> dict[str, Any]:
    """A rated reply as a user writes it."""
    exchange = row.exchange
    beside = {"facts": list(exchange.facts), "following": exchange.following}
    row_of = {
        "context": list(exchange.context),
        "response": exchange.response,
        **{key: text for key, text in beside.items() if text},
    }
    return {**row_of, "dialogue": row.dialogue, "ratings": ratings_of(row)}


def divided(rows: Sequence[Rated], seed: int) -> tuple[list[Rated], list[Rated]]:
    """Whole conversations with so many unseen rows, and the rows of all others in an order drawn by chance."""
    rng = np.random.default_rng(seed)
    by_dialogue: dict[str, list[Rated]] = {}
    for row in rows:
        by_dialogue.setdefault(row.dialogue, []).append(row)
    names, unseen = list(by_dialogue), []
    order = [names[int(index)] for index in rng.permutation(len(names))]
    while len(unseen) < UNSEEN:
        unseen += by_dialogue[order.pop()]
    others = [row for name in order for row in by_dialogue[name]]
    return unseen, [others[int(index)] for index in rng.permutation(len(others))]


def pairs_of(rows: Sequence[Rated], count: int) -> list[dict[str, Any]]:
    """Two replies about the same facts, and which of them people found better; near ones tie."""
    by_dialogue: dict[str, list[Rated]] = {}
    for row in rows:
        by_dialogue.setdefault(row.dialogue, []).append(row)
    pairs = []
    for together in by_dialogue.values():
        for first, other in zip(together[::2], together[1::2], strict=False):
            lead = first.scores["overall"] - other.scores["overall"]
            pairs.append({
                "context": list(first.exchange.context), "facts": list(first.exchange.facts),
                "dialogue": first.dialogue, "response_a": first.exchange.response,
                "response_b": other.exchange.response,
                "preferred": "tie" if lead == 0 else "a" if lead > 0 else "b",
            })  # fmt: skip
    return pairs[:count]


class Unseen:
    """Rated replies of conversations that no tuning sees, and what the judge says of them before."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        opinions = read_opinions(dialeval.readers.Source(rows), empty="score")
        assert isinstance(opinions, Ratings)
        self.opinions = opinions
        self.before = dialeval.load("judge").score_exchanges(opinions.exchanges)

    def compared(self, checkpoint: Path) -> dict[str, Any]:
        """Agreement before and after, and the share of ratings in their intervals."""
        after = dialeval.load("judge", checkpoint=checkpoint).score_exchanges(self.opinions.exchanges)
        comparison = crossing.compare(self.opinions, self.before.values, after.values, resamples=2000, seed=0)
        figures = {name: getattr(comparison, name).record() for name in ("before", "after", "difference")}
        coverage = {"before": self._covered(self.before), "after": self._covered(after)}
        return {**figures, "coverage": coverage, "rows": len(self.opinions)}

    def _covered(self, scores: Scores) -> float:
        assert scores.interval is not None
        low, high = scores.interval.T
        return float(((low <= self.opinions.targets) & (self.opinions.targets <= high)).mean())


def measured(rows: list[dict[str, Any]], unseen: Unseen | None) -> dict[str, Any]:
    """Tune, then score what tuning has not seen."""
    with tempfile.TemporaryDirectory() as folder:
        started = time.process_time()
        tuned = dialeval.tune(rows, out=Path(folder) / "mine", empty="score")
        figures = {"rows": len(rows), "seconds": time.process_time() - started, "tuned": tuned.record()}
        return figures if unseen is None else {**figures, "unseen": unseen.compared(tuned.folder)}


def runs(arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """One after the other."""
    leave_out = overlapping_ratings(arguments.ratings / arguments.leave_out)
    for source in arguments.sources.split(","):
        rows = [row for row in read_ratings(arguments.ratings, source, leave_out=leave_out) if row.split == "train"]
        unseen, others = divided(rows, arguments.seed)
        held = Unseen([as_row(row) for row in unseen])
        sizes = [int(size) for size in arguments.rows.split(",")]
        for size in sizes:
            yield {"source": source, **measured([as_row(row) for row in others[:size]], held)}
    if arguments.pairs:
        rows = [row for row in read_ratings(arguments.ratings, "dstc7", leave_out=leave_out) if row.split == "dev"]
        yield {"source": "dstc7", **measured(pairs_of(rows, 300), None)}


def page(outcome: dict[str, Any]) -> str:
    """The table of docs/tune.md."""

    def shown(figures: Sequence[float]) -> str:
        return f"{figures[0]:.2f} [{figures[1]:.2f}, {figures[2]:.2f}]"

    lines = []
    for run in outcome["runs"]:
        tuned, unseen = run["tuned"], run.get("unseen")
        gained = "yes" if tuned["changed"] else "no"
        lines.append((
            f"{run['source']}{' (A/B)' if unseen is None else ''}", f"{run['rows']}",
            f"{run['seconds']:.0f}", shown(tuned["before"]), shown(tuned["after"]), gained,
            *((shown(unseen["before"]), shown(unseen["after"]), f"{unseen['coverage']['before']:.0%} → "
               f"{unseen['coverage']['after']:.0%}") if unseen else ("–",) * 3),
        ))  # fmt: skip
    header = ("ratings of", "rows", "s", "before", "after", "gain", "unseen: before", "after", "in their interval")
    threads, processor = outcome["machine"]["threads"], outcome["machine"]["processor"]
    return f"`{outcome['command']}` with {threads} thread(s) of {processor}:\n\n" + "\n".join(
        markdown_table(header, lines)
    )


def main() -> None:
    """Measure; each run is written as soon as it is there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ratings", type=Path, required=True, help="folder with SOURCE.jsonl(.gz)")
    parser.add_argument("--leave-out", default="overlaps.json.gz", help="its list of ids to leave out")
    parser.add_argument("--sources", default=",".join(SOURCES), help="separated by commas (default: %(default)s)")
    parser.add_argument("--rows", default="100,300,1000", help="sizes, separated by commas (default: %(default)s)")
    parser.add_argument("--pairs", action=argparse.BooleanOptionalAction, default=True, help="A/B preferences, too")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    given = [word if word != str(arguments.ratings) else "RATINGS" for word in sys.argv[1:]]
    outcome: dict[str, Any] = {"command": " ".join(["python performance/tuning.py", *given]), "machine": machine()}
    outcome["runs"] = []
    for run in runs(arguments):
        outcome["runs"].append(run)
        replace_block(PAGE, "figures of tuning.py", page(outcome))
        Console(stderr=True).print({name: value for name, value in run.items() if name != "tuned"})


if __name__ == "__main__":
    main()
