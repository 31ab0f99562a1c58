"""Conversations to begin with; texts of our own."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Example:
    """A conversation, replies to choose among, what a person said, and what to look at."""

    turns: tuple[str, ...]
    replies: tuple[str, ...]
    reference: str
    lesson: str


EXAMPLES = {
    "Dinner": Example(
        ("Shall we cook tonight or order something?", "I am too tired to cook."),
        ("Then let us order a pizza.", "There is no milk left in the fridge.", "The exam will take about three hours."),
        "I can cook while you rest.",
        "One reply answers, one only shares the topic, one is about something else. Do all metrics see three steps?",
    ),
    "A dog that limps": Example(
        ("My dog has been limping since this morning.",),
        ("Poor thing. Maybe you should take him to the vet.", "You can pay by card at the counter."),
        "Oh no, did he hurt his paw on your walk?",
        "The easy case: one reply fits and one does not. The human percentile says more than the bare value does.",
    ),
    "A reply that fits anywhere": Example(
        ("Did you find your keys?", "Not yet, I have looked everywhere."),
        ("Maybe you left them in the car?", "I do not know.", "I like pancakes with syrup."),
        "Have you looked in the car?",
        "“I do not know” is never wrong and never interesting. Which metrics let it pass, and what does the judge say?",
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
        "The third reply repeats a word of the question: a metric that counts shared words would like it best.",
    ),
    "A contradiction": Example(
        ("Do you have any pets?", "No, I am allergic to animals.", "Oh, that is a pity."),
        ("Yes, I would love to have one, but it cannot be.", "My cat sleeps on my bed every night."),
        "I have got used to it, and I visit the zoo.",
        "The second reply is fluent and on topic, and cannot be true after what was said. Relevance alone misses that.",
    ),
    "Rude, dull, warm": Example(
        ("I did not get the job after all.", "Oh. What did they say?", "That I lack experience."),
        (
            "Well, you do lack experience.",
            "I see.",
            "I am sorry, that must hurt. Shall we look for another one together?",
        ),
        "Their loss! Something better will come.",
        "All three follow from what was said. What is left is how it is said: do the metrics agree on that?",
    ),
}

CONVERSATION = """Hi, did you have a good weekend?
I spent it hiking in the hills with my sister.
Oh, I love hiking! Where did you go?
Up to the old tower, the view over the lake is worth every step.
That sounds great! I have to try it soon.
Take the path from the mill then, it is much quieter."""
