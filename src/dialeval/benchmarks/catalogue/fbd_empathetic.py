"""FBD and PRD's comparison of systems on EmpatheticDialogues: cleaned up, and as its authors released it."""

from __future__ import annotations

from dialeval.benchmarks.base import BenchmarkInfo, Definition, FileSource, Scale, SourceFile
from dialeval.benchmarks.catalogue import empathetic_grade
from dialeval.benchmarks.catalogue.papers import FBD
from dialeval.benchmarks.readers.fbd import cleaned, read_released

INFO = BenchmarkInfo(
    name="fbd_empathetic",
    title="FBD evaluation file, EmpatheticDialogues",
    level="turn",
    rows=1650,
    sources=(
        FileSource(
            "yhlleo/frechet-bert-distance",
            "fa9ec22b917546754ac6e69c937c154757c7e3fd",
            (
                SourceFile(
                    "datasets/empathetic_annotation.json",
                    "5dd1387ef5471b6997143bb89aa81de9fec629001a812f5e9dfa76cab84dc036",
                    124471,
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
    systems=tuple(f"empathetic/{position}" for position in range(11)),
    human_systems=(),
    oddities=(
        ("The file holds the DailyDialog contexts, references and replies of GRADE, none from EmpatheticDialogues."),
        "Positions 0 and 1 are the generator and the ranker; the others are random mixtures of their replies.",
        "These are the rows on which QuantiDCE was fine-tuned.",
    ),
    contaminates=("quantidce",),
)

CLEAN = cleaned(
    INFO,
    empathetic_grade.DEFINITIONS[0],
    rows=300,
    oddities=(
        (
            "The released file is replaced altogether by GRADE's EmpatheticDialogues rows. Two systems, too "
            "few for a correlation between systems."
        ),
    ),
)

DEFINITIONS = (CLEAN, Definition(INFO, read_released))
