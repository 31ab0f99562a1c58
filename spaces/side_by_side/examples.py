"""Conversations to begin with; texts of our own."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Example:
    """A conversation, replies to choose among, and what a person said."""

    turns: tuple[str, ...]
    replies: tuple[str, ...]
    reference: str


EXAMPLES = {
    "Dinner": Example(
        ("Shall we cook tonight or order something?", "I am too tired to cook."),
        ("Then let us order a pizza.", "There is no milk left in the fridge.", "The exam will take about three hours."),
        "I can cook while you rest.",
    ),
    "A dog that limps": Example(
        ("My dog has been limping since this morning.",),
        ("Poor thing. Maybe you should take him to the vet.", "You can pay by card at the counter."),
        "Oh no, did he hurt his paw on your walk?",
    ),
    "A reply that fits anywhere": Example(
        ("Did you find your keys?", "Not yet, I have looked everywhere."),
        ("Maybe you left them in the car?", "I do not know.", "I like pancakes with syrup."),
        "Have you looked in the car?",
    ),
    "A concert": Example(
        ("How was the concert last night?",),
        (
            "Loud, but the second half was wonderful.",
            "It was good.",
            "Concert concert concert.",
            "You pay at the door.",
        ),
        "Great, we danced until they switched the lights on!",
    ),
}

CONVERSATION = """Hi, did you have a good weekend?
I spent it hiking in the hills with my sister.
Oh, I love hiking! Where did you go?
Up to the old tower, the view over the lake is worth every step.
That sounds great! I have to try it soon.
Take the path from the mill then, it is much quieter."""
