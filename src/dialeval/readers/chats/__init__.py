"""Chat formats: a `Product` in the file of its kind, or a line of `plain.py`; the first that matches a row reads it.

To add one, write its `Product`, name it below, and put a sample beside its tests.
"""

from __future__ import annotations

from typing import Any

from dialeval.readers.chats import evaluations, exports, gateways, traces
from dialeval.readers.chats.messages import Message, Product, Row
from dialeval.readers.chats.plain import PRODUCTS as PLAIN
from dialeval.readers.chats.plain import UNKNOWN, by_names

__all__ = ["PRODUCTS", "messages_of", "product_of", "reader_of"]

#: The products in the order in which they are asked.
PRODUCTS: tuple[Product, ...] = (
    traces.LANGSMITH, traces.MLFLOW, traces.PHOENIX, traces.OPENTELEMETRY, gateways.OPENAI_RESPONSES,
    evaluations.OPENAI_EVALS, gateways.BEDROCK, evaluations.INSPECT, gateways.CHAT_COMPLETIONS, traces.LANGFUSE,
    evaluations.PROMPTFOO, evaluations.DEEPEVAL, evaluations.RAGAS, evaluations.PARLAI, exports.CHATGPT, exports.SLACK,
    exports.AZURE, exports.DISCORD, exports.CHATWOOT, exports.INTERCOM, exports.RASA, exports.ZENDESK,
    exports.LANGCHAIN, *PLAIN.values(), exports.TELEGRAM, gateways.INPUTS_AND_OUTPUTS,
)  # fmt: skip
#: Entries of a list by which a row is known: a hundred products look at each, and a line has room for millions.
_LOOKED_AT = 1000


def product_of(row: Row) -> Product | None:
    """Who reads a row, which is known by the beginnings of its lists; None for a row of fields."""
    begun = {key: value[:_LOOKED_AT] if isinstance(value, list | tuple) else value for key, value in row.items()}
    return next((product for product in PRODUCTS if product.matches(begun)), None) or by_names(begun)


def reader_of(row: Row) -> Product | None:
    """The same, and for a list in which nobody is named one that says so."""
    return product_of(row) or (UNKNOWN if UNKNOWN.matches(row) else None)


def messages_of(value: Any) -> list[Message]:
    """The messages of a list that stands alone, as histories and replies of training data are; empty where it is none.

    ValueError says what is wrong with one of them.
    """
    product = product_of({"messages": value}) if isinstance(value, list | tuple) else None
    return [] if product is None else list(product.turns({"messages": value}).messages)
