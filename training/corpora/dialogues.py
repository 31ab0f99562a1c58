"""Read dialogue corpora: a folder of JSON lines, or a dataset of the Hub.

A corpus folder holds `NAME/SPLIT.jsonl` or `.jsonl.gz`, one dialogue a line:
`{"id": "...", "utterances": [...], "speakers": [...], "persona": [[...], [...]]}`.
Only `utterances` is required. `persona` lists facts per speaker, in the alphabetical order of speakers.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from dialeval.core.exchange import Exchange
from dialeval.io.files import parse_json


class BadCorpus(ValueError):
    """A corpus cannot be trained on; the message says what is wrong with it."""


class MissingCorpus(FileNotFoundError):
    """A file that training reads is not there; the message says what is."""


@dataclass(frozen=True)
class CorpusDialogue:
    """Turns of one conversation and what is known of their speakers."""

    id: str
    turns: tuple[str, ...]
    corpus: str = ""
    #: Facts known of the speaker of each turn; empty when the corpus has none.
    facts: tuple[tuple[str, ...], ...] = ()

    def exchange(self, turn: int) -> Exchange:
        """Turn number `turn` as the response to all turns before it."""
        facts = self.facts[turn] if self.facts else ()
        return Exchange(context=self.turns[:turn], response=self.turns[turn], facts=facts, id=f"{self.id}#{turn}")


def read_corpus(root: Path, name: str, split: str, *, leave_out: frozenset[str] = frozenset()) -> list[CorpusDialogue]:
    """All dialogues of one split with at least two turns, without those in `leave_out`."""
    if name.startswith("hub:"):
        return _usable(_read_hub(name.removeprefix("hub:"), split), name, leave_out)
    return _usable(read_rows(find_split(root, name, split)), name, leave_out)


def find_split(root: Path, name: str, split: str) -> Path:
    """The file of a split; the error lists what is there instead."""
    for ending in (".jsonl", ".jsonl.gz"):
        path = root / name / f"{split}{ending}"
        if path.is_file():
            return path
    names = sorted(path.name for path in (root / name).glob("*.jsonl*")) if (root / name).is_dir() else []
    holds = f"it holds {', '.join(names)}" if names else f"{root / name} does not exist"
    raise MissingCorpus(f"corpus {name} has no split {split}: {holds}")


def open_text(path: Path) -> IO[str]:
    """A UTF-8 text file, gzipped or not."""
    return gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8")


def read_rows(path: Path) -> Iterator[dict[str, Any]]:
    """JSON objects of a (gzipped) JSON-lines file, errors naming the line."""
    with open_text(path) as stream:
        for number, line in enumerate(stream, start=1):
            if not line.strip():
                continue
            try:
                row = parse_json(line)
            except json.JSONDecodeError as error:
                raise BadCorpus(f"{path} line {number} is not JSON: {error.msg}") from None
            if not isinstance(row, dict):
                raise BadCorpus(f"{path} line {number} is a {type(row).__name__}, not an object")
            yield row


def overlapping_ids(path: Path) -> frozenset[str]:
    """Ids of dialogues that share text with evaluation data, from an overlaps file (nested lists of ids).

    Overlaps with the positives-only part of DailyDialog++ are training data on both sides and stay where the
    dialogue is one of DailyDialog's train split; contexts out of its validation and test dialogues go.
    """
    if not path.is_file():
        raise MissingCorpus(
            f"{path} is not there; it lists the dialogues to keep out of training. Put it beside the corpora, or pass "
            "--set leave_out=null where nothing that is trained on will be measured on"
        )
    with open_text(path) as stream:
        return frozenset(_strings(parse_json(stream.read())))


_POSITIVES_ONLY = "train_positives_only in"
_EVALUATED_SPLITS = ("dailydialog validation", "dailydialog test")


def _strings(node: Any) -> Iterator[str]:
    if isinstance(node, str):
        yield node
    elif isinstance(node, Mapping):
        for key, value in node.items():
            if _POSITIVES_ONLY not in key:
                yield from _strings(value)
            elif key.endswith(_EVALUATED_SPLITS):
                yield from value  # its own contexts, not the dialogues that they were found in
    elif isinstance(node, list):
        for value in node:
            yield from _strings(value)


def _usable(rows: Iterable[Mapping[str, Any]], corpus: str, leave_out: frozenset[str]) -> list[CorpusDialogue]:
    dialogues: list[CorpusDialogue] = []
    for number, row in enumerate(rows):
        identity = str(row.get("id", f"{corpus}-{number}"))
        turns = tuple(turn for turn in row.get("utterances", ()) if isinstance(turn, str))
        if identity in leave_out or len(turns) < 2 or any(not turn.strip() for turn in turns):
            continue
        dialogues.append(CorpusDialogue(identity, turns, corpus, _facts(row, len(turns))))
    if not dialogues:
        raise BadCorpus(f"corpus {corpus} holds no dialogue of two or more turns")
    return dialogues


def _facts(row: Mapping[str, Any], turns: int) -> tuple[tuple[str, ...], ...]:
    speakers, personas = row.get("speakers"), row.get("persona")
    if not personas or not speakers or len(speakers) != turns:
        return ()
    names = sorted(set(speakers))
    of_name = {
        name: tuple(f"your persona: {fact}" for fact in facts) for name, facts in zip(names, personas, strict=False)
    }
    return tuple(of_name.get(speaker, ()) for speaker in speakers)


def _read_hub(name: str, split: str) -> Iterator[dict[str, Any]]:
    """A Hub dataset with one dialogue a row, its turns in a list column."""
    from datasets import load_dataset

    loaded = load_dataset(name, split=split)
    column = next((key for key in ("utterances", "dialog", "dialogue", "turns") if key in loaded.column_names), None)
    if column is None:
        raise BadCorpus(f"dataset {name} has no column of turns; it has {', '.join(loaded.column_names)}")
    for number, row in enumerate(loaded):
        yield {"id": f"{name}-{split}-{number}", "utterances": row[column]}
