"""FBD and PRD (Xiang et al. 2021): Table 3 by both readings of its files, Table 5, Fig. 1."""

from __future__ import annotations

from collections.abc import Mapping

from dialeval.agreement.settings import Settings
from reproduce.papers.tables import CellQuery, Column, Paper, Row, Table, published

_BOTH = ("spearman", "pearson")
#: Table 3's columns: the benchmark, and the aspect that is correlated.
_CORPORA = {
    "Persona(M)": "fbd_personam",
    "Daily(H)": "fbd_dailyh",
    "Convai2": "fbd_convai2",
    "Empathetic": "fbd_empathetic",
    "Daily(Z)": "fbd_dailyz",
    "Persona(Z)": "fbd_personaz",
}
_RELEASED = Settings(_BOTH, levels="system", absolute=True, force_systems=True)
_CLEAN = Settings(_BOTH, levels="system")
_PER_ASPECT = Settings(_BOTH, aspects=("all",), levels="system", absolute=True, force_systems=True)
_ASPECTS = ("relevance", "grammar", "content", "overall")
_NAMES = tuple(f"{name} {part}" for name in _CORPORA for part in ("ρ", "r"))
_NAMES_5 = tuple(f"{aspect} {part}" for aspect in _ASPECTS for part in ("ρ", "r"))
_PARTS = {"ρ": "spearman", "r": "pearson"}

_OUR_ENCODER = "our 22.7 M encoder"
_TUNED = "our encoder after a training on dialogues, which the paper has none of"


_SPECS = {
    "BLEU": ("bleu4", "mean of smoothed replies' BLEU-4, the paper has the corpus BLEU"),
    "METEOR": ("meteor", ""),
    "ROUGE-L": ("rougeL", ""),
    "Greedy": ("embedding_greedy", "other word vectors"),
    "Average": ("embedding_average", "other word vectors"),
    "Extrema": ("embedding_extrema", "other word vectors, largest magnitude instead of plain maximum"),
    "BERTScore-B": ("bertscore", _OUR_ENCODER),
    "BERTScore-R": ("bertscore?model=roberta-base&name=bertscore_roberta", ""),
    "FBD-B": ("fbd", _OUR_ENCODER),
    "FBD-B, DEB's (not in the paper)": ("fbd?checkpoint=deb-minilm&name=fbd_deb", _TUNED),
    "FBD-R": ("fbd?checkpoint=roberta-base&name=fbd_roberta", ""),
    "PRD-B": ("prd", _OUR_ENCODER),
    "PRD-B, DEB's (not in the paper)": ("prd?checkpoint=deb-minilm&name=prd_deb", _TUNED),
    "PRD-R": ("prd?checkpoint=roberta-base&name=prd_roberta", ""),
}
#: Its weights cannot be had here.
_ROBERTA = ("BERTScore-R", "FBD-R", "PRD-R")
_TABLE_3 = {
    "BLEU": (0.400, 0.672, 0.445, 0.444, 0.800, 0.801, 0.136, 0.331, 0.595, 0.421, 0.400, 0.390),
    "METEOR": (0.800, 0.860, 0.018, 0.050, 0.800, 0.767, 0.382, 0.133, 0.643, 0.689, 0.700, 0.936),
    "ROUGE-L": (0.600, 0.289, 0.545, 0.417, 0.200, 0.061, 0.391, 0.472, 0.738, 0.725, 0.400, 0.915),
    "Greedy": (0.600, 0.260, 0.855, 0.764, 0.600, 0.794, 0.736, 0.864, 0.690, 0.726, 0.100, 0.835),
    "Average": (0.800, 0.863, 0.209, 0.209, 0.600, 0.879, 0.664, 0.725, 0.548, 0.769, 0.300, 0.861),
    "Extrema": (0.600, 0.435, 0.745, 0.761, 0.800, 0.766, 0.618, 0.722, 0.595, 0.746, 0.500, 0.834),
    "BERTScore-B": (0.800, 0.590, 0.137, 0.082, 0.800, 0.817, 0.300, 0.077, 0.857, 0.883, 0.900, 0.961),
    "BERTScore-R": (0.800, 0.517, 0.855, 0.857, 0.800, 0.939, 0.600, 0.697, 0.714, 0.860, 0.700, 0.918),
    "FBD-B": (1.00, 0.853, 0.564, 0.717, 0.800, 0.854, 0.427, 0.623, 0.786, 0.763, 0.400, 0.923),
    "FBD-R": (1.00, 0.802, 0.891, 0.926, 0.800, 0.747, 0.864, 0.951, 0.929, 0.963, 1.00, 0.860),
    "PRD-B": (0.800, 0.637, 0.221, 0.409, 1.00, 0.972, 0.227, 0.399, 0.690, 0.914, 0.900, 0.984),
    "PRD-R": (0.800, 0.660, 0.591, 0.578, 1.00, 0.913, 0.545, 0.583, 0.762, 0.906, 0.900, 0.932),
}
_TABLE_5 = {
    "BLEU": (0.857, 0.454, 0.167, 0.213, 0.143, 0.270, 0.595, 0.421),
    "METEOR": (0.810, 0.736, 0.119, 0.044, 0.024, 0.349, 0.643, 0.689),
    "ROUGE-L": (0.857, 0.758, 0.238, 0.075, 0.190, 0.375, 0.738, 0.725),
    "Greedy": (0.881, 0.769, 0.214, 0.133, 0.119, 0.350, 0.690, 0.726),
    "Average": (0.762, 0.808, 0.071, 0.197, 0.238, 0.399, 0.548, 0.769),
    "Extrema": (0.714, 0.776, 0.143, 0.009, 0.476, 0.539, 0.595, 0.746),
    "BERTScore-B": (0.976, 0.908, 0.333, 0.111, 0.524, 0.593, 0.857, 0.883),
    "BERTScore-R": (0.857, 0.889, 0.119, 0.115, 0.310, 0.604, 0.714, 0.860),
    "FBD-B": (0.762, 0.790, 0.190, 0.203, 0.667, 0.404, 0.786, 0.763),
    "FBD-R": (0.976, 0.965, 0.429, 0.472, 0.524, 0.839, 0.929, 0.963),
    "PRD-B": (0.833, 0.932, 0.238, 0.156, 0.571, 0.708, 0.690, 0.914),
    "PRD-R": (0.881, 0.925, 0.238, 0.235, 0.452, 0.729, 0.762, 0.906),
}


def _corpora(protocol: str, settings: Settings) -> list[Column]:
    return [
        Column(f"{name} {part}", CellQuery(f"{benchmark}@{protocol}", statistic, settings, level="system"))
        for name, benchmark in _CORPORA.items()
        for part, statistic in _PARTS.items()
    ]


def _rows(names: tuple[str, ...], numbers: Mapping[str, tuple[float, ...]]) -> list[Row]:
    """The paper's, and ours that it has not, in the order of the metrics."""
    none = (None,) * len(names)
    return [
        Row(label, published(names, *numbers.get(label, none)), *spec, lacks="weights" if label in _ROBERTA else "")
        for label, spec in _SPECS.items()
    ]


PAPER = Paper(
    "fbd_prd",
    "FBD and PRD",
    (
        Table(
            "Table 3, files as released",
            _corpora("as_released", _RELEASED),
            _rows(_NAMES, _TABLE_3),
            "Correlations between systems without their sign, as printed; four to eleven “systems” of which many are "
            "positions or mixtures (`dialeval benchmarks` tells about each file). With four systems ρ is one of few "
            "values. No intervals: resampling would only move the human side of FBD and PRD.",
        ),
        Table(
            "Table 3, clean reading",
            _corpora("clean", _CLEAN),
            _rows(_NAMES, _TABLE_3),
            "The same published numbers beside ours with rows grouped by the system that wrote them, the corpora "
            "that the names promise, and signs kept. Fewer than five systems are refused.",
        ),
        Table(
            "Table 5, aspects of Daily(Z), files as released",
            [
                Column(
                    f"{aspect} {part}",
                    CellQuery("fbd_dailyz@as_released", statistic, _PER_ASPECT, level="system", aspect=aspect),
                )
                for aspect in _ASPECTS
                for part, statistic in _PARTS.items()
            ],
            _rows(_NAMES_5, _TABLE_5),
        ),
    ),
    (
        "Table 4 (normality of the features) beside ours, and how both metrics follow replies that are spoilt more and "
        "more, as the authors' code does it: [distances](../distances/distances.md). The paper's encoders (bert-base, "
        "roberta-base) are not part of this package.",
        "Fig. 2 (averages over corpora, base and large encoders): needs those encoders.",
    ),
)
