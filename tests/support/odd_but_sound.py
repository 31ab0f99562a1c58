"""Inputs that look broken but are not: file name, content, and the share of words that response and context have in
common, row by row, as `overlap_metric` counts it."""

from __future__ import annotations

import gzip
import json

_BOM = b"\xef\xbb\xbf"


def row(context: object, response: str, **more: object) -> bytes:
    """One JSON line, not escaped."""
    values = {"context": context, "response": response, **more}
    return json.dumps(values, ensure_ascii=False).encode() + b"\n"


#: One word of three in common, and one of two.
THIRD, HALF = row(["a b"], "b c"), row(["a b"], "b")
#: Texts that mean something elsewhere; said and answered word for word they overlap wholly.
VERBATIM = {
    "markup": "<script>alert(1)</script>",
    "special tokens": "[CLS] hello [SEP] [PAD] <s> </s> <|endoftext|>",
    "format strings": "%s %n {0} {} ${HOME} $(id) `id`",
    "SQL": "'; DROP TABLE replies; --",
    "a path": "../../../../etc/passwd",
    "a formula": '=HYPERLINK("http://example.org","x")',
    "a Python list": "['a', 'b']",
    "an escaped NUL within": "a\0b",
    "a bell and an escape code": "\a\x1b[31mred",
    "words for truth and nothing": "true null NaN None",
    "figures": "007 1e999 -0",
    "an accent a thousand times over": "a" + "\u0301" * 1000,
    "ligatures and full-width letters": "ﬁne ｈｉ",
    "characters that no font has": "\U0010ffff \ue000 \ufdd0",
    "a family joined without width": "👩\u200d👩\u200d👧\u200d👦 🏳\ufe0f\u200d🌈",
    "separators of the CSV form": "a __eou__ b",
    "question marks only": "???",
    "a full stop": ".",
}

JSON_FILES: dict[str, tuple[bytes, list[float]]] = {
    **{name: (row([text], text), [1.0]) for name, text in VERBATIM.items()},
    "right to left": (row(["שלום לך"], "שלום"), [1 / 2]),
    "marks of direction around a word": (row(["a"], "\u202ba\u202c"), [0.0]),
    "a zero-width space beside a word": (row(["a"], "a\u200b"), [0.0]),
    "two spellings of one accent": (row(["caf\u00e9"], "cafe\u0301"), [0.0]),
    "escaped pair of surrogates": (b'{"context": ["\\ud83d\\ude00 a"], "response": "\\ud83d\\ude00"}\n', [1 / 2]),
    "line and paragraph separators": (row(["a b c"], "a\u2028b\u2029c"), [1.0]),
    "next line and vertical tab": (row(["a b c"], "a\x85b\x0bc"), [1.0]),
    "Windows line ends": (THIRD.replace(b"\n", b"\r\n") * 2, [1 / 3, 1 / 3]),
    "mixed line ends": (THIRD.strip() + b"\r\n" + HALF, [1 / 3, 1 / 2]),
    "blank lines": (b"\n\n" + THIRD + b" \t\r\n\n" + HALF + b"\n", [1 / 3, 1 / 2]),
    "a byte-order mark": (_BOM + THIRD, [1 / 3]),
    "no line end": (THIRD.strip(), [1 / 3]),
    "white space around": (b" \t " + THIRD.strip() + b" \t \n", [1 / 3]),
    "a key twice": (b'{"context": ["a"], "response": "b", "response": "a"}\n', [1.0]),
    "columns that nobody knows": (row(["a"], "a", meta={"deep": [1, {"er": None}]}, **{"": 1}), [1.0]),
    "nulls where a value may lack": (row(["a"], "a", references=None, system=None, id=None), [1.0]),
    "NaN where a value may lack": (b'{"context": ["a"], "response": "a", "reference": NaN, "id": NaN}\n', [1.0]),
    "a context that is a string": (row("a b", "b c"), [1 / 3]),
    "a blank turn among others": (row(["", "a", "\u200b"], "a"), [1 / 2]),
    "a thousand turns": (row(["a"] * 1000 + ["b"], "b"), [1 / 2]),
    "a line of ten megabytes": (row(["b"], "b " + "c" * (10 * 2**20)), [1 / 2]),
    "a JSON array": (b"[" + THIRD.strip() + b", " + HALF.strip() + b"]", [1 / 3, 1 / 2]),
    "a JSON array over lines": (b"[\n" + THIRD + b",\n" + HALF + b"]\n", [1 / 3, 1 / 2]),
    "the same row twice": (HALF * 2, [1 / 2, 1 / 2]),
    "the same id twice": (row(["a"], "a", id="x") + row(["b"], "a", id="x"), [1.0, 0.0]),
}

TABLES: dict[str, tuple[str, bytes, list[float]]] = {
    "quoted line break": ("rows.csv", b'context,response\n"a\nb","b\r\nc"\n', [1 / 3]),
    "doubled quotes": ("rows.csv", b'context,response\n"""a"" b","""a"""\n', [1 / 2]),
    "separator inside quotes": ("rows.csv", b'context,response\n"a, b","a, c"\n', [1 / 3]),
    "CSV with a byte-order mark": ("rows.csv", _BOM + b"context,response\r\na b,b c\r\n", [1 / 3]),
    "CSV without a last line end": ("rows.csv", b"context,response\na b,b c", [1 / 3]),
    "CSV with blank lines": ("rows.csv", b"\ncontext,response\n\n\na b,b c\n\n", [1 / 3]),
    "CSV with mixed line ends": ("rows.csv", b"context,response\r\na b,b c\na,a\r\n", [1 / 3, 1.0]),
    "CSV with nameless columns": ("rows.csv", b"context,response,\na,a,\n", [1.0]),
    "formulas in cells": ("rows.csv", b"context,response,id\n=1+1,=1+1,@x\n", [1.0]),
    "JSON array in a cell": ("rows.csv", b'context,response\n"[""a"", ""b""]",b c\n', [1 / 3]),
    "turns and a separator behind": ("rows.csv", b"context,response\na__eou__b__eou__,b c\n", [1 / 3]),
    "empty optional cells": ("rows.csv", b"context,response,reference,system,id\na,a,,,\n", [1.0]),
    "semicolons": ("rows.csv", b'context;response\na, b;"a, c"\n', [1 / 3]),
    "tabs in a CSV": ("rows.csv", b"context\tresponse\na b\tb c\n", [1 / 3]),
    "a spreadsheet's separator line": ("rows.csv", b"sep=;\ncontext;response\na b;b c\n", [1 / 3]),
    "CSV in Latin-1": ("rows.csv", "context,response,café\ncafé b,café c,\n".encode("latin-1"), [1 / 3]),
    "CSV in UTF-16": ("rows.csv", "context\tresponse\ncafé b\tcafé c\n".encode("utf-16"), [1 / 3]),
    "JSON lines in UTF-16": ("rows.jsonl", THIRD.decode().encode("utf-16"), [1 / 3]),
    "UTF-16 in gzip": ("rows.jsonl.gz", gzip.compress(THIRD.decode().encode("utf-16")), [1 / 3]),
    "quotes and commas in a TSV": ("rows.tsv", b'context\tresponse\na, b\t"a, c"\n', [1 / 3]),
    "an ending in capitals": ("ROWS.JSONL", THIRD, [1 / 3]),
    "gzip in two parts": ("rows.jsonl.gz", gzip.compress(THIRD) + gzip.compress(HALF), [1 / 3, 1 / 2]),
    "gzip with zeros behind it": ("rows.jsonl.gz", gzip.compress(THIRD) + b"\0" * 512, [1 / 3]),
    "gzip with a byte-order mark": ("rows.csv.gz", gzip.compress(_BOM + b"context,response\na b,b c\n"), [1 / 3]),
    "gzip that does not say so": ("rows.jsonl", gzip.compress(THIRD), [1 / 3]),
    "plain text that says gzip": ("rows.jsonl.gz", THIRD, [1 / 3]),
}

FILES: dict[str, tuple[str, bytes, list[float]]] = {
    **{name: ("rows.jsonl", *case) for name, case in JSON_FILES.items()},
    **TABLES,
}
