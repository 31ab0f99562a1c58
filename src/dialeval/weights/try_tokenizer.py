"""Run by itself, in a child process: builds a folder's tokenizer and lets it read all sorts of text, within limits.

What aborts, panics, or takes memory without end does so here. Nothing of `dialeval` is imported: this has to be quick.
"""

from __future__ import annotations

import sys

#: Bytes of memory and seconds of processor time; the largest tokenizers need a tenth of either.
MEMORY, SECONDS = 4 * 2**30, 120
#: Characters that a text may become: more comes from a tokenizer that multiplies what it reads.
_GROWTH = 64


def main(path: str) -> None:
    """Build the tokenizer and read; any way to fail ends the process with a code that is not 0."""
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    except (ImportError, ValueError, OSError):  # Windows has no such limits, and some machines have lower ones
        pass
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(path)
    tokenizer.no_padding()
    highest = tokenizer.get_vocab_size() + 2**16
    for text in probes():
        encoding = tokenizer.encode(text, "and a second one")
        if len(encoding.ids) > _GROWTH * (len(text) + 32):
            raise SystemExit(f"{len(text)} characters become {len(encoding.ids)} tokens")
        if any(not 0 <= number < highest for number in encoding.ids):
            raise SystemExit("a text becomes a token that is not in the vocabulary")


def probes() -> list[str]:
    """Nothing, ordinary words, what no vocabulary has, long words, and every character there is."""
    ordinary = ["", " ", "Hello, how are you?", "a" * 2000, " " * 2000, "\u2581" * 200, "▁x " * 200, "\n\t\r\u3000"]
    odd = ["\u0e01\u0e34" * 50, "e" + "\u0301" * 200, "\U0001f468\u200d\U0001f469" * 30, "\ufffd\u200b\ufeff\0"]
    every = [
        "".join(chr(code) for code in range(start, start + 4096) if not 0xD800 <= code < 0xE000)
        for start in range(0, 0x30000, 4096)
    ]
    return [*ordinary, *odd, *(text for text in every if text)]


if __name__ == "__main__":
    main(sys.argv[1])
