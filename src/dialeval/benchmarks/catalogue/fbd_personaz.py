"""FBD and PRD's comparison of systems on PersonaChat (Zhao): cleaned up, and as its authors released it."""

from __future__ import annotations

from dialeval.benchmarks.base import BenchmarkInfo, Definition, FileSource, Scale, SourceFile
from dialeval.benchmarks.catalogue import persona_zhao
from dialeval.benchmarks.catalogue.papers import FBD
from dialeval.benchmarks.readers.fbd import cleaned, read_released

INFO = BenchmarkInfo(
    name="fbd_personaz",
    title="FBD evaluation file, PersonaChat (Zhao)",
    level="turn",
    rows=750,
    sources=(
        FileSource(
            "yhlleo/frechet-bert-distance",
            "fa9ec22b917546754ac6e69c937c154757c7e3fd",
            (
                SourceFile(
                    "datasets/personaz_annotation.json",
                    "b9d94be152c6918ba99b7277b8844b64c42c88a2487cd2d670b496fc27aa363a",
                    92523,
                ),
            ),
        ),
    ),
    licence="none stated",
    citation=FBD.citation,
    bibtex=FBD.bibtex,
    aspects={"overall": Scale(1, 5)},
    protocol="as_released",
    repeats="persona_zhao",
    main_aspect="overall",
    systems=("personaz/0", "personaz/1", "personaz/2", "personaz/3", "personaz/4"),
    human_systems=(),
    negative_systems=("personaz/4",),
    exclusions={"none": (), "generated": ("personaz/4",)},
    default_exclusion="none",
    oddities=(
        (
            "A position is not a system: positions 0 to 3 hold whichever of 12 generators answered the "
            "context, in alphabetical order."
        ),
        "Position 4 is the negative reply, taken from another context.",
    ),
)

CLEAN = cleaned(
    INFO,
    persona_zhao.DEFINITIONS[0],
    rows=600,
    oddities=(
        (
            "Rows are grouped by the generator and decoding that wrote them, 12 in place of the positions; "
            "the negative reply is dropped."
        ),
    ),
)

DEFINITIONS = (CLEAN, Definition(INFO, read_released))
