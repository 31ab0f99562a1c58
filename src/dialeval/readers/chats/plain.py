"""Products whose conversations are told by three names: of the list, of who speaks and of what is said."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain, product, starmap
from typing import Any

from dialeval.readers.chats.messages import Message, Product, Row, Turns, as_json, each, messages_in, read_message, some


def plain(where: str, who: str, what: str, joint: str = "\n") -> Product:
    """A list of messages, under `messages` where it is a row of messages that were put together."""

    def message(raw: Row) -> Message | None:
        speaker: Any = raw.get(who)
        speaker = speaker.get("role") or speaker.get("name") if isinstance(speaker, Mapping) else speaker
        if speaker is None or speaker == "" or isinstance(speaker, list | bool | float):
            return None
        if what not in raw:
            return Message(str(speaker), None)
        return read_message(raw, speaker, raw[what], joint=joint)

    return Product(
        lambda row: some(messages_in(row, where), who, what), lambda row: Turns(each(as_json(row[where]), message))
    )


#: Products by their names; the first whose names stand in a row reads it.
PRODUCTS = {
    "OpenAI, Anthropic, Mistral, Hugging Face": plain("messages", "role", "content"),
    "Vercel AI SDK": plain("messages", "role", "parts", ""),
    "Open Assistant": plain("messages", "role", "text"),
    "ShareGPT": plain("conversations", "from", "value"),
    "LMSYS": plain("conversation", "role", "content"),
    "Claude": plain("chat_messages", "sender", "text"),
    "Gemini": plain("contents", "role", "parts", ""),
    "MultiWOZ": plain("turns", "speaker", "utterance"),
    "conversational test cases of deepeval": plain("turns", "role", "content"),
    "Twilio": plain("messages", "direction", "body"),
    "Botpress": plain("messages", "direction", "payload"),
}


def pairs(where: str, asked: str, answered: str) -> Product:
    """A list of questions with their answers, which are one conversation: a turn of the user and of the assistant."""
    sides = (("user", asked), ("assistant", answered))

    def turns(row: Row) -> Turns:
        both = messages_in(row, where)
        messages = [{"role": role, "content": pair.get(key)} for pair in both for role, key in sides]
        return Turns(each(messages, lambda raw: read_message(raw, raw["role"], raw["content"])))

    return Product(lambda row: some(messages_in(row, where), asked, answered), turns)


#: Names that lists, speakers and texts bear in help desks and exports that nobody has named yet, in any combination.
MESSAGES = (
    "messages conversations conversation chat_messages turns comments dialogue dialog".split(),
    ("role", "from", "sender", "author", "speaker", "name"),
    ("content", "value", "text", "utterance", "message", "body"),
)
#: And those of lists of questions with their answers.
QUESTIONS = (
    "turns conversation dialogue dialog history messages".split(),
    "user human input question query queryText prompt".split(),
    "assistant bot ai gpt actual_output actualOutput answer output response reply fulfillmentText".split(),
)


def by_names(row: Row) -> Product | None:
    """The first combination of these names that a row has."""
    written = chain(starmap(plain, product(*MESSAGES)), starmap(pairs, product(*QUESTIONS)))
    return next((made for made in written if made.matches(row)), None)


def _holds_a_list(row: Row) -> bool:
    return any(isinstance(as_json(row.get(key)), list | tuple) for key in ("messages", "conversations"))


def _say_what_is_missing(row: Row) -> Turns:
    form = "messages" if "messages" in row else "conversations"
    if not as_json(row[form]):
        raise ValueError(f"{form} holds no messages; each row is one conversation")
    return plain(form, "role", "content").turns(row)


#: A list of messages in which nobody is named: read to say what is missing.
UNKNOWN = Product(_holds_a_list, _say_what_is_missing)
