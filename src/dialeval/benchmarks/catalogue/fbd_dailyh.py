"""FBD and PRD's comparison of systems on DailyDialog (GRADE): cleaned up, and as its authors released it."""

from __future__ import annotations

from dialeval.benchmarks.base import BenchmarkInfo, Definition, FileSource, Scale, SourceFile
from dialeval.benchmarks.catalogue import dailydialog_grade
from dialeval.benchmarks.catalogue.papers import FBD
from dialeval.benchmarks.readers.fbd import cleaned, read_released

INFO = BenchmarkInfo(
    name="fbd_dailyh",
    title="FBD evaluation file, DailyDialog (GRADE)",
    level="turn",
    rows=1650,
    sources=(
        FileSource(
            "yhlleo/frechet-bert-distance",
            "fa9ec22b917546754ac6e69c937c154757c7e3fd",
            (
                SourceFile(
                    "datasets/dailyh_annotation.json",
                    "5bd3680acea0a1c5ff44235115e164bcc2d0e195b5671adf02cfb095d0ead103",
                    123454,
                ),
            ),
        ),
    ),
    licence="none stated",
    citation=FBD.citation,
    bibtex=FBD.bibtex,
    aspects={"overall": Scale(1, 5)},
    protocol="as_released",
    repeats="dailydialog_grade",
    main_aspect="overall",
    systems=tuple(f"dailyh/{position}" for position in range(11)),
    human_systems=(),
    oddities=(
        (
            "Only two of the eleven positions are systems (0 the generator, 1 the ranker); the others are "
            "random mixtures of their replies."
        ),
        "These are the rows on which QuantiDCE was fine-tuned.",
    ),
    contaminates=("quantidce",),
)

CLEAN = cleaned(
    INFO,
    dailydialog_grade.DEFINITIONS[0],
    rows=300,
    oddities=("The nine mixtures are dropped. Two systems are left, too few for a correlation between systems.",),
)

DEFINITIONS = (CLEAN, Definition(INFO, read_released))
