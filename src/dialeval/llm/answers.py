"""Answers, and the file that keeps every one of them, so that nothing is asked twice."""

from __future__ import annotations

import dataclasses
import json
import os
import sqlite3
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from dialeval.io import parse_json

FILE = "answers.sqlite"


@dataclass(frozen=True)
class Answer:
    """What a server said to one question: a text or several samples of it, and what is known about them."""

    texts: tuple[str, ...]
    #: Of the first text, if the server gives them: each token with the likeliest ones at its place.
    logprobs: Sequence[Mapping[str, Any]] | None = None
    refusal: str | None = None
    #: The server's word for why it stopped: `length` is an answer cut off.
    finish: str = ""
    served: str = ""
    fingerprint: str = ""
    #: Parts of the request that the server would not take.
    without: tuple[str, ...] = ()
    tokens_in: int = 0
    tokens_out: int = 0
    #: Whether the server counted the tokens, or we estimated them.
    counted: bool = True
    calls: int = 1
    seconds: float = 0.0
    cost: float = 0.0


class Store(Protocol):
    """Where answers are kept."""

    def get(self, key: str) -> Answer | None:
        """The answer under a key, if it was given before."""

    def put(self, key: str, answer: Answer) -> None:
        """Keep an answer."""


class InMemory:
    """Answers of this process only."""

    def __init__(self) -> None:
        self._known: dict[str, Answer] = {}

    def get(self, key: str) -> Answer | None:
        """The answer under a key, if it was given before."""
        return self._known.get(key)

    def put(self, key: str, answer: Answer) -> None:
        """Keep an answer."""
        self._known[key] = answer


class OnDisk:
    """Answers in an SQLite file: written one by one, safe for several processes, whole after a kill."""

    def __init__(self, folder: str | Path) -> None:
        self.path = Path(folder).expanduser() / FILE
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # Answers may quote what the rows say, which is nobody else's business.
            os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
            self._known = sqlite3.connect(self.path, timeout=60, check_same_thread=False)
            self._known.execute("CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, answer TEXT NOT NULL)")
            self._known.commit()
        except (OSError, sqlite3.Error) as error:
            raise ValueError(
                f"answers cannot be kept in {self.path} ({_reason(error)}); choose another folder"
            ) from None
        self._lock = threading.Lock()

    def get(self, key: str) -> Answer | None:
        """The answer under a key, if it was given before; an entry that is damaged is asked for again."""
        with self._lock:
            row = self._known.execute("SELECT answer FROM answers WHERE key = ?", (key,)).fetchone()
        try:
            fields = parse_json(row[0])
            return Answer(**{**fields, "texts": tuple(fields["texts"]), "without": tuple(fields["without"])})
        except (TypeError, ValueError, LookupError):
            return None

    def put(self, key: str, answer: Answer) -> None:
        """Keep an answer."""
        text = json.dumps(dataclasses.asdict(answer), ensure_ascii=False)
        try:
            with self._lock, self._known:
                self._known.execute("INSERT OR REPLACE INTO answers VALUES (?, ?)", (key, text))
        except sqlite3.Error as error:
            raise OSError(
                f"{self.path} cannot be written ({_reason(error)}); make room and run the same again"
            ) from None


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
