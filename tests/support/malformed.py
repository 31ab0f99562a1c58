"""Inputs that cannot be scored, each with a piece of the sentence that must say so.

Files are (name, content, what the message holds). Values are keyword arguments of `Metric.score`.
"""

from __future__ import annotations

import datetime
import decimal
import gzip
import json
import pickle
from pathlib import Path
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
    "zero-width spaces": "\u200b\u200b",
    "a zero-width joiner": "\u200d",
    "a word joiner": "\u2060",
    "a soft hyphen": "\u00ad",
    "marks of direction": "\u200e\u202e\u2066",
    "a byte-order mark": "\ufeff",
    "a variation selector": "\ufe0f",
    "a Hangul filler": "\u3164",
    "a Mongolian vowel separator": "\u180e",
    "a braille blank": "\u2800",
    "tags": "\U000e0041\U000e007f",
    "control characters": "\x01\x07\x7f\x9f",
    "an escaped NUL": "\x00",
    "a next line and a no-break space": "\x85\xa0",
}

JSON_ROWS: dict[str, tuple[bytes, str]] = {
    **{f"only {name}": (line(response=text), "response is empty") for name, text in INVISIBLE.items()},
    "invisible turns": (line(context=list(INVISIBLE.values())), "context is empty"),
    "infinite response": (b'{"context": ["a"], "response": -Infinity}\n', "response is a float"),
    "number beyond range": (b'{"context": ["a"], "response": 1e999}\n', "response is a float"),
    "bool turn": (line(context=["a", True]), "context[1] is a bool"),
    "bool reference": (line(reference=True), "references is a bool"),
    "object reference": (line(reference={"0": "a"}), "references is a dict"),
    "nested reference": (line(references=["a", ["b"]]), "references[1] is a list"),
    "NaN in references": (b'{"context": ["a"], "response": "b", "references": [NaN]}\n', "references[0] is NaN"),
    "surrogate reference": (
        b'{"context": ["a"], "response": "b", "reference": "\\ud800"}\n',
        "references holds a lone",
    ),
    "surrogate system": (b'{"context": ["a"], "response": "b", "system": "\\ud800"}\n', "system holds a lone"),
    "number among facts": (line(facts=["a", 1]), "facts[1] is a int"),
    "object id": (line(id={"a": 1}), "id is a dict"),
    "integer id of a thousand digits": (
        b'{"context": ["a"], "response": "b", "id": ' + b"9" * 4000 + b"}\n",
        "id is an integer of 13288 bits",
    ),
    "line break in a name": (b'{"context": ["a"], "resp\\nonse": "b"}\n', "resp\\nonse"),
    "terminal codes in a name": (b'{"context": ["a"], "\\u001b[2J\\u0007": "b"}\n', "\\x1b[2J\\x07"),
    "reversed name": ('{"context": ["a"], "\u202eesnopser": "b"}\n'.encode(), "\\u202eesnopser"),
    "Python's None": (b'{"context": ["a"], "response": None}\n', "this is not JSON"),
    "hexadecimal": (b'{"context": ["a"], "response": 0x10}\n', "this is not JSON"),
    "comment": (line().strip() + b" // a comment\n", "this is not JSON: Extra data"),
    "byte-order mark in the middle": (b"\xef\xbb\xbf" + line(), "this is not JSON: Unexpected UTF-8 BOM"),
    "form feed before": (b"\x0c" + line(), "this is not JSON"),
    "surrogates as bytes": (b'{"context": ["a"], "response": "\xed\xa0\xbd\xed\xb8\x80"}\n', "is not UTF-8"),
    "Windows-1252": (b'{"context": ["a"], "response": "don\x92t"}\n', "is not UTF-8"),
    "Shift JIS": ('{"context": ["a"], "response": "\u3084\u3042"}\n'.encode("shift_jis"), "is not UTF-8"),
    "gzip in the middle": (gzip.compress(b"a", mtime=0).replace(b"\n", b"") + b"\n", "is not UTF-8"),
    "ten megabytes of noise": (b"x" * (10 * 2**20) + b"\n", "this is not JSON"),
    "deep objects": (b'{"a":' * 50_000 + b"1" + b"}" * 50_000 + b"\n", "nested too deeply"),
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
    "invisible response": ("a,\u200b\u2060\n".encode(), "response is empty"),
    "invisible context": ("\ufeff,a\n".encode(), "context is empty"),
    "JSON array of nothing": (b"[],a\n", "context is empty"),
    "JSON array of blanks": (b'"["" "", """"]",a\n', "context is empty"),
    "broken UTF-8 in the context": (b"\xf0\x9f,b\n", "context is not UTF-8"),
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
    "NUL bytes": ("rows.jsonl", b"\0" * 4096, "NUL byte"),
    "CSV by another name": ("rows.jsonl", b"context,response\na,b\n", "this is not JSON"),
    "JSON lines by another name": ("rows.csv", line() * 2, "column 'context' is missing"),
    "tabs in a CSV": ("rows.csv", b"context\tresponse\na\tb\n", "are separated by"),
    "line ends of the old Macintosh": ("rows.csv", b"context,response\ra,b\r", "is not CSV"),
    "a spreadsheet's separator line": ("rows.csv", b"sep=,\ncontext,response\na,b\n", "column 'context' is missing"),
    "line break in a column": ("rows.csv", b'context,"resp\nonse"\na,b\n', "resp\\nonse"),
    "web page": ("rows.jsonl", b"<!DOCTYPE html>\n<html></html>\n", "this is not JSON"),
    "pointer to a large file": ("rows.jsonl", b"version https://git-lfs.github.com/spec/v1\nsize 1\n", "is not JSON"),
    "PDF": ("rows.jsonl", b"%PDF-1.7\n", "this is not JSON"),
    "picture": ("rows.jsonl", b"\x89PNG\r\n\x1a\n", "is not UTF-8"),
    "pickle": ("rows.jsonl", pickle.dumps([GOOD]), "is not UTF-8"),
    "zip by another name": ("rows.jsonl.gz", b"PK\x03\x04rest", "is a zip archive"),
    "gzip in gzip": ("rows.jsonl.gz", gzip.compress(gzip.compress(line())), "is not UTF-8"),
    "gzip with more behind it": ("rows.jsonl.gz", gzip.compress(line()) + b"more", "damaged gzip"),
    "gzip's first bytes": ("rows.jsonl.gz", b"\x1f\x8b", "damaged gzip"),
    "Parquet of zeros": ("rows.parquet", b"PAR1" + b"\0" * 100 + b"PAR1", "is not a Parquet file"),
    "Parquet with an endless footer": ("rows.parquet", b"PAR1" + b"\xff" * 100 + b"PAR1", "is not a Parquet file"),
    "empty": ("rows.jsonl", b"", "holds no rows"),
    "only blank lines": ("rows.jsonl", b"\n \n\r\n", "holds no rows"),
    "only a byte-order mark": ("rows.jsonl", b"\xef\xbb\xbf", "holds no rows"),
    "JSON array without an end": ("rows.json", b"[" + line().strip() + b",", "begins like a JSON array and is none"),
    "JSON array and more": (
        "rows.json",
        b"[" + line().strip() + b"]\n" + line(),
        "begins like a JSON array and is none",
    ),
    "JSON array of a text": ("rows.json", b'["hello"]', "the entry is a str; a row is a JSON object"),
    "pretty-printed JSON": ("rows.json", json.dumps(GOOD, indent=2).encode(), "is spread over lines"),
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
    "unknown ending": ("rows.log", line(), "tells no format"),
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

#: What is not text, and what it is called.
NO_TEXTS: dict[str, Any] = {
    "float": float("inf"),
    "float32": np.float32("nan"),
    "int64": np.int64(3),
    "NAType": pd.NA,
    "NaTType": pd.NaT,
    "Decimal": decimal.Decimal(1),
    "date": datetime.date(2020, 2, 2),
    "complex": 1j,
    "range": range(2),
    "bytearray": bytearray(b"a"),
    "type": str,
    "object": object(),
    "list": ["a"],
    "PosixPath": Path("a"),
}

VALUES: dict[str, tuple[dict[str, Any], str]] = {
    **{
        f"a {name} as response": ({"responses": [value], "contexts": [["a"]]}, f"row 0: response is a {name}")
        for name, value in NO_TEXTS.items()
    },
    "a set as column": ({"responses": {"a"}, "contexts": [["a"]]}, "responses is a set; pass a list"),
    "a mapping as column": ({"responses": {"a": 1}, "contexts": [["a"]]}, "responses is a dict; pass a list"),
    "a data frame as column": (
        {"responses": pd.DataFrame({"a": ["b"]}), "contexts": [["a"]]},
        "responses is a DataFrame; pass a list",
    ),
    "an array without dimensions": ({"responses": np.array("a"), "contexts": [["a"]]}, "cannot be iterated over"),
    "a set as context": ({"responses": ["a"], "contexts": [{"a", "b"}]}, "row 0: context is a set"),
    "a frozen set as references": (
        {"responses": ["a"], "contexts": [["a"]], "references": [frozenset("ab")]},
        "row 0: references is a frozenset",
    ),
    "a bytearray as context": ({"responses": ["a"], "contexts": [bytearray(b"a")]}, "row 0: context is a bytearray"),
    "a context without dimensions": ({"responses": ["a"], "contexts": [np.array("a")]}, "context is a ndarray without"),
    "contexts of contexts": ({"responses": ["a"], "contexts": [[["a"]]]}, "row 0: context[0] is a list"),
    "an invisible response": ({"responses": ["\u200b"], "contexts": [["a"]]}, "row 0: response is empty"),
    "an endless id": ({"responses": ["a"], "contexts": ["a"], "ids": [10**5000]}, "row 0: id is an integer of 16610"),
    "numbers as facts": ({"responses": ["a"], "contexts": ["a"], "facts": [1]}, "row 0: facts is a int"),
    "a list as system": ({"responses": ["a"], "contexts": ["a"], "systems": [["s"]]}, "row 0: system is a list"),
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
