"""FBD and PRD's comparison of systems on DailyDialog (Zhao): cleaned up, and as its authors released it."""

from __future__ import annotations

from dialeval.benchmarks.base import BenchmarkInfo, Definition, FileSource, Scale, SourceFile
from dialeval.benchmarks.catalogue import dailydialog_zhao
from dialeval.benchmarks.catalogue.papers import FBD
from dialeval.benchmarks.readers.fbd import cleaned, read_released

INFO = BenchmarkInfo(
    name="fbd_dailyz",
    title="FBD evaluation file, DailyDialog (Zhao)",
    level="turn",
    rows=800,
    sources=(
        FileSource(
            "yhlleo/frechet-bert-distance",
            "fa9ec22b917546754ac6e69c937c154757c7e3fd",
            (
                SourceFile(
                    "datasets/dailyz_annotation.json",
                    "2eaf3927bd6b1052aa70b33b1416fddfd6398c0d0a577df8f4b340429fc16023",
                    88207,
                ),
            ),
        ),
    ),
    licence="none stated",
    citation=FBD.citation,
    bibtex=FBD.bibtex,
    aspects={"relevance": Scale(1, 5), "grammar": Scale(1, 5), "content": Scale(1, 5), "overall": Scale(1, 5)},
    protocol="as_released",
    repeats="dailydialog_zhao",
    main_aspect="overall",
    systems=tuple(f"dailyz/{position}" for position in range(8)),
    human_systems=(),
    negative_systems=("dailyz/7",),
    exclusions={"none": (), "generated": ("dailyz/7",)},
    default_exclusion="none",
    oddities=(
        (
            "A position is not a system: positions 0 to 6 hold whichever of 19 generators answered the "
            "context, in alphabetical order."
        ),
        "Position 7 is the negative reply, taken from another context.",
    ),
)

CLEAN = cleaned(
    INFO,
    dailydialog_zhao.DEFINITIONS[0],
    rows=700,
    oddities=(
        (
            "Rows are grouped by the generator and decoding that wrote them, 19 in place of the positions; "
            "the negative reply is dropped."
        ),
    ),
)

DEFINITIONS = (CLEAN, Definition(INFO, read_released))
