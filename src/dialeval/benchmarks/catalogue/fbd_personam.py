"""FBD and PRD's comparison of systems on PersonaChat (USR): cleaned up, and as its authors released it."""

from __future__ import annotations

from dialeval.benchmarks.base import BenchmarkInfo, Definition, FileSource, Scale, SourceFile
from dialeval.benchmarks.catalogue import persona_usr
from dialeval.benchmarks.catalogue.papers import FBD
from dialeval.benchmarks.readers.fbd import cleaned, read_released

INFO = BenchmarkInfo(
    name="fbd_personam",
    title="FBD evaluation file, PersonaChat (USR)",
    level="turn",
    rows=240,
    sources=(
        FileSource(
            "yhlleo/frechet-bert-distance",
            "fa9ec22b917546754ac6e69c937c154757c7e3fd",
            (
                SourceFile(
                    "datasets/personam_annotation.json",
                    "57dac863db31f803f14031553b4e3175fdf8bb9c4c3334846ebbe2f3434d66f1",
                    60151,
                ),
            ),
        ),
    ),
    licence="none stated",
    citation=FBD.citation,
    bibtex=FBD.bibtex,
    aspects={
        "Understandable": Scale(0, 1),
        "Natural": Scale(1, 3),
        "Maintains Context": Scale(1, 3),
        "Engaging": Scale(1, 3),
        "Uses Knowledge": Scale(0, 1),
        "Overall": Scale(1, 5),
    },
    protocol="as_released",
    repeats="persona_usr",
    main_aspect="Overall",
    systems=("personam/0", "personam/1", "personam/2", "personam/3"),
    human_systems=("personam/3",),
    exclusions={"none": (), "generated": ("personam/3",)},
    default_exclusion="none",
    oddities=("Systems are positions: KV-MemNN, Seq2Seq, language model, and 3 a person who wrote a new reply.",),
)

CLEAN = cleaned(
    INFO,
    persona_usr.DEFINITIONS[0],
    rows=180,
    oddities=(
        (
            "The newly written human replies are dropped. Three systems are left, too few for a correlation "
            "between systems."
        ),
        "Context turns are separate and persona facts are there, unlike in the released file.",
    ),
)

DEFINITIONS = (CLEAN, Definition(INFO, read_released))
