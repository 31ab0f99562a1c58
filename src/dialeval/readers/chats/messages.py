"""What every chat format comes to: who says what. The names of roles, and the text of a message's content."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from dialeval.core.exchange import a_kind, is_blank

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Message:
    """Who speaks and what is said: an empty text by who is silent, None where it is no turn (calls, pictures)."""

    role: str
    text: str | None
    #: The speaker's name beside the role.
    name: str = ""
    #: Whether a call of a tool follows: the text is a preamble ("Let me look").
    calls: bool = False


@dataclass(frozen=True, slots=True)
class Turns:
    """The messages of one conversation, and fields that stand beside them."""

    messages: Sequence[Message]
    #: Fields of a row: id, system, facts, reference.
    fields: Row = field(default_factory=dict)
    #: Of a request and its response only the last message is the reply; earlier ones have rows of their own.
    last_only: bool = False
    #: Within one trace the same reply counts once: a chain and the model in it both log it.
    trace: str = ""


@dataclass(frozen=True, slots=True)
class Product:
    """How one product writes conversations."""

    #: Whether a row has its shape.
    matches: Callable[[Row], bool]
    #: The conversation in a row that matches; ValueError says what is wrong with it.
    turns: Callable[[Row], Turns]


#: Names of the same role.
ROLES = {
    **dict.fromkeys(("human", "prompter", "incoming", "inbound"), "user"),
    **dict.fromkeys("gpt bot chatgpt model ai outgoing outbound outbound-api outbound-reply".split(), "assistant"),
}
#: Names where nothing else says who is who.
MORE_ROLES = {
    **dict.fromkeys("you me customer client visitor student seeker caller".split(), "user"),
    **dict.fromkeys("chatbot agent claude gemini llama".split(), "assistant"),
}
#: Nobody's turn in the conversation.
ASIDE = frozenset({"system", "developer", "tool", "function", "observation", "function_call", "service"})
#: Whose contents are results, and nobody's words.
_SILENT = ASIDE - {"system", "developer"}


def role_of(name: str) -> str:
    """The role behind a name: `user`, `assistant`, or the name itself."""
    name = name.strip().lower()
    return ROLES.get(name, name)


def without_tags(text: str) -> str:
    """The text of a piece of HTML."""
    return html.unescape(re.sub(r"<[^<>]*>", "", text)).strip()


def snake_case(name: Any) -> str:
    """A column's name as it is compared: `conversationId` and `Conversation ID` as conversation_id."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", str(name)).casefold().replace(" ", "_")


def aside(roles: Sequence[str]) -> frozenset[str]:
    """Roles that have no turn. A system that speaks again and again is the bot, as in MultiWOZ."""
    return ASIDE - {"system"} if roles.count("system") > 1 and "assistant" not in roles else ASIDE


def plain_role(name: str) -> str:
    """The role behind a name where nothing else says who is who: `user`, `assistant`, or the name itself."""
    return "assistant" if name.lower().rstrip(")").endswith("bot") else MORE_ROLES.get(name.lower(), role_of(name))


def known_roles(names: Iterable[str]) -> dict[str, str]:
    """The role behind each name: of two people whom no name tells apart, the one who answers is the assistant."""
    roles = {name: plain_role(name) for name in names}
    speaking = list(dict.fromkeys(roles.values()))
    if "assistant" not in speaking and len(speaking) == 2:  # user and system; Anna and Bert
        judged = next((role for role in ("system", *speaking[1:]) if role in speaking and role != "user"), speaking[0])
        roles = {name: "assistant" if role == judged else "user" for name, role in roles.items()}
    return roles


#: Parts of a message that are no text: by their type, or by the key that they hold.
_NO_TEXT = re.compile(
    "image|picture|photo|audio|video|file|document|media|blob|inline|uri|tool|function|call|result|step|source|card|"
    "button|choice|location|carousel|search|computer|executable|cache|guard|sticker|redacted|data",
    re.IGNORECASE,
)
_THOUGHT = re.compile("reason|think|thought", re.IGNORECASE)
_CALL = re.compile("(tool|function)[-_ ]?(call|use|invocation)", re.IGNORECASE)
#: What a message may carry in place of a text: then it is no silence.
_BESIDE = frozenset(
    "tool_calls function_call attachments attachment files file photo image audio embeds stickers buttons custom "
    "elements quick_replies".split()
)
_NOTHING = frozenset({"", "none", "null", "nan", "false", "0", "[]", "{}", "()"})


def as_json(value: Any) -> Any:
    """What a text of JSON holds, as cells of tables and attributes of traces have it; anything else as it is."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value.tolist() if hasattr(value, "tolist") else value


def holds_objects(value: Any) -> bool:
    """Whether a value is an object of JSON, or a list with one."""
    return isinstance(value, Mapping) or (isinstance(value, list) and any(isinstance(item, Mapping) for item in value))


def read_content(content: Any, joint: str = "\n") -> tuple[str | None, bool]:
    """The text of a message's content, a string or parts, None where it holds no text; and whether it calls a tool.

    Parts in which no text is found where one is expected are refused: what is passed over would be misread.
    """
    if content is None or isinstance(content, str):
        return content or "", False
    parts = [content] if isinstance(content, Mapping) else content
    if not isinstance(parts, list | tuple):
        raise ValueError(f"is {a_kind(content)}; pass a text or a list of parts")
    texts: list[str] = []
    others: list[str] = []
    for part in parts:
        holds = part if isinstance(part, Mapping) else {"type": "text", "text": part}
        kind = str(holds.get("type") or holds.get("kind") or " ".join(map(str, holds)))
        text = next((holds[key] for key in ("text", "content", "refusal") if key in holds), None)
        text = text.get("value", text.get("text")) if isinstance(text, Mapping) else text
        if holds.get("thought") or _THOUGHT.search(kind) or (_NO_TEXT.search(kind) and part is holds):
            others.append(kind)
        elif isinstance(text, str):
            texts.append(text)
        else:
            raise ValueError(f"has a part without a text ({part!r:.60}); a part is a text, or an object with 'text'")
    return joint.join(texts) if texts or not others else None, any(map(_CALL.search, others))


def _there(value: Any) -> bool:
    return str(value).strip().casefold() not in _NOTHING


def read_message(raw: Row, role: Any, content: Any, *, joint: str = "\n", name: Any = "") -> Message:
    """One message by who says what; what stands beside the text tells a silence from a picture or a call."""
    if role_of(str(role)) in _SILENT:
        return Message(str(role), None)
    text, calls = read_content(content, joint)
    refusal = raw.get("refusal")
    if not text and isinstance(refusal, str):
        text = refusal
    places = [place for place in (raw, raw.get("data"), raw.get("additional_kwargs")) if isinstance(place, Mapping)]
    calls = calls or any(_there(place.get(key, "")) for place in places for key in ("tool_calls", "function_call"))
    if text is not None and is_blank(text) and any(_there(place.get(key, "")) for place in places for key in _BESIDE):
        text = None
    return Message(str(role), text, str(name or name_of(raw)), calls)


def name_of(raw: Row) -> str:
    """The name of who speaks, beside the role; empty where there is none."""
    name = next((raw[key] for key in ("speaker", "name", "author") if raw.get(key)), "")
    return str(name.get("name") if isinstance(name, Mapping) else name)


def messages_in(row: Row, *places: str) -> list[Row]:
    """The objects of the first of these keys that holds a list."""
    messages = next((value for key in places if isinstance(value := as_json(row.get(key)), list | tuple)), [])
    return [message for message in messages if isinstance(message, Mapping)]


def some(messages: Iterable[Row], *keys: str) -> bool:
    """Whether one of the first messages has all of these keys."""
    return any(all(message.get(key) is not None for key in keys) for message in islice(messages, 50))


def each(messages: Iterable[Any], read: Callable[[Row], Message | None]) -> list[Message]:
    """All messages read by a function, which gives None for what nobody says; what is wrong is told by place."""
    turns = []
    for index, raw in enumerate(messages):
        try:
            message = read(raw) if isinstance(raw, Mapping) else None
        except ValueError as error:
            raise ValueError(f"the content of message {index} {error}") from None
        if message is None:
            raise ValueError(f"message {index} has no 'role'; a message is an object with 'role' and 'content'")
        turns.append(message)
    return turns


def listed(*places: str, matches: Callable[[Sequence[Row]], bool], message: Callable[[Row], Message | None]) -> Product:
    """A product that is known by its messages, which are the objects under the first of these keys, read one by one."""
    return Product(
        lambda row: matches(messages_in(row, *places)), lambda row: Turns(each(messages_in(row, *places), message))
    )
