"""The test part of DailyDialog++: contexts with valid, adversarial and random replies."""

from __future__ import annotations

from dataclasses import replace

from dialeval.benchmarks.base import BenchmarkInfo, Definition, FileSource, SourceFile
from dialeval.benchmarks.catalogue.papers import DAILYDIALOGPP
from dialeval.benchmarks.readers.dailydialogpp import reader

INFO = BenchmarkInfo(
    name="dailydialogpp_test",
    title="DailyDialog++ test",
    level="turn",
    rows=17130,
    sources=(
        FileSource(
            "iitmnlp/DailyDialog-plusplus",
            "4b02f9ff671e7e27d8e6b8a1925158bd5729abda",
            (
                SourceFile(
                    "dataset/test.json", "e8202c3d4b11008a13061b15c4d8ce1f6d05baa9104a9c1f5caa5450134522fa", 1326667
                ),
            ),
        ),
    ),
    licence="MIT for the website's repository (inherited from its template); none stated for the data",
    citation=DAILYDIALOGPP.citation,
    bibtex=DAILYDIALOGPP.bibtex,
    kind="labels",
    main_aspect="label",
    oddities=(
        "One row per reply: five positive, five adversarial and five random ones per context.",
        (
            "By default every reply has four references: a positive the other four, the k-th negative all but"
            " the k-th positive. Protocol all_positives gives negatives all five."
        ),
        (
            "The released random negatives seem not to be those behind the published tables: by its own released "
            "scores DEB reaches 86.4 % on them, 88.3 % in print."
        ),
    ),
)

DEFINITIONS = (
    Definition(INFO, reader()),
    Definition(replace(INFO, protocol="all_positives"), reader(all_positives=True)),
)
