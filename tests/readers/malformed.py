"""Inputs that cannot be scored, each with the field, count or encoding that the error must name.

Files are (name, content, what it names). Values are keyword arguments of `Metric.score`.
"""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from typing import Any

import numpy as np
import pandas as pd

GOOD = {"context": ["Is it still raining?"], "response": "No, it stopped at noon."}


def line(**changes: Any) -> bytes:
    """A good row with some fields changed; a field that is `...` is left out."""
    row = {**GOOD, **changes}
    return json.dumps({key: value for key, value in row.items() if value is not ...}).encode() + b"\n"


#: Texts in which there is nothing to see.
INVISIBLE = {
    "zero-width spaces": "\u200b\u200b", "a zero-width joiner": "\u200d", "a word joiner": "\u2060",
    "a soft hyphen": "\u00ad", "marks of direction": "\u200e\u202e\u2066", "a byte-order mark": "\ufeff",
    "a variation selector": "\ufe0f", "a Hangul filler": "\u3164", "a Mongolian vowel separator": "\u180e",
    "a braille blank": "\u2800", "tags": "\U000e0041\U000e007f", "control characters": "\x01\x07\x7f\x9f",
    "an escaped NUL": "\x00", "a next line and a no-break space": "\x85\xa0",
}  # fmt: skip

JSON_ROWS: dict[str, tuple[bytes, str]] = {
    **{f"only {name}": (line(response=text), "response") for name, text in INVISIBLE.items()},
    "invisible turns": (line(context=list(INVISIBLE.values())), "context"),
    "number among facts": (line(facts=["a", 1]), "facts[1]"),
    "integer id of a thousand digits": (
        b'{"context": ["a"], "response": "b", "id": ' + b"9" * 4000 + b"}\n",
        "id",
    ),
    "line break in a name": (b'{"context": ["a"], "resp\\nonse": "b"}\n', "resp\\nonse"),
    "terminal codes in a name": (b'{"context": ["a"], "\\u001b[2J\\u0007": "b"}\n', "\\x1b[2J\\x07"),
    "byte-order mark in the middle": (b"\xef\xbb\xbf" + line(), "JSON"),
    "surrogates as bytes": (b'{"context": ["a"], "response": "\xed\xa0\xbd\xed\xb8\x80"}\n', "UTF-8"),
    "null response": (line(response=None), "response"),
    "number response": (line(response=7), "response"),
    "NaN response": (b'{"context": ["a"], "response": NaN}\n', "response"),
    "blank response": (line(response=" \t\n"), "response"),
    "surrogate response": (b'{"context": ["a"], "response": "x\\ud800y"}\n', "surrogate"),
    "no response": (line(response=...), "'response'"),
    "misspelt response": (line(response=..., respones="a"), "'respones'"),
    "null context": (line(context=None), "context"),
    "empty context": (line(context=[]), "context"),
    "blank context": (line(context=["", "  "]), "context"),
    "null turn": (line(context=["a", None]), "context[1]"),
    "number turn": (line(context=["a", "b", 3]), "context[2]"),
    "no context": (line(context=...), "'context'"),
    "number reference": (line(reference=1), "references"),
    "null in references": (line(references=["a", None]), "references[1]"),
    "both references": (line(reference="a", references=["b"]), "references"),
    "list system": (line(system=["a"]), "system"),
    "float id": (line(id=1.5), "id"),
    "empty object": (b"{}\n", "'context'"),
    "number row": (b"12\n", "line"),
    "torn object": (b'{"context": ["a"], "resp', "JSON"),
    "NUL byte": (b'{"context": ["a"], "response": "a\x00"}\n', "NUL byte"),
    "Latin-1": ('{"context": ["a"], "response": "é"}\n'.encode("latin-1"), "UTF-8"),
    "deep nesting": (b'{"context": ' + b"[" * 100_000 + b"\n", "nested"),
    "endless number": (b'{"context": ["a"], "response": ' + b"9" * 5000 + b"}\n", "digits"),
    "endless line": (b'{"context": ["a"], "response": "' + b"a" * (17 * 2**20) + b'"}\n', "16 MiB"),
}

CSV_ROWS: dict[str, tuple[bytes, str]] = {
    "invisible response": ("a,\u200b\u2060\n".encode(), "response"),
    "JSON array of nothing": (b"[],a\n", "context"),
    "broken UTF-8 in the context": (b"\xf0\x9f,b\n", "context"),
    "too few cells": (b"a\n", "1 cells"),
    "too many cells": (b"a,b,c\n", "3 cells"),
    "empty context": (b",a\n", "context"),
    "only separators": (b"__eou__ __eou__,a\n", "context"),
    "NUL byte": (b"a,b\x00\n", "NUL byte"),
    "text after a quote": (b'a,"b" c\n', "CSV"),
    "open quote": (b'a,"b\n', "CSV"),
    "lone carriage return": (b"a,b\rc,d\n", "carriage return"),
    "Python list": (b"\"['a', 'b']\",c\n", "Python list"),
}


def _zipped(method: int) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", method) as archive:
        archive.writestr("rows.jsonl", line() * 50)
    return packed.getvalue()


def _damaged(method: int) -> bytes:
    content = bytearray(_zipped(method))
    content[50] ^= 255
    content[51] ^= 255
    return bytes(content)


FILES: dict[str, tuple[str, bytes, str]] = {
    "NUL bytes": ("rows.jsonl", b"\0" * 4096, "NUL byte"),
    "line ends of the old Macintosh": ("rows.csv", b"context,response\ra,b\r", "CSV"),
    "line break in a column": ("rows.csv", b'context,"resp\nonse"\na,b\n', "resp\\nonse"),
    "zip by another name": ("rows.jsonl.gz", b"PK\x03\x04rest", "zip"),
    "gzip with more behind it": ("rows.jsonl.gz", gzip.compress(line()) + b"more", "damaged"),
    "empty": ("rows.jsonl", b"", "rows"),
    "JSON array without an end": ("rows.json", b"[" + line().strip() + b",", "JSON array"),
    "JSON array of a text": ("rows.json", b'["hello"]', "JSON"),
    "pretty-printed JSON": ("rows.json", 2 * json.dumps(GOOD, indent=2).encode(), "lines"),
    "torn UTF-16": ("rows.jsonl", line().decode().encode("utf-16")[:-1], "UTF-16"),
    "UTF-32": ("rows.jsonl", line().decode().encode("utf-32"), "UTF-32"),
    "CSV of two encodings": ("rows.csv", b"context,response\na,caf\xe9\nb,caf\xc3\xa9\n", "line 3"),
    "zstandard": ("rows.jsonl", b"\x28\xb5\x2f\xfdrest", "zstandard"),
    "Parquet by another name": ("rows.jsonl", b"PAR1rest", "Parquet"),
    "torn gzip": ("rows.jsonl.gz", gzip.compress(line() * 500)[:40], "damaged"),
    "unknown ending": ("rows.log", line(), "extension"),
    "empty CSV": ("rows.csv", b"", "columns"),
    "CSV without rows": ("rows.csv", b"context,response\n", "rows"),
    "CSV without header": ("rows.csv", b"Hi!,Hello!\nA,B\n", "'context'"),
    "CSV with a misspelt column": ("rows.csv", b"context,respnse\na,b\n", "'respnse'"),
    "CSV with a column twice": ("rows.csv", b"context,response,response\na,b,c\n", "'response'"),
    "CSV header in broken UTF-8": ("rows.csv", b"context,response,\xf0\x9f\na,b,c\n", "UTF-8"),
    "CSV with an endless line": ("rows.csv", b"context,response\na," + b"b" * (17 * 2**20), "16 MiB"),
    "CSV with an endless cell": (
        "rows.csv",
        b'context,response\na,"' + (b"b" * 1000 + b"\n") * 17_500,
        "row 0",
    ),
    **{
        f"zip with a damaged {kind} entry": ("rows.zip", _damaged(method), "rows.zip, rows.jsonl")
        for kind, method in (("stored", 0), ("deflated", 8), ("bzip2", 12), ("LZMA", 14))
    },
    "zip that is packed in an unknown way": ("rows.zip", _zipped(8).replace(b"\x08\0", b"\x61\0"), "unpacked"),
    "zip without the place of its entry": ("rows.zip", _zipped(0).replace(b"PK\x03\x04", b"PK\x03\x05"), "unpacked"),
    "JSON array in Latin-1": ("rows.json", b'[{"context": ["a"],\n"response": "caf\xe9"}]', "not UTF-8"),
    "JSON array with a huge number": ("rows.json", b'[{"id":\n' + b"9" * 5000 + b"}]", "thousands of digits"),
    "CSV header with a lone carriage return": ("rows.csv", b"context,response\ra,b\n", "a lone carriage return"),
    "no Parquet": ("rows.parquet", b"this is text", "Parquet"),
}

#: Columns of one row, some of them changed, and what is named.
_CHANGED: dict[str, tuple[dict[str, Any], str]] = {
    "a missing number": ({"responses": [np.float32("nan")]}, "row 0: response"),
    "a number of numpy": ({"responses": [np.int64(3)]}, "row 0: response"),
    "a missing cell": ({"responses": [pd.NA]}, "row 0: response"),
    "an object": ({"responses": [object()]}, "row 0: response"),
    "a list as response": ({"responses": [["a"]]}, "row 0: response"),
    "a set as column": ({"responses": {"a"}}, "responses"),
    "an array without dimensions": ({"responses": np.array("a")}, "responses"),
    "no columns": ({"responses": None, "contexts": None}, "responses"),
    "one string": ({"responses": "abc"}, "responses"),
    "None": ({"responses": ["a", None], "contexts": [["a"], ["b"]]}, "row 1: response"),
    "NaN": ({"responses": [float("nan")]}, "row 0: response"),
    "a lone surrogate": ({"responses": ["\ud83d"]}, "row 0: response"),
    "a set as context": ({"contexts": [{"a", "b"}]}, "row 0: context"),
    "a context without dimensions": ({"contexts": [np.array("a")]}, "context"),
    "no contexts": ({"contexts": None}, "contexts"),
    "a mapping as context": ({"contexts": [{"a": 1}]}, "row 0: context"),
    "nothing": ({"responses": [], "contexts": []}, "rows"),
    "fewer contexts": ({"responses": ["a", "b"]}, "2 responses, 1 contexts"),
    "fewer references": ({"references": []}, "1 responses, 1 contexts, 0 references"),
    "a number among references": ({"references": [["b", 2]]}, "row 0: references[1]"),
}
VALUES = {
    name: ({"responses": ["a"], "contexts": [["a"]], **changes}, named) for name, (changes, named) in _CHANGED.items()
}
