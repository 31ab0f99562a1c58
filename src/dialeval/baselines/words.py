"""Words for the word metrics and attacks: splitting a text, and WordNet, which is not shipped with this package."""

from __future__ import annotations

import io
import os
import warnings
from functools import cache, lru_cache
from pathlib import Path
from typing import Any


@cache
def _treebank() -> Any:
    from nltk.tokenize import NLTKWordTokenizer

    return NLTKWordTokenizer()


@lru_cache(maxsize=2**15)
def split_words(text: str, *, lowercase: bool = True) -> tuple[str, ...]:
    """Words of a text, punctuation and clitics apart, so that "don't" and the "do n't" of tokenised corpora agree.

    Remembers what it split, because splitting is most of the work of the word metrics, and
    benchmarks repeat their references.
    """
    return tuple(_treebank().tokenize(text.lower() if lowercase else text))


_HOW_TO = (
    "install it with `python -m nltk.downloader wordnet`, or on Debian and Ubuntu with `apt install wordnet-base`, "
    "or name the folder that holds its files (data.noun, index.noun ...) in WNSEARCHDIR"
)

#: Where Debian's package puts WordNet.
DEBIAN = Path("/usr/share/wordnet")


class MissingResource(ValueError):
    """Data or a model that something needs is not on this machine; the message says how to get it."""


def load_wordnet(needed_by: str) -> Any:
    """nltk's reader over the WordNet at hand: nltk's data, the folder in WNSEARCHDIR, or Debian's package."""
    root = find_wordnet()
    if root is None:
        raise MissingResource(f"{needed_by} needs WordNet, which is not here; {_HOW_TO}")
    try:
        return _reader(root)
    except (OSError, ValueError, AssertionError) as error:
        raise MissingResource(f"{needed_by} needs WordNet, but {root} cannot be read ({error}); {_HOW_TO}") from None


def find_wordnet() -> Any:
    """The folder of a WordNet (or nltk's pointer into its zip file), or None."""
    import nltk

    named = os.environ.get("WNSEARCHDIR")
    if named:
        return named
    for name in ("corpora/wordnet", "corpora/wordnet.zip/wordnet/"):
        try:
            return nltk.data.find(name)
        except LookupError:
            continue
    return str(DEBIAN) if (DEBIAN / "data.noun").is_file() else None


@cache
def _reader(root: Any) -> Any:
    import nltk
    from nltk.corpus.reader.wordnet import WordNetCorpusReader

    if isinstance(root, str) and root not in nltk.data.path:
        # nltk opens files only below the folders of this list.
        nltk.data.path.append(root)

    class Reader(WordNetCorpusReader):  # type: ignore[misc]
        def open(self, file: str) -> Any:
            # Distributions leave this list of 45 topic names out; nothing here reads the names.
            if file == "lexnames":
                return io.StringIO("".join(f"{number:02d}\ttopic{number:02d}\t0\n" for number in range(45)))
            return super().open(file)

        def map_wn(self, version: str = "wordnet") -> None:
            # A table between WordNet versions for other languages; building it needs nltk's own copy.
            return None

    with warnings.catch_warnings():
        # nltk warns that the multilingual part is absent, which nobody asked for.
        warnings.simplefilter("ignore")
        return Reader(root, None)
