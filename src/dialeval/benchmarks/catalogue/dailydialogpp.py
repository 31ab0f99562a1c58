"""DailyDialog++: contexts with valid, adversarial and random replies, one JSON object per line."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from dialeval.benchmarks.base import BenchmarkInfo, Definition, Files, FileSource, Reader, Row, SourceFile
from dialeval.benchmarks.catalogue.papers import DAILYDIALOGPP
from dialeval.benchmarks.rows import REPLY_KINDS, labelled_replies
from dialeval.io import parse_json

_LAID_OUT = (
    "One row per reply: five positive, five adversarial and five random ones per context.",
    (
        "By default every reply has four references: a positive the other four, the k-th negative all but"
        " the k-th positive. Protocol all_positives gives negatives all five."
    ),
)


def reader(*, all_positives: bool = False) -> Reader:
    """One row per reply; see `labelled_replies` for which positives become references."""

    def read(info: BenchmarkInfo, files: Files) -> Iterable[Row]:
        (path,) = files.values()
        with path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines):
                item = parse_json(line)
                replies = {kind: _replies(item, word) for kind, word in REPLY_KINDS.items()}
                context = [turn.strip() for turn in item["context"]]
                yield from labelled_replies(f"{info.name}-{number:05d}", context, replies, all_positives=all_positives)

    return read


def _replies(item: dict[str, list[str]], word: str) -> list[str]:
    return [reply.strip() for reply in item.get(f"{word}_responses", ())]


def _declared(name: str, title: str, file: SourceFile, **facts: Any) -> BenchmarkInfo:
    """What the parts of the release have in common."""
    commit = "4b02f9ff671e7e27d8e6b8a1925158bd5729abda"
    return BenchmarkInfo(
        name=name,
        title=title,
        level="turn",
        sources=(FileSource("iitmnlp/DailyDialog-plusplus", commit, (file,)),),
        licence="MIT for the website's repository (inherited from its template); none stated for the data",
        citation=DAILYDIALOGPP.citation,
        bibtex=DAILYDIALOGPP.bibtex,
        kind="labels",
        main_aspect="label",
        **facts,
    )


def _both(info: BenchmarkInfo) -> tuple[Definition, ...]:
    """Negatives with as many references as positives have, or with all."""
    all_positives = Definition(replace(info, protocol="all_positives"), reader(all_positives=True))
    return Definition(info, reader()), all_positives


DEV = _declared(
    "dailydialogpp_dev",
    "DailyDialog++ dev",
    SourceFile("dataset/dev.json", "afbdee92c9ab372f599c605609676fceba517f83286d58555f0404f4364b5bfa", 1226933),
    rows=15420,
    oddities=(
        *_LAID_OUT,
        "One context occurs twice.",
        (
            "Checkpoints of DEB and QuantiDCE count as trained on it: the train part is missing from the public "
            "copies, and the step counts of DEB's released checkpoints point to train and dev together."
        ),
    ),
    contaminates=("deb", "quantidce"),
)
TEST = _declared(
    "dailydialogpp_test",
    "DailyDialog++ test",
    SourceFile("dataset/test.json", "e8202c3d4b11008a13061b15c4d8ce1f6d05baa9104a9c1f5caa5450134522fa", 1326667),
    rows=17130,
    oddities=(
        *_LAID_OUT,
        (
            "The released random negatives seem not to be those behind the published tables: by its own released "
            "scores DEB reaches 86.4 % on them, 88.3 % in print."
        ),
    ),
)
POSITIVES = _declared(
    "dailydialogpp_positives",
    "DailyDialog++ positives only",
    SourceFile(
        "dataset/data_positives.json", "36ae33206b536161816dbbb611843c0dc5172612bc94f604a8484f812ebdc0a9", 3572358
    ),
    rows=38205,
    oddities=(
        "Training material: nothing can be discriminated here, because every reply is valid.",
        "7,641 contexts, of which 7,638 are distinct; four also occur in the dev or test part.",
    ),
    contaminates=("deb", "quantidce"),
    tells_apart=False,
)

BENCHMARKS = {
    "dailydialogpp_dev": _both(DEV),
    "dailydialogpp_test": _both(TEST),
    "dailydialogpp_positives": (Definition(POSITIVES, reader()),),
}
