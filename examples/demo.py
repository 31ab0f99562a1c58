"""Score a sample conversation with every metric, through `evaluate.load("dialeval/...")`, and print a table.

Run by `make demo`. Everything comes from this machine: the modules from evaluate's cache (put there by
`dialeval install-modules`), the checkpoints from the package, the base encoder from the `offline` extra.
"""

from __future__ import annotations

import evaluate
from rich.console import Console
from rich.table import Table

from dialeval.metric import Level, metric_class
from dialeval.suite import ready_approaches

CONTEXTS = [
    ["Hi! What are you up to this weekend?", "I am flying to Lisbon to see my sister. We have not met for a year."],
    ["The heating in our office is broken again.", "Oh no. Have they said when it will be repaired?"],
    ["I finally passed my driving test!", "Wow, congratulations! How did you celebrate?"],
    ["Could you recommend a book for a long train ride?", "Sure. Do you like crime stories?"],
    ["My dog has been limping since this morning."],
    ["Shall we cook tonight or order something?", "I am too tired to cook."],
]
HUMAN = [
    "That sounds lovely. How long will you stay with her?",
    "Tomorrow at the earliest, so bring a thick jumper.",
    "I took my mother to the seaside in her old car.",
    "I do, as long as they are not too bloody.",
    "Poor thing. Maybe you should take him to the vet.",
    "Then let us order a pizza.",
]
SENSIBLE = [
    "How nice! Is it warm in Lisbon at this time of the year?",
    "They say that somebody will come this afternoon.",
    "We went out for dinner with some friends.",
    "Yes, I love them. Which one is your favourite?",
    "Did he hurt his paw on your walk?",
    "Good idea, what about Indian food?",
]
OFF_TOPIC = [
    "The library closes at six on Fridays.",
    "I would like two tickets for the late show, please.",
    "My brother plays the trumpet in a band.",
    "There is no milk left in the fridge.",
    "You can pay by card at the counter.",
    "The exam will take about three hours.",
]


def main() -> None:
    """Two speakers answer the same six contexts; every metric judges the two."""
    modules = ready_approaches()
    speakers = {"a second human-like reply": SENSIBLE, "a reply to something else": OFF_TOPIC}
    table = Table(title="Mean score of six replies", caption="Arrows show which way is better.")
    table.add_column("metric")
    table.add_column("level")
    for speaker in speakers:
        table.add_column(speaker, justify="right")
    signatures = []
    for name in modules:
        module = evaluate.load(f"dialeval/{name}")
        info = metric_class(name)[0].info
        cells = []
        for replies in speakers.values():
            result = module.compute(predictions=replies, contexts=CONTEXTS, references=[[text] for text in HUMAN])
            cells.append(f"{result[name]:.3f}")
        arrow = "↑" if info.higher_is_better else "↓"
        table.add_row(f"{info.title} {arrow}", str(info.level), *cells)
        signatures.append(result["signature"])
    console = Console()
    console.print(table)
    density = evaluate.load("dialeval/density")
    console.print(
        "\n[bold]One conversation, turn by turn[/bold] (DENSITY as the share of human replies that score lower)"
    )
    for reply in (HUMAN[0], SENSIBLE[0], OFF_TOPIC[0]):
        result = density.compute(predictions=[reply], contexts=[CONTEXTS[0]], scale="human_percentile")
        console.print(f"  {result['density']:5.0%}  {reply}")
    turn_level = sum(metric_class(name)[0].info.level is Level.TURN for name in modules)
    console.print(f"\n{turn_level} turn-level and {len(modules) - turn_level} system-level metrics. Signatures:")
    for signature in signatures:
        console.print(f"  {signature}", soft_wrap=True, highlight=False)


if __name__ == "__main__":
    main()
