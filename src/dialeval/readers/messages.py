"""Messages of chat logs: who speaks and what is said, by the names that common products and tools give them."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dialeval.exchange import is_blank

#: Where the messages of a conversation stand: OpenAI, ShareGPT, LMSYS, Claude, Gemini, Rasa and others, Azure, Zendesk,
#: ChatGPT, Intercom.
FORMS = tuple(
    "messages conversations conversation chat_messages contents turns events activities comments mapping "
    "conversation_parts".split()
)
_WHO = ("role", "direction", "from", "sender", "author", "speaker", "author_id", "event", "type")
_WHAT = ("content", "value", "text", "parts", "utterance", "message", "data", "body", "payload")
#: Names of the conversation where every row is one message.
_WHOSE = "conversation_id session_id ticket_id thread_id chat_id dialogue_id dialog_id session thread".split()
#: What a message may carry in place of a text: then it is no silence.
_BESIDE = frozenset(
    "tool_calls function_call attachments attachment files file photo image audio embeds stickers refusal buttons "
    "custom elements quick_replies".split()
)
_NOTHING = frozenset({"", "none", "null", "nan", "false", "0", "[]", "{}", "()"})
#: What Discord says of a channel in a member's name, and what Azure's bots do beside talking.
_NEWS = frozenset(
    "RecipientAdd RecipientRemove Call ChannelPinnedMessage GuildMemberJoin ThreadCreated conversationUpdate typing "
    "endOfConversation trace invoke messageReaction".split()
)
#: What Slack says of a channel in a member's name.
_OF_CHANNEL = re.compile(
    r"(?:channel|group|bot)_(?:join|leave|topic|purpose|name|archive|unarchive|add|remove)|pinned_item"
)
#: Contents of ChatGPT's messages that its user reads as a reply; others are thoughts, code, and what that gave.
_SAID = frozenset({"text", "multimodal_text"})
#: Names of the same role.
ROLES = {
    **dict.fromkeys(("human", "prompter", "incoming", "inbound"), "user"),
    **dict.fromkeys("gpt bot chatgpt model ai outgoing outbound outbound-api outbound-reply".split(), "assistant"),
}
#: Types of messages, Chatwoot's as numbers.
_TYPES = ROLES | {"0": "user", "1": "assistant", "2": "service", "3": "assistant"}
#: Names where nothing else says who is who.
MORE_ROLES = {
    **dict.fromkeys("you me customer client visitor student seeker caller".split(), "user"),
    **dict.fromkeys("chatbot agent claude gemini llama".split(), "assistant"),
}
#: Who answers in Intercom's help desk.
_TEAM = dict.fromkeys(("admin", "bot", "team"), "assistant")
#: Nobody's turn in the conversation.
ASIDE = frozenset({"system", "developer", "tool", "function", "observation", "function_call", "service"})


def role_of(name: str) -> str:
    """The role behind a name: `user`, `assistant`, or the name itself."""
    name = name.strip().lower()
    return ROLES.get(name, name)


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


def form_of(values: Mapping[str, Any]) -> str | None:
    """Under which key a row holds the messages of a conversation; None for a row of fields."""
    for form in FORMS:
        messages = messages_of(values, form)
        if isinstance(messages, list | tuple) and (form in FORMS[:2] or (messages and said_by(messages[0]))):
            return form
    return None


def messages_of(values: Mapping[str, Any], form: str) -> Any:
    """The messages under a key. ChatGPT exports a tree, of which those count that lead to the last one."""
    found = values.get(form)
    if form == "conversation_parts":
        return _intercom(values.get("source"), found.get(form) if isinstance(found, Mapping) else found)
    if form != "mapping" or not isinstance(found, Mapping):
        return found
    path: list[Any] = []
    node = found.get(values.get("current_node"))
    while isinstance(node, Mapping) and len(path) < len(found):
        path.append(node)
        node = found.get(node.get("parent"))
    return [node["message"] for node in reversed(path) if node.get("message")]


def conversations_in(values: Mapping[str, Any]) -> list[Any] | None:
    """The conversations of an account that was exported as one object; None where it is something else."""
    chats = values.get("chats")
    listed = chats.get("list") if isinstance(chats, Mapping) else values.get("conversations")  # Telegram; Intercom
    if isinstance(listed, list) and any(isinstance(one, Mapping) and form_of(one) for one in listed):
        return [one for one in listed if isinstance(one, Mapping) and one.get("messages") != []]
    return None


def _intercom(first: Any, parts: Any) -> list[dict[str, Any]]:
    """The first message and the later ones, without what the team notes for itself and what it does beside talking."""
    parts = [first, *(parts if isinstance(parts, list) else [])]
    return [
        {
            "role": _TEAM.get(str(part["author"].get("type")), "user"),
            "text": _without_tags(str(part.get("body") or "")),
            "attachments": part.get("attachments") or re.findall("<img", str(part.get("body"))),
        }
        for part in parts
        if isinstance(part, Mapping) and isinstance(part.get("author"), Mapping)
        if not (str(part.get("part_type")).startswith("note") or part.get("redacted"))
        and (part.get("body") or part.get("part_type") == "comment")
    ]


def _without_tags(text: str) -> str:
    """HTML as it reads: a line for each paragraph."""
    lines = re.sub(r"<br\s*/?>|</(?:p|div|li|h\d)>", "\n", text, flags=re.IGNORECASE)
    return html.unescape(re.sub(r"<[^>]*>", "", lines)).strip()


def said_by(message: Any) -> tuple[str, Any] | None:
    """Who speaks in a message, and what is said: an empty text by who is silent, None where it is no turn (calls of
    tools, pictures, events). None where nobody is named."""
    if not isinstance(message, Mapping):
        return None
    if message.get("lc") and isinstance(message.get("kwargs"), Mapping):  # LangChain's dumpd
        message = message["kwargs"]
    if role := _TYPES.get(str(message.get("message_type"))):
        message = {**message, "role": role}
    whose = next((key for key in _WHO if message.get(key)), "")
    who = message.get(whose)
    if isinstance(who, Mapping):
        who = "assistant" if who.get("isBot") else who.get("role") or who.get("name")
    if who == "message":  # Slack
        who = "assistant" if message.get("bot_id") else message.get("user") or who
    who = str(who) if isinstance(who, int) and whose != "type" else who
    if not isinstance(who, str):
        return None
    key = next((key for key in _WHAT if key in message), "")
    what = message.get(key)
    unsaid = message.get("type") in _NEWS or _OF_CHANNEL.fullmatch(str(message.get("subtype")))
    of_the_team = message.get("private") is True or message.get("public") is False  # Chatwoot, Zendesk
    if not key or unsaid or of_the_team or (whose == "event" and who not in ("user", "bot", "agent")):
        return who, None
    if isinstance(what, Mapping):
        # ChatGPT leaves a blank where it thinks or calls a tool.
        if what.get("content_type", "text") not in _SAID or what.get("parts") in ([], [""]):
            return who, None
        key = next((key for key in ("parts", "content", "text") if key in what), "")
        if not key and "payload" in message:  # a picture, a card
            return who, None
        what = what.get(key)
    texts = [_text_of(piece) for piece in what] if isinstance(what, list | tuple) else []
    if isinstance(what, list | tuple) and key in ("parts", "text"):
        what = "".join(text for text in texts if isinstance(text, str))
    elif isinstance(what, list | tuple) and all(isinstance(piece, Mapping) for piece in what):
        what = message_text(what)
    if what is None or (isinstance(what, str) and is_blank(what)):
        places = [message, message.get("data"), message.get("additional_kwargs")]
        beside = [str(place.get(key, "")) for place in places if isinstance(place, Mapping) for key in _BESIDE]
        what = None if None in texts or {one.strip().casefold() for one in beside} - _NOTHING else ""
    return who, what


def name_of(message: Any) -> str:
    """The name of who speaks, beside the role; empty where there is none."""
    keys = ("speaker", "name", "author") if isinstance(message, Mapping) else ()
    found = next((message[key] for key in keys if message.get(key)), "")
    return str(found.get("name") if isinstance(found, Mapping) else found)


def _text_of(piece: Any) -> Any:
    """What a part of a message says, which is nothing where it is a thought; None for what is no text."""
    if not isinstance(piece, Mapping):
        return piece
    text = "" if piece.get("thought") or piece.get("type") == "reasoning" else piece.get("text")
    return text.get("value") if isinstance(text, Mapping) else text


def message_text(content: Any) -> str:
    """The text of a message: a string, or the text parts of a list of parts."""
    if isinstance(content, str):
        return content
    parts = [part for part in content if isinstance(part, Mapping)] if isinstance(content, list | tuple) else []
    texts = [_text_of(part) for part in parts if part.get("type") in ("text", "input_text", "output_text")]
    return "\n".join(text for text in texts if isinstance(text, str))


def said_by_one(value: Any) -> str | None:
    """The text of a list that holds one message, as data sets for training hold a reply."""
    found = said_by(value[0]) if isinstance(value, list | tuple) and len(value) == 1 else None
    return None if found is None else message_text(found[1])


def message_columns(names: Sequence[str]) -> tuple[str, str, str] | None:
    """The columns of conversation (empty where all is one), speaker and text where every row is one message."""
    known = {snake_case(name): str(name) for name in reversed(names)}
    found = [next((known[key] for key in keys if key in known), None) for keys in (_WHOSE, _WHO[:7], _WHAT)]
    columns = known.keys() - {"name", "timestamp", *_BESIDE}
    if columns >= {"type", "from", "conversation"}:  # Azure
        return known["conversation"], known["from"], "text"
    others = columns >= {"type", "text", "ts"} or columns >= {"author_id", "author", "content"}  # Slack, Discord
    if others or columns in ({"role", "content"}, {"type", "data"}):
        return found[0] or "", found[1] or known["type"], str(found[2])
    return None if None in found else (found[0], found[1], found[2])  # type: ignore[return-value]
