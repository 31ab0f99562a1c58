"""The sentences that a user reads: help, errors and reasons, as `tests/golden/sentences.txt` holds them.

`PYTHONPATH=.:tests/support python tests/golden/sentences.py` writes that file anew; look at what changed before
committing it.
"""

import json
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np
from typer.main import get_command
from typer.testing import CliRunner

import overlap_metric
import reproduce.__main__ as reproduce
from dialeval.cli import build_app
from dialeval.core.exchange import Exchange
from dialeval.core.scores import Statement
from dialeval.judge import lexical
from dialeval.judge.reasons import reason, statements, with_weakest
from dialeval.judge.row_signs import DialogueSigns, TurnSigns
from dialeval.judge.rule import ASPECTS, DIALOGUE_ASPECTS, DIALOGUE_FEATURES, FEATURES
from dialeval.judge.verdicts import compare_replies
from dialeval.registry.interface import Judged

GOLDEN = Path(__file__).parents[1] / "golden" / "sentences.txt"

ROW = {"context": ["Hi!"], "response": "Hello.", "reference": "Hello!", "id": "a", "system": "bot"}
#: Files that the commands below read.
FILES = {
    "rows.jsonl": json.dumps(ROW) + "\n",
    "bad.jsonl": json.dumps({**ROW, "response": 7}) + "\n",
    "no_json.jsonl": "hello\n",
    "empty.jsonl": "",
    "one.csv": "context,other\nHi!,Hello.\n",
    "talks.jsonl": '{"dialogue": ["Hi!", "Hello."]}\n',
    "scores.jsonl": '{"id": "a", "density": 1.0}\n',
    "other.jsonl": '{"id": "b", "density": 1.0}\n',
}
#: Commands that cannot do what they are asked. What click itself says is not ours.
WRONG = """
score -m overlop -i rows.jsonl -o out.jsonl
score -m overlap -i nothing.jsonl -o out.jsonl
score -m overlap -i bad.jsonl -o out.jsonl
score -m overlap -i no_json.jsonl -o out.jsonl
score -m overlap -i empty.jsonl -o out.jsonl
score -m overlap -i one.csv -o out.jsonl
score -m overlap -i rows.jsonl -o rows.jsonl
score -m overlap -i rows.jsonl -o scores.jsonl
score -m overlap -i rows.jsonl -o out.txt
score -m overlap -i rows.jsonl -o nowhere/out.jsonl
score -m overlap -i rows.jsonl -o out.jsonl --checkpoint somewhere
score -m overlap -i rows.jsonl -o out.jsonl --columns answer=reply
score -m overlap -i rows.jsonl -o out.jsonl --explain short
score -m overlap -i rows.jsonl -o out.jsonl --level dialogue
score -m overlap -i talks.jsonl -o out.jsonl
score -m density -i rows.jsonl -o out.jsonl --checkpoint nowhere
score -m llm:judge.yaml -i rows.jsonl -o out.jsonl
llm-score -i rows.jsonl -o out.jsonl
info bleu1
rank rows.jsonl -m bleu2
rank rows.jsonl rows.jsonl -m bleu2
gate rows.jsonl -b nothing.jsonl -m bleu2 --margin 0.1
gate rows.jsonl -b rows.jsonl -m fbd --margin 0.1
gate rows.jsonl -b rows.jsonl -m bleu2 --margin 0.1 --json rows.jsonl
gate rows.jsonl -b rows.jsonl -m bleu2 --margin 2
compare scores.jsonl other.jsonl
compare scores.jsonl nothing.jsonl
tune rows.jsonl --out mine
agreement -m densty -b rows.jsonl -o out
agreement -m bleu2 -b nothing -o out
agreement -m bleu2 -b rows.jsonl -o out --plots pdf
robustness -m bleu1 -i rows.jsonl -o out --attacks jumbel
benchmarks info convai_grade
plot scores nothing.jsonl --out out
""".strip().splitlines()


def helps(command: click.Command, name: str) -> Iterator[str]:
    yield f"\n{name}\n  {' '.join((command.help or '').split())}"
    for one in command.params:
        if said := getattr(one, "help", None):
            yield f"  {', '.join(one.opts)}: {' '.join(said.split())}"
    for sub, inner in getattr(command, "commands", {}).items():
        yield from helps(inner, f"{name} {sub}")


def errors() -> Iterator[str]:
    """The exit code and the last line of each wrong command."""
    overlap_metric.register()
    app, before = build_app(), Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            for name, content in FILES.items():
                Path(name).write_text(content)
            for line in WRONG:
                done = CliRunner().invoke(app, line.split(), env={"COLUMNS": "1000", "TERM": "dumb", "NO_COLOR": "1"})
                (*_, said) = [text for text in done.stderr.splitlines() if text.strip()]
                yield f"\n$ dialeval {line}\n{done.exit_code} {said.replace(str(Path.cwd()), '.')}"
        finally:
            os.chdir(before)


def turn(**given: Any) -> TurnSigns:
    """What is read from a reply, where it is plain but for what is given."""
    nothing: dict[str, Any] = {"repetition": lexical.Repetition(0, 0), "facts": None, "specific": 0.0}
    return TurnSigns(**{**nothing, **given})


def reasons() -> Iterator[str]:
    """The judge's reasons for what moved a value: the signs, the shares of human replies, and how far it moved."""
    flat = np.full(lexical.IDF_BUCKETS, 5.0)
    again = lexical.repetition(lexical.Text("i like to eat i like to eat i like to eat"), [], flat)
    fish = lexical.Text("do you like to eat fish")
    copied = lexical.repetition(fish, [fish], flat)
    talk = DialogueSigns(*[0.5] * 7, complaint="what?", exclaimed="ha!")
    cases: list[tuple[TurnSigns | DialogueSigns, dict[str, tuple[float, float]], dict[str, float]]] = [
        (turn(), {}, {"next": -0.1, "fluent": 0.02, "not_repetitive": 0.011}),
        (turn(), {}, {"next": 0.0099, "reaction": 0.02}),
        (turn(), {}, {"next": 0.009, "fluent": -0.009}),
        (turn(), {}, {"valid": 0.006, "follows": 0.006}),
        (turn(), {"relevant": (0.12, 0.88)}, {"next": -0.1, "not_repetitive": 0.05}),
        *((turn(), {"relevant": (share, 0.0)}, {"next": 0.1}) for share in (1.0, 0.9999, 0.75, 0.29, 0.5, 0.0)),
        *((turn(), {"relevant": (0.0, share)}, {"next": -0.1}) for share in (1.0, 0.9999, 0.75, 0.29, 0.5, 0.0)),
        (turn(asked=True), {"relevant": (0.07, 0.93)}, {"next": -0.1}),
        *((turn(), {}, {name: -0.3}) for name in ("fluent", "respectful", "faithful", "consistent")),
        (turn(passages={"fluent": "Hklk hklk."}), {}, {"fluent": -0.3}),
        (turn(), {"fluent": (0.3, 0.7)}, {"fluent": -0.02}),
        *((turn(), {"fluent": (0.02, share)}, {"fluent": amount}) for share in (0.75, 0.98) for amount in (-0.3, 0.3)),
        (turn(passages={"respectful": "You idiot."}), {}, {"next": -0.01, "respectful": -0.2}),
        *((turn(wordless=text), {}, {"next": -0.3, "reaction": 0.1}) for text in ("", "...")),
        (turn(repetition=again), {}, {"not_repetitive": -0.2}),
        (turn(repetition=again), {}, {"not_repetitive": 0.02}),
        (turn(repetition=copied), {}, {"not_repetitive": -0.2}),
        (turn(facts=lexical.FactUse(0.5, ("dog", "fish")), n_facts=3), {}, {"uses_facts": 0.1}),
        (turn(facts=lexical.FactUse(0.5, ("dog", "fish")), n_facts=3), {}, {"uses_facts": -0.1}),
        (turn(facts=lexical.FactUse(0, ()), n_facts=3), {}, {"uses_facts": -0.1}),
        (turn(facts=lexical.FactUse(0, ()), n_facts=1), {}, {"uses_facts": -0.1}),
        (turn(following="what do you mean?"), {}, {"reaction": -0.1}),
        (turn(following="ok."), {}, {"reaction": -0.1}),
        *((turn(following=text), {}, {"reaction": -0.1}) for text in ("what? " * 30, "a" * 60, "a" * 61)),
        (turn(following="great!"), {}, {"reaction": 0.1}),
        *((talk, {}, moved) for moved in (
            {"satisfied": 0.1, "lively": 0.02}, {"lively": 0.1}, {"engaged": 0.1, "satisfied": -0.02},
            {"satisfied": -0.1, "lively": 0.02}, {"engaged": -0.1, "satisfied": -0.02},
            {"coherent": -0.1}, {"coherent": 0.1}, {"not_repetitive": 0.1}, {"not_echoing": 0.1},
            {"not_repetitive": 0.1, "not_echoing": 0.1}, {"not_repetitive": -0.1}, {"not_echoing": -0.1},
        )),
        (replace(talk, repeated="okay"), {}, {"not_repetitive": 0.1}),
        (replace(talk, rude="You idiot."), {}, {"coherent": -0.1}),
        (replace(talk, rude="You idiot."), {}, {"coherent": 0.1}),
        *((replace(talk, **{"not_echoing": 1.0, **why}), {}, {"coherent": -0.4}) for why in (
            {"said_again": 0.5, "repeated": "Okay."}, {"not_echoing": 0.5, "echoed": "Hi there!"},
            {"denying": "I never ski"}, {"said_again": 0.4, "not_echoing": 0.6, "repeated": "Okay."},
            {"rude": "You idiot!", "said_again": 1.0, "repeated": "x"},
        )),
    ]  # fmt: skip
    for read, shares, moved in cases:
        turns = isinstance(read, TurnSigns)
        names, aspects = (FEATURES, ASPECTS) if turns else (DIALOGUE_FEATURES, DIALOGUE_ASPECTS)
        whole = {name: moved.get(name, 0.0) for name in names}
        given = (whole, aspects, read, shares)
        weakest = "" if isinstance(read, DialogueSigns) else f" / {with_weakest('It is so.', 1, statements(*given))}"
        yield f"{reason(*given, full=True)} / {reason(*given)}{weakest}"


class Given(overlap_metric.Overlap):
    """A judge whose statements about each reply are given: its value is one half and what moved it."""

    info = replace(
        overlap_metric.Overlap.info, aspects=("relevant", "respectful", "not_repetitive", "reaction"), explains=True
    )

    def __init__(self, rows: list[dict[str, tuple[float, str]]]) -> None:
        super().__init__()
        made = [[Statement(aspect, *said) for aspect, said in row.items()] for row in rows]
        self.rows = tuple(tuple(sorted(row, key=lambda one: -abs(one.amount))) for row in made)

    def judge(self, exchanges: Sequence[Exchange], *, progress: bool = False) -> Judged:
        values = np.array([0.5 + sum(one.amount for one in row) for row in self.rows])
        reasons = tuple("; ".join(one.words for one in row) for row in self.rows)
        return Judged(values, reasons=reasons, statements=self.rows, interval=np.stack([values, values], axis=1))


def fits(amount: float) -> dict[str, tuple[float, str]]:
    how = "fits what was said: fits this context better" if amount > 0 else "does not fit what was said: fits it worse"
    return {"relevant": (amount, f"{how} than {50 + abs(amount) * 100:.0f} % of human replies")}


def comparisons() -> Iterator[str]:
    """Which of some replies is best and why: every clause names its reply, and none accuses it of another's fault."""
    fine, again = {"not_repetitive": (0.05, "repeats nothing")}, {"not_repetitive": (-0.2, "repeats an earlier turn")}
    rude, usual = {"respectful": (-0.3, 'is rude ("you idiot")')}, "fits this context like most human replies"
    cold = {"reaction": (-0.2, 'the other side does not take it well ("ok.")')}
    for rows in (
        # The fault of the lower reply stands as its own; what speaks against the best one is no reason why it is best.
        [fits(0.4) | fine, fits(0.3) | again], [fits(-0.3) | rude, fits(-0.3)], [fits(0.1), fits(-0.3)],
        # Two that have the same merit, or fault, are told apart by how much of it they have.
        [fits(0.4), fits(0.1)], [fits(-0.4), fits(-0.1)],
        # Replies like most others are compared with each other.
        [{"relevant": (0.05, usual)} | fine, {"relevant": (0.05, usual)}],
        [{"relevant": (0.05, usual)}, {"relevant": (-0.1, usual)}],
        [{"relevant": (-0.2, usual)}, fits(-0.4) | rude],
        # What follows is the same for all of them, and no merit or fault of one.
        [fits(0.1) | cold, fits(-0.3) | cold],
        [fits(0.4), fits(0.3) | again, fits(-0.2) | rude], [fits(0.4), fits(0.4), rude], [fits(0.4) | again, rude],
        [fine | fits(0.01), fine],
    ):  # fmt: skip
        yield compare_replies(Given(rows), ["How was your trip?"], ["1"] * len(rows)).sentence


def sentences() -> str:
    """All of them."""
    lines = [
        "# Help",
        *helps(get_command(build_app()), "dialeval"),
        *helps(get_command(reproduce.build_app()), "python -m reproduce"),
        "\n# Errors",
        *errors(),
        "\n# Reasons\n",
        *reasons(),
        "\n# Comparisons\n",
        *comparisons(),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    GOLDEN.write_text(sentences(), encoding="utf-8")
    print(GOLDEN, file=sys.stderr)
