"""Score a sample of small talk with every metric, through `evaluate.load("dialeval/...")`, and print a table.

Run by `make demo`. Everything comes from this machine: the modules from evaluate's cache (put there by
`dialeval install-modules`), the checkpoints from the package, the base encoder from the `offline` extra.
"""

from __future__ import annotations

from typing import Any

import evaluate
from rich.console import Console
from rich.table import Table
from sample import ANSWERS, CONTEXTS, PERSON, REPEATS

from dialeval.registry import metric_class, ready_approaches
from dialeval.registry.interface import Level, MetricInfo

CONTEXT = ["How was your trip?", "It was great, but I lost my suitcase on the way back."]
REPLIES = {
    "good": "Oh no! Did you get it back?",
    "good, too": "I am sorry to hear that. Did you tell the airline?",
    "off the topic": "The library closes at six on Fridays.",
    "an echo": "It was great, but I lost my suitcase on the way back.",
}
REFERENCE = "That is annoying. Did the airline find it?"


def loaded() -> dict[str, tuple[Any, MetricInfo]]:
    """Every metric that needs no download, as an `evaluate` module, and what it says about itself."""
    # With HF_EVALUATE_OFFLINE the cache is the only place to look, and evaluate warns of having looked there.
    evaluate.logging.set_verbosity_error()
    return {name: (evaluate.load(f"dialeval/{name}"), metric_class(name)[0].info) for name in ready_approaches()}


def arrow(info: MetricInfo) -> str:
    """Which way is better."""
    return "↑" if info.higher_is_better else "↓"


def one_conversation(console: Console, metrics: dict[str, tuple[Any, MetricInfo]]) -> None:
    """Several replies to one context, by the metrics that judge single replies."""
    console.print("[bold]One conversation: which reply is better?[/bold]")
    for turn in CONTEXT:
        console.print(f"  – {turn}")
    console.print()
    for kind, reply in REPLIES.items():
        console.print(f"  [bold]{kind:14}[/bold] {reply}")
    console.print(f"  [bold]{'a person said':14}[/bold] {REFERENCE} (which CMN compares with)")
    table = Table("metric")
    for kind in REPLIES:
        table.add_column(kind, justify="right")
    given = {"predictions": list(REPLIES.values()), "contexts": [CONTEXT] * len(REPLIES)}
    given["references"] = [[REFERENCE]] * len(REPLIES)
    for module, info in metrics.values():
        if info.level is Level.TURN:
            scores = module.compute(**given)["scores"]
            table.add_row(f"{info.title} {arrow(info)}", *[f"{value:.2f}" for value in scores])
    console.print(table)


def two_systems(console: Console, metrics: dict[str, tuple[Any, MetricInfo]]) -> dict[str, str]:
    """Two systems on the same contexts, by every metric; returns the signatures."""
    systems = {"answers": ANSWERS, "repeats phrases": REPEATS}
    console.print(f"[bold]Two systems, up to {len(CONTEXTS)} replies each: one answers, one repeats phrases[/bold]")
    table = Table("metric", "judges")
    some = range(0, len(CONTEXTS), 5)  # of single replies, whose mean needs fewer than the shape of a whole set
    for system in systems:
        table.add_column(system, justify="right")
    signatures = {}
    for name, (module, info) in metrics.items():
        chosen = some if info.level is Level.TURN else range(len(CONTEXTS))
        contexts, references = [CONTEXTS[index] for index in chosen], [[PERSON[index]] for index in chosen]
        results = [
            module.compute(predictions=[replies[index] for index in chosen], contexts=contexts, references=references)
            for replies in systems.values()
        ]
        judges = f"each of {len(some)}" if info.level is Level.TURN else f"all {len(CONTEXTS)}"
        table.add_row(f"{info.title} {arrow(info)}", judges, *[f"{result[name]:.3f}" for result in results])
        signatures[name] = results[0]["signature"]
    console.print(table)
    return signatures


def main() -> None:
    """A conversation, then two systems, then where to go on."""
    console = Console()
    metrics = loaded()
    one_conversation(console, metrics)
    console.print("\nArrows show which way is better; compare values of one metric with each other only.")
    console.print("A value for a system is the mean over its replies, or of the whole set.\n")
    signatures = two_systems(console, metrics)
    console.print("\nEvery number carries a signature with all that is needed to get it again, here DEB's:")
    console.print(f"  {signatures['deb']}", soft_wrap=True, highlight=False)
    console.print(
        "\n[bold]Next:[/bold] put your own conversations into a file, one "
        '{"context": ["turn", "turn"], "response": "reply"} a line, and run '
        "[bold].venv/bin/dialeval score --metric deb --input FILE[/bold].",
        soft_wrap=True,
        highlight=False,
    )


if __name__ == "__main__":
    main()
