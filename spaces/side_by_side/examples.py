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
    "Lost keys": Example(
        ("Did you find your keys?", "Not yet, I have looked everywhere."),
        ("Maybe you left them in the car?", "I like pancakes with syrup.", "I do not know."),
        "Have you looked in the car?",
    ),
    "A cold office": Example(
        (
            "The heating in our office is broken again.",
            "Oh no. Have they said when it will be repaired?",
            "Not before Thursday, they have to order a part.",
        ),
        ("Then you had better bring a thick jumper.", "The exam will take about three hours."),
        "Can you work from home until then?",
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
