"""How often the judge puts a reply above its twin with a fault, on dialogues that its heads were not fitted on.

    python training/twins.py --corpora CORPORA --ratings RATINGS --out results/faults

Writes OUT/README.md: a row for each fault, a column for each corpus. Insults are of words that no head has seen, and no
rule knows any. Below it stands how many of the pairs of tests/data/pairs.jsonl, which were written for this alone, are
in the right order. `--checkpoint` names another judge than the small one.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from aspect_rows import PERSONA
from common import plain_errors, read_recipe
from corpora.dialogues import CorpusDialogue
from corpora.faults import Draw, contradicted, damage, insult, insulting, statement_of
from corpora.ratings import Rated
from dialeval.core.exchange import Exchange
from dialeval.io.files import read_json_lines
from dialeval.io.tables import markdown_table
from dialeval.judge.metric import Judge
from dialeval.judge.row_signs import own_turns
from dialeval.judge.rule import FEATURES
from dialeval.statistics.discrimination import auc
from judge import rated_rows
from judge_heads import fault_sources

CONTEXTS, CONVERSATIONS = 200, 60
WRITTEN = Path(__file__).parents[1] / "tests" / "data" / "pairs.jsonl"
#: Turns of a conversation; of shorter ones little can be wrong.
FEWEST_TURNS, MOST_TURNS = 6, 12
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
    exchange = candidates[0]
    return (exchange, replace(exchange, response=exchange.context[-1])) if exchange.context else None


def from_elsewhere(candidates: list[Exchange], draw: Draw) -> Twins:
    """A reply of another dialogue."""
    return candidates[0], candidates[-1]


def denied(candidates: list[Exchange], draw: Draw, *, facts: bool, truth: bool = False) -> Twins:
    """The contrary of what the facts, or own earlier turns, say behind the reply; its twin may have the truth there."""
    exchange = candidates[0]
    texts = [fact.removeprefix(PERSONA) for fact in exchange.facts] if facts else own_turns(exchange)
    for text in texts:
        statement = statement_of(text)
        contrary = contradicted(statement, draw) if statement else None
        if contrary and contrary != statement:
            true, false = (replace(exchange, response=f"{exchange.response} {end}") for end in (statement, contrary))
            return (true if truth else exchange), false
    return None


FAULTS: dict[str, Fault] = {
    "insult": insulted,
    "echo": echoed,
    **{kind.replace("_", " "): partial(damaged, kind=kind)
       for kind in ("doubled", "mashed", "shuffled", "shuffled_within_three", "dropped", "misinflected", "fragment")},
    "reply of another dialogue": from_elsewhere,
    "facts denied": partial(denied, facts=True),
    "facts denied, beside the truth": partial(denied, facts=True, truth=True),
    "itself denied": partial(denied, facts=False),
    "itself denied, beside the truth": partial(denied, facts=False, truth=True),
}  # fmt: skip


def twins_of(fault: Fault, contexts: list[list[Exchange]], draw: Draw) -> Iterator[tuple[Exchange, Exchange]]:
    """The twins of the contexts that allow any, CONTEXTS pairs at most."""
    count = 0
    for candidates in contexts:
        twins = fault(candidates, draw)
        if twins and count < CONTEXTS:
            count += 1
            yield twins


# --- whole conversations: the side that speaks second has the fault --------------------------------

Turns = Sequence[str]
#: By fault the values of conversations, and of their twins.
Values = dict[str, tuple[list[float], list[float]]]
#: From its turns, those of another conversation, and where its own turns stand.
Spoiled = Callable[[Turns, Turns, list[int], Draw], dict[int, str]]


def one_contradiction(turns: Turns, other: Turns, positions: list[int], draw: Draw) -> dict[int, str]:
    """The last own turn denies an earlier one."""
    for position in positions[:-1]:
        statement = statement_of(turns[position])
        contrary = contradicted(statement, draw) if statement else None
        if contrary and contrary != statement:
            return {positions[-1]: contrary}
    return {}


CONVERSATION_FAULTS: dict[str, Spoiled] = {
    "rude": lambda turns, other, side, draw: {n: insult(draw, held_out=True) for n in side},
    "one insult added": lambda turns, other, side, draw: {side[-1]: insulting(turns[side[-1]], draw, held_out=True)},
    "echoing": lambda turns, other, side, draw: {n: turns[n - 1] for n in side},
    "off the topic": lambda turns, other, side, draw: {n: other[n % len(other)] for n in side},
    "repeating itself": lambda turns, other, side, draw: dict.fromkeys(side, turns[side[0]]),
    "word salad": lambda turns, other, side, draw: {n: damage(turns[n], "shuffled", draw) or turns[n] for n in side},
    "one word": lambda turns, other, side, draw: dict.fromkeys(side, "Okay."),
    "denies itself": one_contradiction,
}


def judged_conversations(
    judge: Judge, dialogues: Sequence[CorpusDialogue]
) -> dict[str, tuple[list[float], list[float]]]:
    """Of those that are long enough, which are cut."""
    long = [dialogue.turns[:MOST_TURNS] for dialogue in dialogues if len(dialogue.turns) >= FEWEST_TURNS]
    long = long[: CONVERSATIONS + 1]
    true = judge.score_dialogues(long).values
    values = {}
    for name, spoil in CONVERSATION_FAULTS.items():
        draw, sound, spoiled = np.random.default_rng(3), [], []
        for number, turns in enumerate(long[:-1]):
            changed = spoil(turns, long[number + 1], list(range(1, len(turns), 2)), draw)
            if changed:
                sound.append(float(true[number]))
                spoiled.append([changed.get(position, turn) for position, turn in enumerate(turns)])
        if spoiled:
            values[name] = sound, [float(value) for value in judge.score_dialogues(spoiled).values]
    return values


def conversation_table(parts: Sequence[Values]) -> Iterator[str]:
    """Twins, and the AUC over all conversations of all corpora."""
    rows = []
    for name in CONVERSATION_FAULTS:
        sound = np.concatenate([part[name][0] for part in parts if name in part])
        spoiled = np.concatenate([part[name][1] for part in parts if name in part])
        right = np.repeat([1.0, 0.0], [len(sound), len(spoiled)])
        area = auc(right, np.concatenate([sound, spoiled])).value
        rows.append([name, f"{(sound > spoiled).mean():.0%} of {len(sound)}", f"{area:.2f}"])
    return markdown_table(["fault of a conversation", "above its twin", "AUC over conversations"], rows, left=(0,))


def contradictions(judge: Judge, rows: Sequence[Rated]) -> str:
    """How many replies that the judge calls contradictions of their own speaker raters call so, too."""
    rated = [row.scores["self contradiction"] > 0 for row in rows]
    left = judge.read([row.exchange for row in rows]).left
    called = (left[:, FEATURES.index("consistent")] < 1).tolist()
    both = sum(is_rated and other for is_rated, other in zip(rated, called, strict=True))
    return (
        f"Of {len(rows):,} replies of ABC-Eval the judge says of {sum(called)} that they deny what their speaker said; "
        f"raters agree on {both} of them, and name {sum(rated)}."
    )


def written_pairs(judge: Judge, rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """By kind, how many better replies have the higher value, and how many of those that are the shorter ones."""
    table = []
    for kind in dict.fromkeys(row["kind"] for row in rows):
        pairs = [row for row in rows if row["kind"] == kind]
        replies = [
            Exchange(context=row["context"], response=row[side], facts=row.get("facts", ()))
            for row in pairs
            for side in ("better", "worse")
        ]
        values = judge.judge(replies).values.reshape(-1, 2)
        right = values[:, 0] > values[:, 1]
        shorter = np.array([len(row["better"]) < len(row["worse"]) for row in pairs])
        table.append([kind, f"{right.mean():.0%} of {len(pairs)}", f"{right[shorter].mean():.0%} of {shorter.sum()}"])
    return markdown_table(["worse reply", "better one above it", "where that is shorter"], table, left=(0,))


def main() -> None:
    """Judge all twins and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpora", type=Path, required=True, help="folder of NAME/SPLIT.jsonl.gz")
    parser.add_argument("--ratings", type=Path, required=True, help="folder of SOURCE.jsonl.gz")
    parser.add_argument("--out", type=Path, required=True, help="folder of the table")
    parser.add_argument("--checkpoint", help="a judge (default: the small one)")
    arguments = parser.parse_args()
    recipe = read_recipe(Path(__file__).parent / "recipes" / "judge-minilm.yaml")
    judge, sources = Judge(arguments.checkpoint), fault_sources(recipe, arguments)
    columns: dict[str, list[str]] = {}
    whole = []
    for held_out in sources.held_out.values():
        order = np.random.default_rng(1).permutation(len(held_out))[: 5 * CONTEXTS]
        contexts = [held_out.get(int(index)).exchanges()[:4] for index in order]
        for name, fault in FAULTS.items():
            twins = list(twins_of(fault, contexts, np.random.default_rng(2)))
            cell = "-"
            if len(twins) >= 20:
                values = judge.judge([exchange for pair in twins for exchange in pair]).values.reshape(-1, 2)
                cell = f"{(values[:, 0] > values[:, 1]).mean():.0%} of {len(twins)}"
            columns.setdefault(name, []).append(cell)
        whole.append(judged_conversations(judge, held_out.dialogues))
    table = markdown_table(["fault", *sources.held_out], [[name, *cells] for name, cells in columns.items()], left=(0,))
    arguments.out.mkdir(parents=True, exist_ok=True)
    checkpoint = judge.signature()["checkpoint"]
    made = f"Made by `python training/twins.py` with `{checkpoint}`, on dialogues that its heads were not fitted on:"
    note = (
        "how many replies have the higher value. A denial stands behind the reply. Beside the truth: the true\n"
        "sentence stands behind its twin, so that both are as long and both repeat words."
    )
    lines = ["# Replies above their twins with a fault", f"{made}\n{note}", "\n".join(table)]
    lines += ["Of conversations the side that speaks second has the fault.", "\n".join(conversation_table(whole))]
    lines += [
        "Pairs written by hand: the worse reply is bland, untrue, or beside the point where either holds a list, a\n"
        "table or code. It is the longer one in half of them.",
        "\n".join(written_pairs(judge, read_json_lines(WRITTEN))),
    ]
    lines.append(contradictions(judge, rated_rows(recipe, arguments.ratings, "abc_eval")))
    (arguments.out / "README.md").write_text("\n\n".join(lines) + "\n", "utf-8")


if __name__ == "__main__":
    plain_errors(main)
