"""An untrusted tokenizer is data, too: known components of bounded size, and tried in a process of its own first.

`tokenizer.json` is a small language: its parts can multiply a text, run a regular expression without end, or end the
process that reads them. So only those parts pass that tokenizers of encoders are made of.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

from dialeval.weights.find import WEIGHTS, CheckpointError, file_sha256, first_line
from dialeval.weights.untrusted import read_json

#: A hundred languages come to some 35 MB.
MAX_BYTES = 2**26
MAX_VOCABULARY = 2**21
MAX_TOKEN = 1024
MAX_ADDED = 4096
#: Parts of a sequence, and of a template.
MAX_PARTS = 16
#: The longest text that a part may put in, and by how much all of them together may lengthen one.
MAX_PIECE, MAX_GROWTH = 16, 64
#: Characters of base64 of a table of characters; the largest that is known has half a million.
MAX_TABLE = 2**21
#: What inputs may be padded or cut to.
MAX_LENGTH = 2**16

#: The expressions of tokenizers that are in use; any other is somebody's own, and may never end.
REGEXES = frozenset(
    {
        " {2,}",
        r"\s+",
        r"\n",
        r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    }
)

Part = Mapping[str, Any]
Check = Callable[[Part], bool]


def check_tokenizer(folder: Path) -> None:
    """Refuse a tokenizer that no encoder needs, or that does not survive being used; one sentence for each fault."""
    path = folder / "tokenizer.json"
    if not path.is_file():
        return
    if path.stat().st_size > MAX_BYTES:
        raise CheckpointError(f"{path} has {path.stat().st_size} bytes, more than any tokenizer; do not use it")
    digest = file_sha256(path)
    if digest not in _TRIED | _shipped():
        _check_parts(read_json(path), path)
        _try_out(path)
        _TRIED.add(digest)


#: Digests of what passed in this process.
_TRIED: set[str] = set()


@cache
def _shipped() -> frozenset[str]:
    """Digests of the tokenizers that travel inside the package: ours, and no reason to start a process."""
    return frozenset(file_sha256(path) for path in WEIGHTS.glob("*/tokenizer.json"))


def _try_out(path: Path) -> None:
    """Let a child build and use it. The bound on waiting is no bound on speed: its processor time has one."""
    child = Path(__file__).with_name("try_tokenizer.py")
    # -P: the folder of the script holds modules with ordinary names, which must not stand in for others.
    command = [sys.executable, "-P", str(child), str(path.resolve())]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TOKENIZERS_PARALLELISM": "false"}
    try:
        done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=1800)
    except subprocess.TimeoutExpired:
        raise CheckpointError(f"{path} holds no usable tokenizer: it does not come to an end") from None
    if done.returncode:
        lines = done.stderr.decode("utf-8", errors="replace").strip().splitlines()
        reason = first_line(lines[-1][:200] if lines else f"it ends its process with {done.returncode}")
        raise CheckpointError(f"{path} holds no usable tokenizer: {reason}")


def _check_parts(raw: dict[str, Any], path: Path) -> None:
    def refuse(problem: str) -> CheckpointError:
        return CheckpointError(f"{path} holds no usable tokenizer: {problem}")

    for key, kinds in _KINDS.items():
        growth = 1.0
        for part in _parts(raw.get(key), 0):
            if part is None:
                raise refuse(f"its {key} is no object, or nested too deeply")
            kind = part.get("type")
            if not isinstance(kind, str) or kind not in kinds:
                raise refuse(f"its {key} has a part {str(kind)[:40]!r}, which no encoder's tokenizer has")
            if not _is_small(part) or not kinds[kind](part):
                raise refuse(f"its {key} {kind} is set to something that no encoder's tokenizer has")
            growth *= _growth(part)
        if growth > MAX_GROWTH:
            raise refuse(f"its {key} makes a text more than {MAX_GROWTH} times as long")
    for key in ("truncation", "padding"):
        if not all(isinstance(one, str | bool | None) or (_is_count(one, MAX_LENGTH)) for one in _leaves(raw.get(key))):
            raise refuse(f"its {key} has no length that an encoder reads")
    if problem := _vocabulary_problem(raw.get("model"), raw.get("added_tokens", [])):
        raise refuse(problem)


def _parts(value: Any, depth: int) -> Iterator[Part | None]:
    """The parts of a component, sequences taken apart; None stands for what is none."""
    if value is None:
        return
    if not isinstance(value, dict) or depth > 3:
        yield None
    elif value.get("type") == "Sequence":
        inner = next((value[key] for key in _SEQUENCES if key in value), None)
        if not isinstance(inner, list) or len(inner) > MAX_PARTS:
            yield None
            return
        for one in inner:
            yield from _parts(one, depth + 1)
    else:
        yield value


_SEQUENCES = ("normalizers", "pretokenizers", "processors", "decoders")


def _is_small(part: Part) -> bool:
    """Whatever a part holds is short, but for the one that is a table."""
    texts = [one for key, value in part.items() if key != "precompiled_charsmap" for one in _leaves(value)]
    return len(texts) <= 64 * MAX_PARTS and all(not isinstance(one, str) or len(one) <= 400 for one in texts)


def _leaves(value: Any) -> Iterator[Any]:
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one
        else:
            yield one


def _growth(part: Part) -> float:
    if part.get("type") == "Replace":
        pattern = part["pattern"].get("String") or " "
        return max(1.0, len(part["content"]) / len(pattern))
    return 2.0 if part.get("type") == "Prepend" else 1.0


def _is_count(value: Any, highest: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= highest


def _any(part: Part) -> bool:
    return True


def _short(key: str, part: Part) -> bool:
    return isinstance(part.get(key), str) and len(part[key]) <= MAX_PIECE


def _known_pattern(part: Part) -> bool:
    pattern = part.get("pattern")
    if not isinstance(pattern, dict) or len(pattern) != 1:
        return False
    text = pattern.get("String")
    return str(pattern.get("Regex")) in REGEXES or (isinstance(text, str) and 0 < len(text) <= MAX_PIECE)


def _replace(part: Part) -> bool:
    return _known_pattern(part) and _short("content", part)


def _table(part: Part) -> bool:
    table = part.get("precompiled_charsmap")
    return isinstance(table, str) and len(table) <= MAX_TABLE


def _template(part: Part) -> bool:
    return all(isinstance(part.get(key), list) and len(part[key]) <= MAX_PARTS for key in ("single", "pair"))


_KINDS: dict[str, dict[str, Check]] = {
    "normalizer": {
        **dict.fromkeys(
            ("BertNormalizer", "NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "Strip", "Nmt"), _any
        ),
        "Prepend": partial(_short, "prepend"),
        "Replace": _replace,
        "Precompiled": _table,
    },
    "pre_tokenizer": {
        **dict.fromkeys(
            ("BertPreTokenizer", "ByteLevel", "Digits", "Punctuation", "Whitespace", "WhitespaceSplit"), _any
        ),
        "Metaspace": partial(_short, "replacement"),
        "Split": _known_pattern,
    },
    "post_processor": {
        **dict.fromkeys(("BertProcessing", "ByteLevel", "RobertaProcessing"), _any),
        "TemplateProcessing": _template,
    },
    "decoder": {
        **dict.fromkeys(("BPEDecoder", "ByteFallback", "ByteLevel", "Fuse", "Metaspace", "Strip", "WordPiece"), _any),
        "Replace": _replace,
    },
}


def _vocabulary_problem(model: Any, added: Any) -> str:
    """What is wrong with the words and their numbers, if anything."""
    if not isinstance(model, dict) or model.get("type") not in ("BPE", "Unigram", "WordLevel", "WordPiece"):
        return "its model is none that an encoder's tokenizer has"
    kind, vocabulary = model["type"], model.get("vocab")
    words, numbers = _words(kind, vocabulary)
    if words is None or not words or len(words) > MAX_VOCABULARY:
        return f"its vocabulary is not one of up to {MAX_VOCABULARY} tokens"
    if not all(isinstance(word, str) and len(word) <= MAX_TOKEN for word in words):
        return f"its vocabulary has something that is no text of up to {MAX_TOKEN} characters"
    if not isinstance(added, list) or len(added) > MAX_ADDED or not all(isinstance(one, dict) for one in added):
        return f"its added tokens are not a list of up to {MAX_ADDED}"
    if not all(isinstance(one.get("content"), str) and 0 < len(one["content"]) <= MAX_TOKEN for one in added):
        return "an added token is no text of a token's length"
    # A few numbers may be left out, as XLM-R does; a number far beyond takes memory for all below it.
    highest = 2 * (len(words) + len(added)) + 1000
    if not all(_is_count(number, highest) for number in [*numbers, *(one.get("id") for one in added)]):
        return "a token's number lies outside its vocabulary"
    if len(set(numbers)) < len(numbers):
        return "two of its tokens have one number"
    if not isinstance(model.get("unk_token"), str | None):
        return "its token for unknown words is no text"
    if kind == "Unigram":
        unknown = model.get("unk_id")
        sound = unknown is None or _is_count(unknown, len(words) - 1)
    else:
        unknown = model.get("unk_token")
        sound = unknown in words if kind in ("WordLevel", "WordPiece") else unknown is None or unknown in words
    if not sound:
        return "its token for unknown words is not in its vocabulary"
    if model.get("dropout"):
        return "it drops merges by chance, so that the same text would not have the same score twice"
    merges = model.get("merges", [])
    if not isinstance(merges, list) or len(merges) > 2 * MAX_VOCABULARY:
        return "its merges are not a list of a vocabulary's size"
    if not _is_count(model.get("max_input_chars_per_word", 100), 10_000):
        return "its longest word has no length that a word has"
    pieces = [model.get("continuing_subword_prefix"), model.get("end_of_word_suffix")]
    if not all(one is None or (isinstance(one, str) and len(one) <= MAX_PIECE) for one in pieces):
        return "what it puts before or behind parts of words is no short text"
    return ""


def _words(kind: str, vocabulary: Any) -> tuple[Any, list[Any]]:
    """The tokens, to look them up, and their numbers where they are given."""
    if kind == "Unigram":
        pairs = vocabulary if isinstance(vocabulary, list) else []
        if not all(isinstance(one, list) and len(one) == 2 and isinstance(one[1], int | float) for one in pairs):
            return None, []
        return [one[0] for one in pairs], []
    return (vocabulary, list(vocabulary.values())) if isinstance(vocabulary, dict) else (None, [])
