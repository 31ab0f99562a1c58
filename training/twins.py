"""How often the judge puts a reply above its twin with a fault, on dialogues that its heads were not fitted on.

    python training/twins.py --corpora CORPORA --ratings RATINGS --out results/faults

Writes OUT/README.md: a row for each fault, a column for each corpus. Insults are of words that no head has seen.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from common import plain_errors, read_recipe
from corpora.faults import Draw, contradicted, damage, insulting, statement_of
from dialeval.approaches.judge import Judge
from dialeval.approaches.row_signs import own_turns
from dialeval.exchange import Exchange
from dialeval.tables import markdown_table
from judge_heads import fault_sources

CONTEXTS = 200
#: A reply and its twin, or None where a reply cannot have this fault.
Twins = tuple[Exchange, Exchange] | None
#: From a context's candidates, the true reply first.
Fault = Callable[[list[Exchange], Draw], Twins]


def damaged(candidates: list[Exchange], draw: Draw, *, kind: str) -> Twins:
    """Words out of order, said twice, mashed and so on."""
    broken = damage(candidates[0].response, kind, draw)
    return (candidates[0], replace(candidates[0], response=broken)) if broken else None


def insulted(candidates: list[Exchange], draw: Draw) -> Twins:
    """The reply with an insult before, in or behind it."""
    return candidates[0], replace(candidates[0], response=insulting(candidates[0].response, draw, held_out=True))


def echoed(candidates: list[Exchange], draw: Draw) -> Twins:
    """The turn before, said again."""
    one = candidates[0]
    return (one, replace(one, response=one.context[-1])) if one.context else None


def from_elsewhere(candidates: list[Exchange], draw: Draw) -> Twins:
    """A reply of another dialogue."""
    return candidates[0], candidates[-1]


def denied(candidates: list[Exchange], draw: Draw, *, facts: bool) -> Twins:
    """What the facts, or own earlier turns, say and its contrary, behind the reply."""
    one = candidates[0]
    said = [fact.removeprefix("your persona: ") for fact in one.facts] if facts else own_turns(one)
    for text in said:
        statement = statement_of(text)
        contrary = contradicted(statement, draw) if statement else None
        if contrary and contrary != statement:
            return tuple(replace(one, response=f"{one.response} {end}") for end in (statement, contrary))  # type: ignore[return-value]
    return None


FAULTS: dict[str, Fault] = {
    "insult": insulted,
    "echo": echoed,
    **{kind.replace("_", " "): partial(damaged, kind=kind)
       for kind in ("doubled", "mashed", "shuffled", "shuffled_within_three", "dropped", "misinflected", "fragment")},
    "reply of another dialogue": from_elsewhere,
    "facts denied": partial(denied, facts=True),
    "itself denied": partial(denied, facts=False),
}  # fmt: skip


def twins_of(fault: Fault, contexts: list[list[Exchange]], draw: Draw) -> Iterator[tuple[Exchange, Exchange]]:
    """As many as are asked for, or as there are."""
    found = 0
    for candidates in contexts:
        twins = fault(candidates, draw)
        if twins and found < CONTEXTS:
            found += 1
            yield twins


def main() -> None:
    """Judge all twins and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpora", type=Path, required=True, help="folder of NAME/SPLIT.jsonl.gz")
    parser.add_argument("--ratings", type=Path, required=True, help="folder of SOURCE.jsonl.gz")
    parser.add_argument("--out", type=Path, required=True, help="folder of the table")
    arguments = parser.parse_args()
    recipe = read_recipe(Path(__file__).parent / "recipes" / "judge-minilm.yaml")
    judge, sources = Judge(), fault_sources(recipe, arguments)
    columns: dict[str, list[str]] = {}
    for held_out in sources.held_out.values():
        order = np.random.default_rng(1).permutation(len(held_out))[: 5 * CONTEXTS]
        contexts = [held_out.get(int(at)).exchanges()[:4] for at in order]
        for name, fault in FAULTS.items():
            twins = list(twins_of(fault, contexts, np.random.default_rng(2)))
            cell = "-"
            if len(twins) >= 20:
                values = judge.judge([one for pair in twins for one in pair]).values.reshape(-1, 2)
                cell = f"{(values[:, 0] > values[:, 1]).mean():.0%} of {len(twins)}"
            columns.setdefault(name, []).append(cell)
    table = markdown_table(["fault", *sources.held_out], [[name, *cells] for name, cells in columns.items()], left=(0,))
    arguments.out.mkdir(parents=True, exist_ok=True)
    checkpoint = judge.signature()["checkpoint"]
    made = f"Made by `python training/twins.py` with `{checkpoint}`, on dialogues that its heads were not fitted on:"
    told = "how many replies have the higher value. A denial stands behind the reply, the truth behind its twin."
    lines = ["# Replies above their twins with a fault", f"{made}\n{told}", "\n".join(table)]
    (arguments.out / "README.md").write_text("\n\n".join(lines) + "\n", "utf-8")


if __name__ == "__main__":
    plain_errors(main)
