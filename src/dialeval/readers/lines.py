"""Bytes to lines: compressed or not, never longer than a bound, so that no input can exhaust memory."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, cast

#: A longer line is a broken file rather than a dialogue.
MAX_LINE_BYTES = 16 * 2**20

#: Where a file has no more lines: zeros without end, or a small compressed file that unpacks to nothing else.
MAX_WASTE_BYTES = 2**28
MAX_BLANK_LINES = 1_000_000

_UTF8_BOM = b"\xef\xbb\xbf"
_FOREIGN = {
    b"PAR1": "is a Parquet file; say so with the format parquet",
    b"PK\x03\x04": "is a zip archive (an .xlsx file is one too); unpack it, or export it as CSV",
    b"\x28\xb5\x2f\xfd": "is compressed with zstandard; unpack it or use gzip",
    b"BZh": "is compressed with bzip2; unpack it or use gzip",
    b"\xfd7zXZ": "is compressed with xz; unpack it or use gzip",
    b"\xff\xfe": "is encoded in UTF-16 or UTF-32; save it as UTF-8",
    b"\xfe\xff": "is encoded in UTF-16; save it as UTF-8",
}


@dataclass(frozen=True, slots=True)
class Line:
    """One line without its line end; `number` counts from 1 as editors do."""

    number: int
    data: bytes
    is_overlong: bool = False


def read_lines(stream: BinaryIO, name: str) -> Iterator[Line]:
    """The lines of a stream, unpacked if it is gzip, without a UTF-8 byte-order mark.

    Of an over-long line only the beginning is kept; the rest is passed over in pieces.
    """
    buffered = stream if isinstance(stream, io.BufferedReader) else io.BufferedReader(cast(io.RawIOBase, stream))
    number = blank = 0
    try:
        plain = _unpacked(buffered, name)
        while data := plain.readline(MAX_LINE_BYTES + 1):
            number += 1
            is_overlong = len(data) > MAX_LINE_BYTES and not data.endswith(b"\n")
            if is_overlong:
                _pass_over_rest(plain, f"line {number} of {name}")
                data = data[:1000]
            blank = 0 if data.strip() else blank + 1
            if blank > MAX_BLANK_LINES:
                raise ValueError(f"{name} holds more than {MAX_BLANK_LINES} blank lines on end; is it a file of rows?")
            if number == 1 and data.startswith(_UTF8_BOM):
                data = data[len(_UTF8_BOM) :]
            yield Line(number, data, is_overlong)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ValueError(f"{name} is a damaged gzip file ({error}); fetch or pack it again") from None
    finally:
        if buffered is not stream:
            buffered.detach()  # or the stream would be closed with it, and it is not ours


def _unpacked(buffered: io.BufferedReader, name: str) -> BinaryIO:
    start = buffered.peek(8)[:8]
    for magic, told in _FOREIGN.items():
        if start.startswith(magic):
            raise ValueError(f"{name} {told}")
    if start.startswith(b"\x1f\x8b"):
        return cast(BinaryIO, gzip.GzipFile(fileobj=buffered))
    return cast(BinaryIO, buffered)


def _pass_over_rest(stream: BinaryIO, where: str) -> None:
    passed = 0
    while (piece := stream.readline(MAX_LINE_BYTES)) and not piece.endswith(b"\n"):
        passed += len(piece)
        if passed > MAX_WASTE_BYTES:
            raise ValueError(f"{where} is longer than {MAX_WASTE_BYTES // 2**20} MiB; is it a file of rows?")
