"""Chat formats: a file for each product, or a line of `plain.py`; the first that matches a row reads it.

To add one, write a file with `matches(row)` and `turns(row)`, name it below, and put a sample beside its tests.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dialeval.readers.chats import (
    azure,
    bedrock,
    calls_log,
    chat_completions,
    chatgpt,
    chatwoot,
    deepeval,
    discord,
    inspect_ai,
    intercom,
    langchain,
    langfuse,
    langsmith,
    mlflow,
    openai_evals,
    openai_responses,
    opentelemetry,
    parlai,
    phoenix,
    promptfoo,
    ragas,
    rasa,
    slack,
    telegram,
    zendesk,
)
from dialeval.readers.chats.base import Message, Product, Row
from dialeval.readers.chats.plain import ANY, PAIRS, Unknown
from dialeval.readers.chats.plain import PRODUCTS as PLAIN

__all__ = ["PRODUCTS", "messages_of", "product_of", "reader_of"]

#: The products by name, in the order in which they are asked.
PRODUCTS: Mapping[str, Product] = {
    "LangSmith": langsmith,
    "MLflow": mlflow,
    "Phoenix": phoenix,
    "OpenTelemetry": opentelemetry,
    "OpenAI Responses": openai_responses,
    "OpenAI Evals": openai_evals,
    "Amazon Bedrock": bedrock,
    "Inspect": inspect_ai,
    "chat completions": chat_completions,
    "Langfuse": langfuse,
    "promptfoo": promptfoo,
    "deepeval": deepeval,
    "ragas": ragas,
    "ParlAI": parlai,
    "ChatGPT": chatgpt,
    "Slack": slack,
    "Azure Bot Service": azure,
    "Discord": discord,
    "Chatwoot": chatwoot,
    "Intercom": intercom,
    "Rasa": rasa,
    "Zendesk": zendesk,
    "LangChain": langchain,
    **PLAIN,
    "Telegram": telegram,
    "inputs and outputs": calls_log,
}
_UNKNOWN = Unknown()
#: Entries of a list by which a row is known: a hundred products look at each, and a line has room for millions.
_LOOKED_AT = 1000


def product_of(row: Row) -> Product | None:
    """Who reads a row, which is known by the beginnings of its lists; None for a row of fields."""
    begun = {key: value[:_LOOKED_AT] if isinstance(value, list | tuple) else value for key, value in row.items()}
    return next((product for product in (*PRODUCTS.values(), *ANY, *PAIRS) if product.matches(begun)), None)


def reader_of(row: Row) -> Product | None:
    """The same, and for a list in which nobody is named one that says so."""
    return product_of(row) or (_UNKNOWN if _UNKNOWN.matches(row) else None)


def messages_of(value: Any) -> list[Message]:
    """The messages of a list that stands alone, as histories and replies of training data are; empty where it is none.

    ValueError says what is wrong with one of them.
    """
    product = product_of({"messages": value}) if isinstance(value, list | tuple) else None
    return [] if product is None else list(product.turns({"messages": value}).messages)
