"""Inputs that cannot be scored, each with a piece of the sentence that must say so.

Files are (name, content, what the message holds). Values are keyword arguments of `Metric.score`.
"""

from __future__ import annotations

import gzip
import json
from typing import Any

GOOD = {"context": ["Is it still raining?"], "response": "No, it stopped at noon."}


def line(**changes: Any) -> bytes:
    """A good row with some fields changed; a field that is `...` is left out."""
    row = {**GOOD, **changes}
    return json.dumps({key: value for key, value in row.items() if value is not ...}).encode() + b"\n"


JSON_ROWS: dict[str, tuple[bytes, str]] = {
    "null response": (line(response=None), "response is None; pass a string"),
    "number response": (line(response=7), "response is a int"),
    "float response": (line(response=0.5), "response is a float"),
    "bool response": (line(response=True), "response is a bool"),
    "list response": (line(response=["a"]), "response is a list"),
    "object response": (line(response={"text": "a"}), "response is a dict"),
    "NaN response": (b'{"context": ["a"], "response": NaN}\n', "response is NaN"),
    "empty response": (line(response=""), "response is empty"),
    "blank response": (line(response=" \t\n"), "response is empty"),
    "only an em space": (line(response="\u2003"), "response is empty"),
    "surrogate response": (b'{"context": ["a"], "response": "x\\ud800y"}\n', "lone surrogate at character 1"),
    "no response": (line(response=...), "column 'response' is missing"),
    "misspelt response": (line(response=..., respones="a"), "did you mean 'respones'?"),
    "null context": (line(context=None), "context is None"),
    "NaN context": (b'{"context": NaN, "response": "a"}\n', "context is NaN"),
    "number context": (line(context=3), "context is a int"),
    "object context": (line(context={"0": "a"}), "context is a dict"),
    "empty context": (line(context=[]), "context is empty"),
    "blank context": (line(context=["", "  "]), "context is empty"),
    "null turn": (line(context=["a", None]), "context[1] is None"),
    "number turn": (line(context=["a", "b", 3]), "context[2] is a int"),
    "nested turn": (line(context=["a", ["b"]]), "context[1] is a list"),
    "surrogate turn": (b'{"context": ["a", "\\udfff"], "response": "a"}\n', "context[1] holds a lone surrogate"),
    "no context": (line(context=...), "column 'context' is missing"),
    "number reference": (line(reference=1), "references is a int"),
    "null in references": (line(references=["a", None]), "references[1] is None"),
    "both references": (line(reference="a", references=["b"]), "both reference and references"),
    "number facts": (line(facts=1), "facts is a int"),
    "list system": (line(system=["a"]), "system is a list"),
    "float id": (line(id=1.5), "id is a float"),
    "bool id": (line(id=True), "id is a bool"),
    "surrogate id": (b'{"context": ["a"], "response": "a", "id": "\\ud912"}\n', "id holds a lone surrogate"),
    "empty object": (b"{}\n", "column 'context' is missing"),
    "string row": (b'"a"\n', "the line is a str"),
    "number row": (b"12\n", "the line is a int"),
    "null row": (b"null\n", "the line is a NoneType"),
    "array row": (b'["a", "b"]\n', "the line is a list"),
    "plain text": (b"How are you?\n", "this is not JSON"),
    "torn object": (b'{"context": ["a"], "resp', "this is not JSON"),
    "single quotes": (b"{'context': ['a'], 'response': 'b'}\n", "this is not JSON"),
    "two objects on a line": (line().strip() + line(), "this is not JSON: Extra data"),
    "trailing comma": (b'{"context": ["a"], "response": "b",}\n', "this is not JSON"),
    "bad escape": (b'{"context": ["a"], "response": "\\q"}\n', "this is not JSON"),
    "raw control character": (b'{"context": ["a"], "response": "a\x01"}\n', "this is not JSON"),
    "NUL byte": (b'{"context": ["a"], "response": "a\x00"}\n', "NUL byte"),
    "Latin-1": ('{"context": ["a"], "response": "é"}\n'.encode("latin-1"), "is not UTF-8"),
    "broken UTF-8": (b'{"context": ["a"], "response": "\xf0\x9f"}\n', "is not UTF-8"),
    "overlong UTF-8": (b'{"context": ["a"], "response": "\xc0\xaf"}\n', "is not UTF-8"),
    "deep nesting": (b'{"context": ' + b"[" * 100_000 + b"\n", "nested too deeply"),
    "deep but closed": (b'{"context": ' + b"[" * 50_000 + b"]" * 50_000 + b', "response": "a"}\n', "nested too deeply"),
    "endless number": (b'{"context": ["a"], "response": ' + b"9" * 5000 + b"}\n", "thousands of digits"),
    "endless line": (b'{"context": ["a"], "response": "' + b"a" * (17 * 2**20) + b'"}\n', "longer than 16 MiB"),
}

CSV_ROWS: dict[str, tuple[bytes, str]] = {
    "too few cells": (b"a\n", "there are 1 cells where the header names 2"),
    "too many cells": (b"a,b,c\n", "there are 3 cells where the header names 2"),
    "empty response": (b"a,\n", "response is empty"),
    "empty context": (b",a\n", "context is empty"),
    "only separators": (b"__eou__ __eou__,a\n", "context is empty"),
    "Latin-1": (b"a,caf\xe9\n", "response is not UTF-8"),
    "NUL byte": (b"a,b\x00\n", "response holds a NUL byte"),
    "text after a quote": (b'a,"b" c\n', "this is not CSV"),
    "open quote": (b'a,"b\n', "this is not CSV"),
    "lone carriage return": (b"a,b\rc,d\n", "a lone carriage return"),
    "Python list": (b"\"['a', 'b']\",c\n", "looks like a Python list"),
}

FILES: dict[str, tuple[str, bytes, str]] = {
    "empty": ("rows.jsonl", b"", "holds no rows"),
    "only blank lines": ("rows.jsonl", b"\n \n\r\n", "holds no rows"),
    "only a byte-order mark": ("rows.jsonl", b"\xef\xbb\xbf", "holds no rows"),
    "JSON array": ("rows.json", b"[" + line().strip() + b"]", "is a JSON array; write one object per line"),
    "pretty-printed JSON": ("rows.json", json.dumps([GOOD], indent=2).encode(), "is spread over lines"),
    "UTF-16": ("rows.jsonl", line().decode().encode("utf-16"), "is encoded in UTF-16"),
    "UTF-32": ("rows.jsonl", line().decode().encode("utf-32"), "is encoded in UTF-16 or UTF-32"),
    "spreadsheet": ("rows.csv", b"PK\x03\x04rest", "is a zip archive"),
    "zstandard": ("rows.jsonl", b"\x28\xb5\x2f\xfdrest", "compressed with zstandard"),
    "bzip2": ("rows.jsonl", b"BZh91AY&SY", "compressed with bzip2"),
    "xz": ("rows.jsonl", b"\xfd7zXZ\x00rest", "compressed with xz"),
    "Parquet by another name": ("rows.jsonl", b"PAR1rest", "is a Parquet file"),
    "torn gzip": ("rows.jsonl.gz", gzip.compress(line() * 500)[:40], "damaged gzip"),
    "gzip with a wrong sum": ("rows.jsonl.gz", gzip.compress(line())[:-8] + b"\x01" * 8, "damaged gzip"),
    "gzip of noise": ("rows.jsonl.gz", b"\x1f\x8b\x08\x00" + b"\xff" * 60, "damaged gzip"),
    "gzip of nothing": ("rows.jsonl.gz", gzip.compress(b""), "holds no rows"),
    "unknown ending": ("rows.txt", line(), "tells no format"),
    "no ending": ("rows", line(), "tells no format"),
    "empty CSV": ("rows.csv", b"", "is empty; its first line must name the columns"),
    "CSV without rows": ("rows.csv", b"context,response\n", "holds no rows"),
    "CSV without header": ("rows.csv", b"Hi!,Hello!\nA,B\n", "column 'context' is missing"),
    "CSV with semicolons": ("rows.csv", b"context;response\na;b\n", "are separated by"),
    "CSV with a misspelt column": ("rows.csv", b"context,respnse\na,b\n", "did you mean 'respnse'?"),
    "CSV with a column twice": ("rows.csv", b"context,response,response\na,b,c\n", "two columns 'response'"),
    "CSV header in Latin-1": ("rows.csv", b"context,response,caf\xe9\na,b,c\n", "is not UTF-8"),
    "CSV with an endless line": ("rows.csv", b"context,response\na," + b"b" * (17 * 2**20), "longer than 16 MiB"),
    "CSV with an endless cell": (
        "rows.csv",
        b'context,response\na,"' + (b"b" * 1000 + b"\n") * 17_500,
        "row 0",
    ),
    "TSV with commas": ("rows.tsv", b"context,response\na,b\n", "are separated by"),
    "no Parquet": ("rows.parquet", b"this is text", "is not a Parquet file"),
    "empty Parquet": ("rows.parquet", b"", "is not a Parquet file"),
    "torn Parquet": ("rows.parquet", b"PAR1\x15\x04\x15PAR1", "is not a Parquet file"),
}

VALUES: dict[str, tuple[dict[str, Any], str]] = {
    "no columns": ({"responses": None, "contexts": None}, "responses are missing"),
    "no contexts": ({"responses": ["a"], "contexts": None}, "contexts are missing"),
    "nothing": ({"responses": [], "contexts": []}, "there are no rows to score"),
    "one string": ({"responses": "abc", "contexts": [["a"]]}, "responses is one str; pass a list"),
    "one number": ({"responses": 5, "contexts": [["a"]]}, "responses is a int; pass a list"),
    "bytes for a column": ({"responses": b"abc", "contexts": [["a"]] * 3}, "responses is one bytes"),
    "fewer contexts": ({"responses": ["a", "b"], "contexts": [["a"]]}, "2 responses, 1 contexts"),
    "fewer references": (
        {"responses": ["a", "b"], "contexts": [["a"], ["b"]], "references": ["a"]},
        "2 responses, 2 contexts, 1 references",
    ),
    "None": ({"responses": ["a", None], "contexts": [["a"], ["b"]]}, "row 1: response is None"),
    "NaN": ({"responses": [float("nan")], "contexts": [["a"]]}, "row 0: response is NaN"),
    "bytes": ({"responses": [b"a"], "contexts": [["a"]]}, "row 0: response is a bytes"),
    "a lone surrogate": ({"responses": ["\ud83d"], "contexts": [["a"]]}, "row 0: response holds a lone surrogate"),
    "an empty response": ({"responses": [""], "contexts": [["a"]]}, "row 0: response is empty"),
    "an empty context": ({"responses": ["a"], "contexts": [[]]}, "row 0: context is empty"),
    "a number as context": ({"responses": ["a"], "contexts": [7]}, "row 0: context is a int"),
    "a mapping as context": ({"responses": ["a"], "contexts": [{"a": 1}]}, "row 0: context is a dict"),
    "a None turn": ({"responses": ["a"], "contexts": [["a", None]]}, "row 0: context[1] is None"),
    "a bytes turn": ({"responses": ["a"], "contexts": [[b"a"]]}, "row 0: context[0] is a bytes"),
    "bytes as context": ({"responses": ["a"], "contexts": [b"a"]}, "row 0: context is a bytes"),
    "a number among references": (
        {"responses": ["a"], "contexts": [["a"]], "references": [["b", 2]]},
        "row 0: references[1] is a int",
    ),
}
