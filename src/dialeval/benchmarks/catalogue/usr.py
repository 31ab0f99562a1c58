"""USR's judgements of three generators and two humans on 60 PersonaChat contexts: one item per context."""

from __future__ import annotations

from collections.abc import Iterable

from dialeval.benchmarks.base import BenchmarkInfo, Definition, Files, FileSource, Row, Scale, SourceFile, Subset
from dialeval.benchmarks.catalogue.papers import USR
from dialeval.io import parse_json

ORIGINAL = "Original Ground Truth"
_FACT_MARK = "your persona:"


def read(info: BenchmarkInfo, files: Files) -> Iterable[Row]:
    """One row per reply; the original human reply of the context is the reference of all its rows."""
    (path,) = files.values()
    for item in parse_json(path.read_text(encoding="utf-8")):
        context = [turn.strip() for turn in item["context"].strip().split("\n")]
        facts = [line.removeprefix(_FACT_MARK).strip() for line in item["fact"].strip().split("\n")]
        (reference,) = [reply["response"].strip() for reply in item["responses"] if reply["model"] == ORIGINAL]
        for reply in item["responses"]:
            yield {
                "context": context,
                "response": reply["response"].strip(),
                "references": [reference],
                "facts": facts,
                "system": reply["model"],
                "ratings": {aspect: reply[aspect] for aspect in info.aspects},
            }


PERSONA = BenchmarkInfo(
    name="persona_usr",
    title="USR judgements on PersonaChat",
    level="turn",
    rows=300,
    sources=(
        FileSource(
            "daqh/llm-eval",
            "41dfd1a21f59aaf4830e35748f13c4b7d031cad5",
            (
                SourceFile(
                    "pc_usr_data.json", "9695056e48d2370d93ec0f4d55e2f4dbf4fe8f5645dd41a0c2be871cf21ada71", 230177
                ),
            ),
        ),
    ),
    licence="none stated in the repository this copy comes from",
    citation=USR.citation,
    bibtex=USR.bibtex,
    aspects={
        "Understandable": Scale(0, 1),
        "Natural": Scale(1, 3),
        "Maintains Context": Scale(1, 3),
        "Engaging": Scale(1, 3),
        "Uses Knowledge": Scale(0, 1),
        "Overall": Scale(1, 5),
    },
    main_aspect="Overall",
    systems=("Original Ground Truth", "KV-MemNN", "Seq2Seq", "Language Model", "New Human Generated"),
    human_systems=("Original Ground Truth", "New Human Generated"),
    exclusions={
        "original": ("Original Ground Truth",),
        "generated": ("Original Ground Truth", "New Human Generated"),
        "none": (),
    },
    default_exclusion="original",
    subsets={
        "density": Subset(
            without=("Original Ground Truth",),
            last_share=0.8,
            why="192 rows: the size that the significance marks of the DENSITY paper imply; an inference",
        )
    },
    oddities=(
        (
            "By default only the original human reply is left out, as in the papers: the 60 newly written "
            "human replies stay."
        ),
        ("The reference of every row is the original human reply, so in the original rows it is the response itself."),
        "Facts are the persona of the replying side.",
    ),
)

BENCHMARKS = {"persona_usr": (Definition(PERSONA, read),)}
