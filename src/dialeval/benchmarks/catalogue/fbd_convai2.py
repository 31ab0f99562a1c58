"""FBD and PRD's comparison of systems on ConvAI2: cleaned up, and as its authors released it."""

from __future__ import annotations

from dialeval.benchmarks.base import BenchmarkInfo, Definition, FileSource, Scale, SourceFile
from dialeval.benchmarks.catalogue import convai2_grade
from dialeval.benchmarks.catalogue.papers import FBD
from dialeval.benchmarks.readers.fbd import cleaned, read_released

INFO = BenchmarkInfo(
    name="fbd_convai2",
    title="FBD evaluation file, ConvAI2",
    level="turn",
    rows=600,
    sources=(
        FileSource(
            "yhlleo/frechet-bert-distance",
            "fa9ec22b917546754ac6e69c937c154757c7e3fd",
            (
                SourceFile(
                    "datasets/convai2_annotation.json",
                    "abf9a96b9c71671732406bee5bbd568e257012dc3ad0e8c348baeb290ad03606",
                    66171,
                ),
            ),
        ),
    ),
    licence="none stated",
    citation=FBD.citation,
    bibtex=FBD.bibtex,
    aspects={"overall": Scale(1, 5)},
    protocol="as_released",
    repeats="convai2_grade",
    main_aspect="overall",
    systems=("convai2/0", "convai2/1", "convai2/2", "convai2/3"),
    human_systems=(),
    oddities=(
        (
            "Systems are positions: BERT ranker, DialoGPT, transformer generator, transformer ranker of the "
            "GRADE release."
        ),
        (
            "The authors joined GRADE's systems by line although they answered different contexts: the "
            "responses of positions 0 to 3 belong to the context of their line in 150, 8, 4 and 3 of 150 "
            "lines."
        ),
    ),
)

CLEAN = cleaned(
    INFO,
    convai2_grade.DEFINITIONS[0],
    rows=600,
    oddities=(
        ("Every system stands with the 150 contexts it answered; 435 misplaced rows of the released file are gone."),
    ),
)

DEFINITIONS = (CLEAN, Definition(INFO, read_released))
