"""Messages of chat logs: who speaks and what is said, by the names that common products and tools give them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

#: Where the messages of a conversation stand: OpenAI, ShareGPT, LMSYS, Claude, Gemini, Rasa and others, ChatGPT.
FORMS = ("messages", "conversations", "conversation", "chat_messages", "contents", "turns", "events", "mapping")
_WHO = ("role", "from", "sender", "author", "speaker", "event", "type")
_WHAT = ("content", "value", "text", "parts", "utterance", "message", "data", "body")
#: Names of the conversation where every row is one message.
_WHOSE = ("conversation_id", "session_id", "ticket_id", "thread_id", "chat_id", "dialogue_id", "dialog_id", "session")
#: Contents of ChatGPT's messages that its user reads as a reply; others are thoughts, code, and what that gave.
_SAID = frozenset({"text", "multimodal_text"})
#: Names of the same role.
ROLES = {
    **dict.fromkeys(("human", "prompter"), "user"),
    **dict.fromkeys(("gpt", "bot", "chatgpt", "model", "ai"), "assistant"),
}
#: Names where nothing else says who is who.
MORE_ROLES = {
    **dict.fromkeys("you me customer client visitor student seeker caller".split(), "user"),
    **dict.fromkeys("chatbot agent claude gemini llama".split(), "assistant"),
}
#: Nobody's turn in the conversation.
_ASIDE = frozenset({"system", "developer", "tool", "function", "observation", "function_call"})


def role_of(name: str) -> str:
    """The role behind a name: `user`, `assistant`, or the name itself."""
    name = name.strip().lower()
    return ROLES.get(name, name)


def aside(roles: Sequence[str]) -> frozenset[str]:
    """Roles that have no turn. A system that speaks again and again is the bot, as in MultiWOZ."""
    return _ASIDE - {"system"} if roles.count("system") > 1 and "assistant" not in roles else _ASIDE


def known_roles(names: Iterable[str]) -> dict[str, str]:
    """The role behind each name: of two people whom no name tells apart, the one who answers is the assistant."""
    roles = {
        name: "assistant" if name.lower().endswith("bot") else MORE_ROLES.get(name.lower(), role_of(name))
        for name in names
    }
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
    if form != "mapping" or not isinstance(found, Mapping):
        return found
    path: list[Any] = []
    node = found.get(values.get("current_node"))
    while isinstance(node, Mapping) and len(path) < len(found):
        path.append(node)
        node = found.get(node.get("parent"))
    return [node["message"] for node in reversed(path) if node.get("message")]


def said_by(message: Any) -> tuple[str, Any] | None:
    """Who speaks in a message, and what is said; None where nobody is named."""
    if not isinstance(message, Mapping):
        return None
    who = next((message[key] for key in _WHO if message.get(key)), None)
    if isinstance(who, Mapping):
        who = "assistant" if who.get("isBot") else who.get("role") or who.get("name")
    if not isinstance(who, str):
        return None
    key = next((key for key in _WHAT if key in message), "")
    what = message.get(key)
    if isinstance(what, Mapping):
        if what.get("content_type", "text") not in _SAID:
            return who, None
        key = next((key for key in ("parts", "content", "text") if key in what), "")
        what = what.get(key)
    if key in ("parts", "text") and isinstance(what, list | tuple):
        pieces = [piece.get("text") if isinstance(piece, Mapping) else piece for piece in what]
        what = "".join(piece for piece in pieces if isinstance(piece, str))
    return who, what


def message_text(content: Any) -> str:
    """The text of a message: a string, or the text parts of a list of parts."""
    if isinstance(content, str):
        return content
    parts = [part for part in content if isinstance(part, Mapping)] if isinstance(content, list | tuple) else []
    texts = [part.get("text") for part in parts if part.get("type") in ("text", "input_text", "output_text")]
    return "\n".join(text for text in texts if isinstance(text, str))


def said_by_one(value: Any) -> str | None:
    """The text of a list that holds one message, as data sets for training hold a reply."""
    found = said_by(value[0]) if isinstance(value, list | tuple) and len(value) == 1 else None
    return None if found is None else message_text(found[1])


def message_columns(names: Sequence[str]) -> tuple[str, str, str] | None:
    """The columns of conversation, speaker and text in a table that holds one message a row."""
    known = {str(name).casefold().replace(" ", "_"): str(name) for name in reversed(names)}
    found = [next((known[key] for key in keys if key in known), None) for keys in (_WHOSE, _WHO[:5], _WHAT)]
    return None if None in found else (found[0], found[1], found[2])  # type: ignore[return-value]
