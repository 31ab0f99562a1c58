"""Conversations of people with the eleven chatbots of DSTC9's interactive track: a file per chatbot."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from dialeval.benchmarks.base import BenchmarkInfo, Definition, Files, FileSource, Row, Scale, SourceFile
from dialeval.benchmarks.catalogue.papers import DSTC9
from dialeval.benchmarks.catalogue.transcript import numbers, turns_of
from dialeval.io import parse_json

#: Of each chatbot the sha256 and size of its file.
_CHATBOTS = {
    "chatbot1": ("1106454ac56344e86da4cc072fdee12bfa7c515b3a991c0e90da6e54a092085c", 1431938),
    "chatbot2": ("eff39594dd2d895f76604f368d48c72c08a1e72c618f727dc4668270733ee6bb", 1255465),
    "chatbot3": ("96604aed90fdb548bedf50ab7b81c382bf9431ac42a3d6cef0f1fa776c5379c5", 1159128),
    "chatbot4": ("d4946a53a84790567a1ac3dba40157a2e9a5246167a3ed1778dd126fcc8c0bf0", 1154272),
    "chatbot5": ("1cfc061bb9b5e2144ade3ffa546735b5b2a42618cbeb04c1464bb5165fc43c61", 1263259),
    "chatbot6": ("3cb78055481bfe3db5306fd324e841045409efe664e830466462e5984108a9e1", 1045700),
    "chatbot7": ("9d90e73ba360cba845172b0a1d4dca1d028c91167a9bdd58054a06027ad57b3b", 811483),
    "chatbot8": ("c59ae66ecf34354bcc36c001e75c87cf3967d4f639cf83fafdaf5884b0f38bb3", 755141),
    "chatbot9": ("ece5688b18e23d2f0577dfb4dd85f915b04e1477e32e382fcf7e201499342c37", 636252),
    "chatbot10": ("676216cefccfdf34c79f2a5d67dc3670541d3d869486cdc56f5e7dfd43fc7858", 634817),
    "chatbot11": ("8bbc99aecb1471b49f56298148ab85da5f592dc2998ef6eeb9c1e471c1350571", 755069),
}


def chatbot_path(system: str) -> str:
    """Where the dialogues of one chatbot lie."""
    return f"FlowScore/data/{system}.json"


def read(info: BenchmarkInfo, files: Files) -> Iterable[Row]:
    """One row per dialogue: neighbouring items with the same text are one dialogue, judged by several people."""
    for system in info.systems:
        items = parse_json(files[chatbot_path(system)].read_text(encoding="utf-8"))
        for transcript, judged in itertools.groupby(items, key=lambda item: item["context"]):
            judgements = list(judged)
            speakers, dialogue = turns_of(transcript)
            yield {
                "dialogue": dialogue,
                "speakers": speakers,
                "system": system,
                "ratings": {
                    aspect: numbers([judgement[_raw_name(aspect)] for judgement in judgements])
                    for aspect in info.aspects
                },
            }


def _raw_name(aspect: str) -> str:
    return "human (overall)" if aspect == "overall" else aspect


INTERACTIVE = BenchmarkInfo(
    name="dstc9_interactive",
    title="DSTC9 interactive dialogues",
    level="dialogue",
    rows=2200,
    sources=(
        FileSource(
            "ictnlp/DialoFlow",
            "a86140824890ad5a09b764181d305a1d97eb1dd3",
            tuple(SourceFile(chatbot_path(system), *pinned) for system, pinned in _CHATBOTS.items()),
        ),
    ),
    licence="MIT (repository)",
    citation=DSTC9.citation,
    bibtex=DSTC9.bibtex,
    aspects={
        "consistent": Scale(0, 1),
        "likeable": Scale(1, 3),
        "diverse": Scale(1, 3),
        "informative": Scale(1, 3),
        "coherent": Scale(1, 3),
        "overall": Scale(1, 5),
        "understanding": Scale(1, 3),
        "flexible": Scale(1, 3),
        "topic depth": Scale(1, 3),
        "error recovery": Scale(1, 3),
        "inquisitive": Scale(1, 3),
    },
    main_aspect="overall",
    systems=tuple(_CHATBOTS),
    human_systems=(),
    oddities=(
        (
            "The source has one item per annotator: neighbouring items with the same text are one dialogue, "
            "judged by one to three people."
        ),
        "Answers that are no number are dropped; one dialogue has none for 'error recovery'.",
        "Some turns of either side are empty and stay so; some turns of chatbot6 contain a line break.",
    ),
)

BENCHMARKS = {"dstc9_interactive": (Definition(INTERACTIVE, read),)}
