"""QuantiDCE (Ye et al. 2021): Tables 1 to 4, Fig. 5, and Table 3's training data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dialeval.agreement.settings import Settings
from reproduce.papers.tables import (
    HEAD,
    JUDGES_ENCODER,
    OTHER_ENCODER,
    SHORT_TRAINING,
    CellQuery,
    Column,
    Paper,
    Row,
    Table,
    ablation,
    published,
)

_STATISTICS = {"Pearson": "pearson", "Spearman": "spearman", "Kendall": "kendall"}
_SETTINGS = Settings(tuple(_STATISTICS.values()), levels="own")
_SETS = {"ConvAI2": "convai2_grade", "Empathetic": "empathetic_grade"}
_AVERAGE = "average"
_NAMES = tuple(f"{name} {column}" for name in _SETS for column in (*_STATISTICS, _AVERAGE))


def _columns(sets: dict[str, str]) -> list[Column]:
    columns = []
    for name, benchmark in sets.items():
        each = [Column(f"{name} {title}", CellQuery(benchmark, part, _SETTINGS)) for title, part in _STATISTICS.items()]
        columns += [*each, Column(f"{name} {_AVERAGE}", average_of=[column.title for column in each])]
    return columns


def _row(label: str, values: Sequence[float], ours: str | None = None, note: str = "") -> Row:
    return Row(label, published(_NAMES, *values), ours, note)


def _short(label: str, variant: str, *values: float) -> Row:
    """A row of Tables 2 to 4 and the run that stands for it; as many published numbers as the table has columns."""
    names = _NAMES[: len(values)]
    return Row(label, published(names, *values), ablation(f"quantidce-{variant}"))


def _fitted(label: str, variant: str, *values: float) -> Row:
    return Row(label, published(_FITTED, *values), ablation(f"quantidce-{variant}"))


_FITTED = tuple(f"DailyDialogEVAL {column}" for column in (*_STATISTICS, _AVERAGE))

_TABLE_1 = (
    _row("BLEU", (0.003, 0.128, 0.088, 0.073, -0.051, 0.002, 0.005, -0.015), "bleu4", "order not said: ours BLEU-4"),
    _row("ROUGE", (0.136, 0.140, 0.097, 0.124, 0.029, -0.013, -0.010, 0.002), "rougeL"),
    _row("METEOR", (0.145, 0.181, 0.123, 0.150, 0.118, 0.055, 0.040, 0.071), "meteor"),
    _row("BERTScore", (0.225, 0.225, 0.154, 0.201, 0.046, 0.033, 0.021, 0.033), "bertscore", OTHER_ENCODER),
    _row("ADEM", (0.026, 0.037, 0.049, 0.037, 0.007, 0.009, 0.040, 0.019), "adem", HEAD),
    _row("BERT-RUBER", (0.266, 0.266, 0.185, 0.239, -0.022, -0.040, -0.029, -0.030), "bert_ruber", HEAD),
    replace(_row("BLEURT", (0.152, 0.149, 0.103, 0.135, 0.203, 0.192, 0.130, 0.175)), lacks="weights"),
    _row("GRADE", (0.496, 0.503, 0.356, 0.452, 0.350, 0.344, 0.243, 0.312)),
    _row("QuantiDCE", (0.554, 0.554, 0.395, 0.501, 0.412, 0.393, 0.274, 0.360), "quantidce", JUDGES_ENCODER),
    Row("DENSITY (not in the paper)", ours="density", note=JUDGES_ENCODER),
    Row("DEB (not in the paper)", ours="deb", note=JUDGES_ENCODER),
    Row("CMN (not in the paper)", ours="cmn", note=OTHER_ENCODER),
)

PAPER = Paper(
    "quantidce",
    "QuantiDCE",
    (
        Table(
            "Table 1",
            _columns(_SETS),
            _TABLE_1,
            "All systems of a set together, 600 and 300 rows. Correlations of the scores that the authors released "
            "for QuantiDCE and GRADE come out as printed (GRADE's Pearson on Empathetic as .349).",
        ),
        Table(
            "Table 2, losses of the first stage",
            _columns(_SETS),
            (
                _short("BCE", "binary", 0.505, 0.505, 0.361, 0.457, 0.354, 0.353, 0.243, 0.317),
                _short("Ranking", "margin", 0.507, 0.504, 0.360, 0.457, 0.399, 0.389, 0.272, 0.353),
                _short("SupCon", "contrastive", 0.495, 0.523, 0.367, 0.462, 0.332, 0.315, 0.22, 0.289),
                _short("FAT", "triplet", 0.516, 0.521, 0.371, 0.469, 0.381, 0.358, 0.245, 0.328),
                _short("Vanilla MLR", "vanilla", 0.522, 0.536, 0.379, 0.479, 0.403, 0.387, 0.267, 0.352),
                _short("MLR", "mlr", 0.554, 0.554, 0.395, 0.501, 0.412, 0.393, 0.274, 0.360),
            ),
            SHORT_TRAINING,
        ),
        Table(
            "Table 3, ways of fine-tuning",
            _columns(_SETS),
            (
                _short("MSE", "mse", 0.272, 0.369, 0.255, 0.299, 0.278, 0.276, 0.187, 0.247),
                _short("MSE, fixed encoder", "mse-fixed", 0.477, 0.477, 0.337, 0.430, 0.384, 0.367, 0.253, 0.335),
                _short("KD-MSE", "mlr", 0.554, 0.554, 0.395, 0.501, 0.412, 0.393, 0.274, 0.360),
            ),
            SHORT_TRAINING,
        ),
        Table(
            "Table 4, what is left out",
            _columns({"ConvAI2": _SETS["ConvAI2"]}),
            (
                _short("Nothing", "mlr", 0.554, 0.554, 0.395, 0.501),
                _short("MLR", "without-mlr", 0.373, 0.357, 0.246, 0.325),
                _short("Separation loss", "without-separation", 0.388, 0.416, 0.289, 0.364),
                _short("Compactness loss", "without-compactness", 0.526, 0.550, 0.390, 0.489),
                _short("Ordering loss", "without-ordering", -0.494, -0.522, -0.371, -0.462),
                _short("KD fine-tuning", "without-ratings", 0.531, 0.540, 0.381, 0.484),
            ),
            SHORT_TRAINING,
        ),
        Table(
            "Table 3, training data",
            _columns({"DailyDialogEVAL": "dailydialog_grade"}),
            (
                Row("QuantiDCE, KD-MSE", published(_FITTED, 0.804, 0.832, 0.678, 0.771), "quantidce", JUDGES_ENCODER),
                _fitted("QuantiDCE, MSE", "mse", 0.934, 0.945, 0.867, 0.915),
                _fitted("QuantiDCE, MSE, fixed encoder", "mse-fixed", 0.379, 0.402, 0.281, 0.354),
                Row("GRADE (by its released scores)", published(_FITTED, 0.374, 0.394, 0.274, None)),
            ),
            "270 of the 300 rows were trained on: this shows how closely they were fitted, nothing else. KD-MSE is the "
            f"shipped checkpoint. {SHORT_TRAINING}",
        ),
        Table(
            "Fig. 5, share of the ratings",
            _columns({"ConvAI2": _SETS["ConvAI2"]}),
            (
                _short("none", "without-ratings"),
                _short("a tenth", "tenth-of-ratings"),
                _short("half", "half-of-ratings"),
                _short("all", "mlr"),
            ),
            f"The paper prints a curve without numbers. {SHORT_TRAINING}",
        ),
    ),
    (
        "Figs. 3, 4 and 6 (scores per level): `dialeval agreement --benchmarks dailydialogpp_test` draws them of any "
        "metric; the features in two dimensions beside them are left out.",
    ),
)
