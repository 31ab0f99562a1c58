"""FBD and PRD's comparisons of systems: cleaned up, and as their authors released them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from dialeval.benchmarks.base import BenchmarkInfo, Definition, Files, FileSource, Row, Scale, SourceFile
from dialeval.benchmarks.catalogue import grade, usr, zhao
from dialeval.benchmarks.catalogue.papers import FBD
from dialeval.benchmarks.rows import complete
from dialeval.io import parse_json


def read_released(info: BenchmarkInfo, files: Files) -> Iterable[Row]:
    """Every position of every line, in file order; the texts stay exactly as the authors' script reads them.

    The context is one joined string. The files carry mean scores only, so there are no single ratings.
    """
    (path,) = files.values()
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            item = parse_json(line)
            for system, reply, scores in zip(info.systems, item["hyps"], item["human_scores"], strict=True):
                yield {
                    "context": [item["src"]],
                    "response": reply,
                    "references": item["refs"],
                    "system": system,
                    "scores": dict(zip(info.aspects, scores, strict=True)),
                }


def cleaned(released: BenchmarkInfo, base: Definition, *, rows: int, oddities: tuple[str, ...]) -> Definition:
    """The same comparison on real systems: another benchmark's generators, each with the contexts it answered.

    Human replies and planted negatives are left out. Rows keep the ids and groups of the other
    benchmark, so that scores computed for it are valid here.
    """
    dropped = (*base.info.human_systems, *base.info.negative_systems)
    info = replace(
        base.info,
        name=released.name,
        title=released.title,
        protocol="clean",
        repeats=base.info.name,
        rows=rows,
        systems=tuple(system for system in base.info.systems if system not in dropped),
        human_systems=(),
        negative_systems=(),
        exclusions={"none": ()},
        default_exclusion="none",
        subsets={},
        citation=f"{base.info.citation} As grouped in {released.citation}",
        bibtex=f"{base.info.bibtex}\n{released.bibtex}",
        oddities=(*oddities, *base.info.oddities),
    )

    def read(info: BenchmarkInfo, files: Files) -> Iterable[Row]:
        for row in complete(base.info, base.read(base.info, files)):
            if row["system"] in info.systems:
                yield {**row, "dataset": info.name}

    return Definition(info, read)


def _released(name: str, title: str, file: SourceFile, **facts: Any) -> BenchmarkInfo:
    """What the files of the release have in common: JSON lines; a system is a position in their lists."""
    commit = "fa9ec22b917546754ac6e69c937c154757c7e3fd"
    return BenchmarkInfo(
        name=name,
        title=title,
        level="turn",
        sources=(FileSource("yhlleo/frechet-bert-distance", commit, (file,)),),
        licence="none stated",
        citation=FBD.citation,
        bibtex=FBD.bibtex,
        protocol="as_released",
        **facts,
    )


PERSONAM = _released(
    "fbd_personam",
    "FBD evaluation file, PersonaChat (USR)",
    SourceFile(
        "datasets/personam_annotation.json", "57dac863db31f803f14031553b4e3175fdf8bb9c4c3334846ebbe2f3434d66f1", 60151
    ),
    rows=240,
    aspects={
        "Understandable": Scale(0, 1),
        "Natural": Scale(1, 3),
        "Maintains Context": Scale(1, 3),
        "Engaging": Scale(1, 3),
        "Uses Knowledge": Scale(0, 1),
        "Overall": Scale(1, 5),
    },
    repeats="persona_usr",
    main_aspect="Overall",
    systems=("personam/0", "personam/1", "personam/2", "personam/3"),
    human_systems=("personam/3",),
    exclusions={"none": (), "generated": ("personam/3",)},
    oddities=("Systems are positions: KV-MemNN, Seq2Seq, language model, and 3 a person who wrote a new reply.",),
)
DAILYH = _released(
    "fbd_dailyh",
    "FBD evaluation file, DailyDialog (GRADE)",
    SourceFile(
        "datasets/dailyh_annotation.json", "5bd3680acea0a1c5ff44235115e164bcc2d0e195b5671adf02cfb095d0ead103", 123454
    ),
    rows=1650,
    aspects={"overall": Scale(1, 5)},
    repeats="dailydialog_grade",
    main_aspect="overall",
    systems=tuple(f"dailyh/{position}" for position in range(11)),
    oddities=(
        (
            "Only two of the eleven positions are systems (0 the generator, 1 the ranker); the others are "
            "random mixtures of their replies."
        ),
        "These are the rows on which QuantiDCE was fine-tuned.",
    ),
    contaminates=("quantidce",),
)
CONVAI2 = _released(
    "fbd_convai2",
    "FBD evaluation file, ConvAI2",
    SourceFile(
        "datasets/convai2_annotation.json", "abf9a96b9c71671732406bee5bbd568e257012dc3ad0e8c348baeb290ad03606", 66171
    ),
    rows=600,
    aspects={"overall": Scale(1, 5)},
    repeats="convai2_grade",
    main_aspect="overall",
    systems=("convai2/0", "convai2/1", "convai2/2", "convai2/3"),
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
EMPATHETIC = _released(
    "fbd_empathetic",
    "FBD evaluation file, EmpatheticDialogues",
    SourceFile(
        "datasets/empathetic_annotation.json",
        "5dd1387ef5471b6997143bb89aa81de9fec629001a812f5e9dfa76cab84dc036",
        124471,
    ),
    rows=1650,
    aspects={"overall": Scale(1, 5)},
    repeats="dailydialog_grade",
    main_aspect="overall",
    systems=tuple(f"empathetic/{position}" for position in range(11)),
    oddities=(
        ("The file holds the DailyDialog contexts, references and replies of GRADE, none from EmpatheticDialogues."),
        "Positions 0 and 1 are the generator and the ranker; the others are random mixtures of their replies.",
        "These are the rows on which QuantiDCE was fine-tuned.",
    ),
    contaminates=("quantidce",),
)
DAILYZ = _released(
    "fbd_dailyz",
    "FBD evaluation file, DailyDialog (Zhao)",
    SourceFile(
        "datasets/dailyz_annotation.json", "2eaf3927bd6b1052aa70b33b1416fddfd6398c0d0a577df8f4b340429fc16023", 88207
    ),
    rows=800,
    aspects={"relevance": Scale(1, 5), "grammar": Scale(1, 5), "content": Scale(1, 5), "overall": Scale(1, 5)},
    repeats="dailydialog_zhao",
    main_aspect="overall",
    systems=tuple(f"dailyz/{position}" for position in range(8)),
    negative_systems=("dailyz/7",),
    exclusions={"none": (), "generated": ("dailyz/7",)},
    oddities=(
        (
            "A position is not a system: positions 0 to 6 hold whichever of 19 generators answered the "
            "context, in alphabetical order."
        ),
        "Position 7 is the negative reply, taken from another context.",
    ),
)
PERSONAZ = _released(
    "fbd_personaz",
    "FBD evaluation file, PersonaChat (Zhao)",
    SourceFile(
        "datasets/personaz_annotation.json", "b9d94be152c6918ba99b7277b8844b64c42c88a2487cd2d670b496fc27aa363a", 92523
    ),
    rows=750,
    aspects={"overall": Scale(1, 5)},
    repeats="persona_zhao",
    main_aspect="overall",
    systems=("personaz/0", "personaz/1", "personaz/2", "personaz/3", "personaz/4"),
    negative_systems=("personaz/4",),
    exclusions={"none": (), "generated": ("personaz/4",)},
    oddities=(
        (
            "A position is not a system: positions 0 to 3 hold whichever of 12 generators answered the "
            "context, in alphabetical order."
        ),
        "Position 4 is the negative reply, taken from another context.",
    ),
)

BENCHMARKS = {
    "fbd_personam": (
        cleaned(
            PERSONAM,
            usr.BENCHMARKS["persona_usr"][0],
            rows=180,
            oddities=(
                (
                    "The newly written human replies are dropped. Three systems are left, too few for a correlation "
                    "between systems."
                ),
                "Context turns are separate and persona facts are there, unlike in the released file.",
            ),
        ),
        Definition(PERSONAM, read_released),
    ),
    "fbd_dailyh": (
        cleaned(
            DAILYH,
            grade.BENCHMARKS["dailydialog_grade"][0],
            rows=300,
            oddities=(
                "The nine mixtures are dropped. Two systems are left, too few for a correlation between systems.",
            ),
        ),
        Definition(DAILYH, read_released),
    ),
    "fbd_convai2": (
        cleaned(
            CONVAI2,
            grade.BENCHMARKS["convai2_grade"][0],
            rows=600,
            oddities=(
                (
                    "Every system stands with the 150 contexts it answered; 435 misplaced rows of the released "
                    "file are gone."
                ),
            ),
        ),
        Definition(CONVAI2, read_released),
    ),
    "fbd_empathetic": (
        cleaned(
            EMPATHETIC,
            grade.BENCHMARKS["empathetic_grade"][0],
            rows=300,
            oddities=(
                (
                    "The released file is replaced altogether by GRADE's EmpatheticDialogues rows. Two systems, too "
                    "few for a correlation between systems."
                ),
            ),
        ),
        Definition(EMPATHETIC, read_released),
    ),
    "fbd_dailyz": (
        cleaned(
            DAILYZ,
            zhao.BENCHMARKS["dailydialog_zhao"][0],
            rows=700,
            oddities=(
                (
                    "Rows are grouped by the generator and decoding that wrote them, 19 in place of the positions; "
                    "the negative reply is dropped."
                ),
            ),
        ),
        Definition(DAILYZ, read_released),
    ),
    "fbd_personaz": (
        cleaned(
            PERSONAZ,
            zhao.BENCHMARKS["persona_zhao"][0],
            rows=600,
            oddities=(
                (
                    "Rows are grouped by the generator and decoding that wrote them, 12 in place of the positions; "
                    "the negative reply is dropped."
                ),
            ),
        ),
        Definition(PERSONAZ, read_released),
    ),
}
