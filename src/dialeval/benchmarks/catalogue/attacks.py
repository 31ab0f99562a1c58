"""True replies beside attacked ones: which does a metric prefer? A converted file in the format of any benchmark."""

from __future__ import annotations

from collections.abc import Iterable

from dialeval.benchmarks.base import BenchmarkInfo, Definition, Files, FileSource, Row, SourceFile
from dialeval.benchmarks.catalogue.papers import ATTACKS
from dialeval.benchmarks.rowfile import read_file


def read(info: BenchmarkInfo, files: Files) -> Iterable[Row]:
    """The rows as they stand."""
    (path,) = files.values()
    return read_file(path)[1]


KHALID = BenchmarkInfo(
    name="adversarial_khalid",
    title="Adversarial behaviour pairs",
    level="turn",
    rows=4744,
    sources=(
        FileSource(
            "baber-sos/Explaining-Dialogue-Evaluation-Metrics-using-Adversarial-Behavioral-Analysis",
            "561467992f7d83fe36e43b9e61c56c53e870b75c",
            (),
        ),
    ),
    companion=SourceFile(
        "benchmarks/adversarial_khalid.jsonl",
        "81870c237cddb62e036577b26fb2b7bd50770d1e056bd383e5874bbb834e68ef",
        4084696,
    ),
    licence="none stated",
    citation=ATTACKS.citation,
    bibtex=ATTACKS.bibtex,
    kind="pairs",
    main_aspect="harmful",
    oddities=(
        (
            "A fixed-seed sample of about 70,000 cases that the source keeps in 20,000 files; it is read from "
            "one converted file, found beside the mirror or given by its path."
        ),
        "good_paraphrase and ner_neutral are controls (harmful is false): a score should not drop.",
        "18 attacks also changed earlier turns; their context is adversarial_context.",
        "The reference is the true reply itself, so a metric that compares with references wins by construction.",
        "The multiwoz domain is task-oriented.",
    ),
)

BENCHMARKS = {"adversarial_khalid": (Definition(KHALID, read),)}
