"""From an exchange to token ids: joining turns, cutting to length, counting what was cut.

Ids are assembled by hand from separately tokenised texts. That keeps the response whole whatever
the context's length, lets each distinct turn be tokenised once, and makes it impossible for a
user's text to smuggle in a special token.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dialeval.core.exchange import Exchange

#: Longer texts are clipped before tokenisation. No encoder sees more than a few thousand tokens,
#: so this only bounds the time that a hostile ten-megabyte line can take.
MAX_CHARACTERS = 50_000
#: A longer response is read as far as so many parts go, which are some six thousand tokens, and counts as cut.
MAX_WINDOWS = 128

_QUOTES = str.maketrans({"‘": "'", "’": "'", "`": "'", "“": '"', "”": '"', "…": "...", "\u00a0": " "})
#: What PersonaChat's descendants print before every fact; it says nothing once facts have a place of their own.
_FACT_MARK = re.compile(r"^\s*(?:your|partner's) persona:\s*", re.IGNORECASE)
_SPLIT_NEGATION = re.compile(r"(?<=\w) n ?' ?t\b", re.IGNORECASE)


def tidy(text: str) -> str:
    """Undo what corpus tokenisers do to text, so that one reply in two spellings gets one score.

    Benchmarks print "I ’ m", "did n't" and "it 's" where users type "I'm", "didn't" and "it's".
    A word-piece tokeniser absorbs spaces before punctuation but neither curly quotes nor split negations.
    """
    return _SPLIT_NEGATION.sub("n't", " ".join(text.translate(_QUOTES).split()))


@dataclass(frozen=True)
class PairFormat:
    """How a (context, response) pair is laid out for an encoder; part of every checkpoint."""

    max_length: int = 128
    #: Tokens the response may keep; None means three quarters of `max_length`.
    response_budget: int | None = None
    #: Put between turns: a special token of the vocabulary, or plain text such as one space.
    separator: str = " "
    segment_ids: bool = False
    #: Tokens that facts may keep in a place of their own before the context, but at most half of `max_length`.
    #: None lays them out as the context's first turns, which are the first to be cut.
    facts_budget: int | None = None
    #: Put behind every fact where they have a budget.
    facts_separator: str = "[unused1]"
    #: `left` keeps the end of the context. `right_longest_first` is what plain `truncation=True`
    #: does: it drops the last token of the longer side, so recent turns are lost first.
    truncation: Literal["left", "right_longest_first"] = "left"
    tidy: bool = True
    #: Read at most so many of the context's last turns. What is older is no part of the input, and not counted as cut.
    turns: int | None = None

    def __post_init__(self) -> None:
        if self.max_length < 8:
            raise ValueError(f"max_length is {self.max_length}; an encoder needs at least 8 tokens")
        if self.truncation not in ("left", "right_longest_first"):
            raise ValueError(f"truncation is {self.truncation!r}; it is 'left' or 'right_longest_first'")
        if self.facts_budget is not None and self.truncation != "left":
            raise ValueError("facts_budget needs truncation='left'; the other rule knows two segments only")
        if self.facts_budget is not None and self.facts_budget < 0:
            raise ValueError(f"facts_budget is {self.facts_budget}; it is 0 or more")
        if self.turns is not None and self.turns < 1:
            raise ValueError(f"turns is {self.turns}; it is 1 or more")


@dataclass(frozen=True, slots=True)
class TokenPair:
    """Token ids of one pair, where its second segment begins, and whether anything was cut."""

    ids: NDArray[np.int32]
    boundary: int
    cut: bool

    @property
    def key(self) -> bytes:
        """Equal keys mean equal input to the encoder."""
        return self.boundary.to_bytes(4, "little") + self.ids.tobytes()


class PairTokenizer:
    """Lays exchanges out as `PairFormat` says, for any fast Hugging Face tokenizer."""

    def __init__(self, tokenizer: Any, layout: PairFormat) -> None:
        from tokenizers import Tokenizer

        backend = getattr(tokenizer, "backend_tokenizer", None)
        if backend is None:
            raise ValueError(f"{type(tokenizer).__name__} has no fast backend; use a model with a tokenizer.json")
        self.layout = layout
        self.pad_id = int(tokenizer.pad_token_id or 0)
        # A copy: padding, truncation and special-token settings of the caller's tokenizer stay as they are.
        self._backend: Any = Tokenizer.from_str(backend.to_str())
        self._backend.no_padding()
        self._backend.no_truncation()
        self._prefix, self._middle, self._suffix = self._template("b")
        self._single_prefix, _, self._single_suffix = self._template(None)
        self._backend.encode_special_tokens = True
        self._separator_id = self._find_separator(layout.separator)
        # Asked for where it is used only: not every vocabulary has one.
        self._facts_separator_id = self._find_separator(layout.facts_separator if layout.facts_budget else " ")
        room = layout.max_length - len(self._prefix) - len(self._middle) - len(self._suffix)
        wanted = layout.response_budget if layout.response_budget is not None else layout.max_length * 3 // 4
        self._room = room
        self._facts_budget = min(layout.facts_budget or 0, layout.max_length // 2)
        #: Equal identities lay out every exchange alike, so metrics over one network can share its results.
        self.identity = (hashlib.sha256(self._backend.to_str().encode()).hexdigest(), layout)
        self._response_budget = max(1, min(wanted, room))

    def pairs(self, exchanges: Sequence[Exchange]) -> list[TokenPair]:
        """Token ids of every (facts, context, response)."""
        contexts, facts, of_text = self._read(exchanges, [exchange.response for exchange in exchanges])
        return [
            self._assemble(self._join(context, of_text), of_text[exchange.response], self._lay_facts(known, of_text))
            for exchange, context, known in zip(exchanges, contexts, facts, strict=True)
        ]

    def windows(self, responses: Sequence[str]) -> list[list[str]]:
        """Each response in parts of about equal length that are read whole, cut between sentences where there are any.

        A response that fits stays as it is, and so does every one where the layout cuts both sides alike. What is left
        behind `MAX_WINDOWS` belongs to the last part, which the encoder cuts.
        """
        # A token is a character at least, so that most responses need not be tokenised to know that they fit.
        is_long = self.layout.truncation == "left"
        long = [text for text in dict.fromkeys(responses) if is_long and len(text) > self._response_budget]
        pieces = {text: _SENTENCE_END.split(text) for text in long}
        ids = self._tokenise(piece for parts in pieces.values() for piece in parts)
        cut = {text: self._filled([(piece, len(ids[piece])) for piece in parts]) for text, parts in pieces.items()}
        return [cut.get(text, [text]) for text in responses]

    def _filled(self, pieces: Sequence[tuple[str, int]]) -> list[str]:
        total = sum(length for _, length in pieces)
        if total <= self._response_budget:
            return ["".join(piece for piece, _ in pieces)]
        wanted = total / -(-total // self._response_budget)
        windows: list[str] = []
        size = self._response_budget
        for piece, length in pieces:
            if length > self._response_budget:  # one sentence, or none that ends: between words
                parts = _words_of(piece, -(-length // self._response_budget) + 1)
                windows += parts
                size = length // len(parts)
            elif windows and (size + length <= self._response_budget and size + length / 2 <= wanted):
                windows[-1] += piece
                size += length
            else:
                windows.append(piece)
                size = length
        windows = [window for window in windows if window.strip()]
        whole = windows[: MAX_WINDOWS - 1]
        return [*whole, "".join(windows[len(whole) :])] if len(windows) > MAX_WINDOWS else windows

    def contexts(self, exchanges: Sequence[Exchange]) -> list[TokenPair]:
        """Token ids of every context alone, as a single segment."""
        contexts, facts, of_text = self._read(exchanges)
        whole = self.layout.max_length - len(self._single_prefix) - len(self._single_suffix)
        laid: list[TokenPair] = []
        for context, known in zip(contexts, facts, strict=True):
            ids = self._join(context, of_text)
            kept_facts, facts_cut = self._lay_facts(known, of_text)
            room = whole - len(kept_facts)
            kept = ids[-room:] if self.layout.truncation == "left" else ids[:room]
            single = np.array([*self._single_prefix, *kept_facts, *kept, *self._single_suffix], dtype=np.int32)
            laid.append(TokenPair(single, len(single), facts_cut or len(kept) < len(ids)))
        return laid

    def _read(
        self, exchanges: Sequence[Exchange], responses: Sequence[str] = ()
    ) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]], dict[str, list[int]]]:
        """The turns to join, the facts that get a place of their own, and the token ids of all texts."""
        last = slice(None if self.layout.turns is None else -self.layout.turns, None)
        contexts = [exchange.context[last] for exchange in exchanges]
        # Without the words that a corpus puts before each.
        facts = [tuple(_FACT_MARK.sub("", fact) for fact in exchange.facts) for exchange in exchanges]
        if self.layout.facts_budget is None:  # then they are the first turns, as they stand
            contexts = [exchange.facts + context for exchange, context in zip(exchanges, contexts, strict=True)]
            facts = [()] * len(exchanges)
        if self._separator_id is None:
            contexts = [(self.layout.separator.join(context),) for context in contexts]
        return contexts, facts, self._tokenise([*chain(*contexts, *facts), *responses])

    def _lay_facts(self, facts: tuple[str, ...], of_text: dict[str, list[int]]) -> tuple[list[int], bool]:
        """The facts one after another within their budget, and whether that cut them."""
        laid: list[int] = []
        for fact in facts:
            laid.extend(of_text[fact])
            if self._facts_separator_id is not None:
                laid.append(self._facts_separator_id)
        kept = laid[: self._facts_budget]
        return kept, len(kept) < len(laid)

    def _tokenise(self, texts: Iterable[str]) -> dict[str, list[int]]:
        distinct = list(dict.fromkeys(texts))
        # The end of a context matters and the beginning of a response; both survive a cut in the middle.
        clipped = [
            text if len(text) <= 2 * MAX_CHARACTERS else f"{text[:MAX_CHARACTERS]} {text[-MAX_CHARACTERS:]}"
            for text in distinct
        ]
        prepared = [tidy(text) for text in clipped] if self.layout.tidy else clipped
        encoded = self._backend.encode_batch_fast(prepared, add_special_tokens=False)
        return {text: encoding.ids for text, encoding in zip(distinct, encoded, strict=True)}

    def _join(self, context: tuple[str, ...], of_text: dict[str, list[int]]) -> list[int]:
        joined: list[int] = []
        for position, turn in enumerate(context):
            if position and self._separator_id is not None:
                joined.append(self._separator_id)
            joined.extend(of_text[turn])
        return joined

    def _assemble(self, context: list[int], response: list[int], facts: tuple[list[int], bool]) -> TokenPair:
        kept_facts, cut = facts
        if self.layout.truncation == "left":
            kept_response = response[: self._response_budget]
            kept_facts = kept_facts[: self._room - len(kept_response)]
            room = self._room - len(kept_response) - len(kept_facts)
            kept_context = context[-room:] if room else []
        else:
            keep_context, keep_response = _longest_first(len(context), len(response), self._room)
            kept_context, kept_response = context[:keep_context], response[:keep_response]
        cut = cut or len(kept_response) < len(response) or len(kept_context) < len(context)
        cut = cut or len(kept_facts) < len(facts[0])
        head = [*self._prefix, *kept_facts, *kept_context, *self._middle]
        ids = np.array([*head, *kept_response, *self._suffix], dtype=np.int32)
        return TokenPair(ids, len(head), cut)

    def _template(self, second: str | None) -> tuple[list[int], list[int], list[int]]:
        """The special tokens before, between and behind the segments, read off a short example."""
        try:
            encoding = self._backend.encode("a", second)
        except Exception as error:  # the library has no kind of its own
            raise ValueError(f"the tokenizer does not read a letter ({error}); use another one") from None
        runs: list[list[int]] = [[]]
        for token, special in zip(encoding.ids, encoding.special_tokens_mask, strict=True):
            if special:
                runs[-1].append(token)
            elif runs[-1] or len(runs) == 1:
                runs.append([])
        if len(runs) < 2:
            raise ValueError("the tokenizer's template leaves out the texts; use another one")
        # ids of the texts split the special tokens into runs: prefix, (middle,) suffix
        return runs[0], runs[1] if second is not None else [], runs[-1]

    def _find_separator(self, separator: str) -> int | None:
        if not separator.strip():
            return None
        number = self._backend.token_to_id(separator)
        if number is None:
            raise ValueError(f"the tokenizer has no token {separator!r} to separate turns or facts; choose one it has")
        return int(number)


#: Behind the end of a sentence or of a line; what stands there belongs to the part before.
_SENTENCE_END = re.compile(r"(?<=[.!?] )|(?<=\n)")


def _words_of(text: str, parts: int) -> list[str]:
    """A text in about equal parts, cut between words where it has any."""
    step, start, parts_of_text = -(-len(text) // parts), 0, []
    while start < len(text):
        end = start + step
        space = text.rfind(" ", start, end) if end < len(text) else -1
        end = space + 1 if space > start else end
        parts_of_text.append(text[start:end])
        start = end
    return parts_of_text


def _longest_first(first: int, second: int, room: int) -> tuple[int, int]:
    """How many tokens each side keeps under `truncation=True`, as the fast tokenizers count them."""
    shorter, longer = sorted((first, second))
    if shorter + longer > room:
        longer = max(shorter, room - shorter)
        if shorter + longer > room:
            shorter, longer = room // 2, room - room // 2
    return (shorter, longer) if first <= second else (longer, shorter)
