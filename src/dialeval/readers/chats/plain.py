"""Products whose conversations are told by three names: of the list, of who speaks and of what is said."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

from dialeval.readers.chats.base import Message, Row, Turns, as_json, each, messages_in, read_message, some


@dataclass(frozen=True)
class Plain:
    """A list of messages, under `messages` where it is a row of messages that were put together."""

    where: str
    who: str
    what: str
    #: Between the parts of a text.
    joint: str = "\n"

    def matches(self, row: Row) -> bool:
        """Whether one of the first messages names its speaker and says something."""
        return some(messages_in(row, self.where), self.who, self.what)

    def turns(self, row: Row) -> Turns:
        """The messages in their order."""
        return Turns(each(as_json(row[self.where]), self.message))

    def message(self, raw: Row) -> Message | None:
        """One message; None where nobody is named."""
        who: Any = raw.get(self.who)
        who = who.get("role") or who.get("name") if isinstance(who, Mapping) else who
        if who is None or who == "" or isinstance(who, list | bool | float):
            return None
        if self.what not in raw:
            return Message(str(who), None)
        return read_message(raw, who, raw[self.what], joint=self.joint)


#: Products by their names; the first whose names stand in a row reads it.
PRODUCTS = {
    "OpenAI, Anthropic, Mistral, Hugging Face": Plain("messages", "role", "content"),
    "Vercel AI SDK": Plain("messages", "role", "parts", ""),
    "Open Assistant": Plain("messages", "role", "text"),
    "ShareGPT": Plain("conversations", "from", "value"),
    "LMSYS": Plain("conversation", "role", "content"),
    "Claude": Plain("chat_messages", "sender", "text"),
    "Gemini": Plain("contents", "role", "parts", ""),
    "MultiWOZ": Plain("turns", "speaker", "utterance"),
    "conversational test cases of deepeval": Plain("turns", "role", "content"),
    "Twilio": Plain("messages", "direction", "body"),
    "Botpress": Plain("messages", "direction", "payload"),
}

#: Help desks and exports that nobody has named yet: these names in any combination.
ANY = tuple(
    Plain(where, who, what)
    for where, who, what in product(
        "messages conversations conversation chat_messages turns comments dialogue dialog".split(),
        ("role", "from", "sender", "author", "speaker", "name"),
        ("content", "value", "text", "utterance", "message", "body"),
    )
)


@dataclass(frozen=True)
class Pairs:
    """A list of questions with their answers, which are one conversation."""

    where: str
    asked: str
    answered: str

    def matches(self, row: Row) -> bool:
        """Whether both stand in one object."""
        return some(messages_in(row, self.where), self.asked, self.answered)

    def turns(self, row: Row) -> Turns:
        """A turn of the user and one of the assistant for each."""
        sides = (("user", self.asked), ("assistant", self.answered))
        return Turns(
            each(
                (
                    {"role": role, "content": pair.get(key)}
                    for pair in messages_in(row, self.where)
                    for role, key in sides
                ),
                lambda raw: read_message(raw, raw["role"], raw["content"]),
            )
        )


PAIRS = tuple(
    Pairs(where, asked, answered)
    for where, asked, answered in product(
        "turns conversation dialogue dialog history messages".split(),
        "user human input question query queryText prompt".split(),
        "assistant bot ai gpt actual_output actualOutput answer output response reply fulfillmentText".split(),
    )
)


class Unknown:
    """A list of messages in which nobody is named: read to say what is missing."""

    def matches(self, row: Row) -> bool:
        """Whether the list is there."""
        return any(isinstance(as_json(row.get(key)), list | tuple) for key in ("messages", "conversations"))

    def turns(self, row: Row) -> Turns:
        """What is wrong with it."""
        form = "messages" if "messages" in row else "conversations"
        if not as_json(row[form]):
            raise ValueError(f"{form} holds no messages; each row is one conversation")
        return Plain(form, "role", "content").turns(row)
