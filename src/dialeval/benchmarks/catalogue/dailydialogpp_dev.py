"""The dev part of DailyDialog++: contexts with valid, adversarial and random replies."""

from __future__ import annotations

from dataclasses import replace

from dialeval.benchmarks.base import BenchmarkInfo, Definition, FileSource, SourceFile
from dialeval.benchmarks.catalogue.papers import DAILYDIALOGPP
from dialeval.benchmarks.readers.dailydialogpp import reader

INFO = BenchmarkInfo(
    name="dailydialogpp_dev",
    title="DailyDialog++ dev",
    level="turn",
    rows=15420,
    sources=(
        FileSource(
            "iitmnlp/DailyDialog-plusplus",
            "4b02f9ff671e7e27d8e6b8a1925158bd5729abda",
            (
                SourceFile(
                    "dataset/dev.json", "afbdee92c9ab372f599c605609676fceba517f83286d58555f0404f4364b5bfa", 1226933
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
        "One context occurs twice.",
        (
            "Checkpoints of DEB and QuantiDCE count as trained on it: the train part is missing from the public "
            "copies, and the step counts of DEB's released checkpoints point to train and dev together."
        ),
    ),
    contaminates=("deb", "quantidce"),
)

DEFINITIONS = (
    Definition(INFO, reader()),
    Definition(replace(INFO, protocol="all_positives"), reader(all_positives=True)),
)
