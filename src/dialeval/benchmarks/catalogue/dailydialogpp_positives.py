"""The contexts of DailyDialog++ that have five valid replies and no negatives."""

from __future__ import annotations

from dialeval.benchmarks.base import BenchmarkInfo, Definition, FileSource, SourceFile
from dialeval.benchmarks.catalogue.papers import DAILYDIALOGPP
from dialeval.benchmarks.readers.dailydialogpp import reader

INFO = BenchmarkInfo(
    name="dailydialogpp_positives",
    title="DailyDialog++ positives only",
    level="turn",
    rows=38205,
    sources=(
        FileSource(
            "iitmnlp/DailyDialog-plusplus",
            "4b02f9ff671e7e27d8e6b8a1925158bd5729abda",
            (
                SourceFile(
                    "dataset/data_positives.json",
                    "36ae33206b536161816dbbb611843c0dc5172612bc94f604a8484f812ebdc0a9",
                    3572358,
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
        "Training material: nothing can be discriminated here, because every reply is valid.",
        "7,641 contexts, of which 7,638 are distinct; four also occur in the dev or test part.",
    ),
    contaminates=("deb", "quantidce"),
    tells_apart=False,
)

DEFINITIONS = (Definition(INFO, reader()),)
