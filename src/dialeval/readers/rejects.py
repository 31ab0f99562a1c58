"""Where bad rows go when the good ones are to be scored all the same."""

from __future__ import annotations

import json
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

from dialeval.exchange import BadRow
from dialeval.readers.rows import RawRow


class Rejects:
    """Counts bad rows and, given a path or a stream, writes each as a JSON line: number, place, problem, values.

    The file is there from the beginning, so that an empty one says that nothing was set aside.
    """

    def __init__(self, target: str | Path | BinaryIO | None = None) -> None:
        self.count = 0
        self.first: str | None = None
        self._stream = Path(target).open("wb") if isinstance(target, str | Path) else target  # noqa: SIM115

    def add(self, row: RawRow, error: BadRow) -> None:
        """Set one row aside."""
        self.count += 1
        self.first = self.first or str(error)
        if self._stream is not None:
            record = {"row": row.number, "where": row.where, "problem": error.problem, "raw": row.original}
            self._stream.write(_strict_json(record).encode() + b"\n")

    def close(self) -> None:
        """Write out what is buffered."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def __enter__(self) -> Rejects:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _strict_json(value: Any) -> str:
    # ASCII only, so that lone surrogates survive; NaN and infinities, which JSON lacks, become text.
    text = json.dumps(value, default=repr)
    try:
        json.dumps(value, default=repr, allow_nan=False)
    except ValueError:
        text = json.dumps(json.loads(text, parse_constant=str))
    return text
