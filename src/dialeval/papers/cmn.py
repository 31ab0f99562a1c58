"""CMN (Zhao et al. 2023): its ablation, on human-judged replies that are at hand; the paper's own are not released."""

from __future__ import annotations

from dialeval.agreement.settings import Settings
from dialeval.papers.tables import CellQuery, Column, Paper, Row, Table, published

_SETTINGS = Settings(("pearson", "spearman"), levels="own")
_PAPERS = ("standard r", "standard ρ", "diverse r", "diverse ρ")
_OTHER_ENCODER = "our encoder has 22.7 M parameters, the paper's 110 M"


def _row(label: str, *values: float, ours: str | None = None, note: str = "") -> Row:
    return Row(label, published(_PAPERS, *values), ours, note)


PAPER = Paper(
    "cmn",
    "CMN",
    (
        Table(
            "Tables 1 and 2, DailyDialog half",
            (
                *(Column(name) for name in _PAPERS),
                Column("Zhao r", CellQuery("dailydialog_zhao", "pearson", _SETTINGS)),
                Column("Zhao ρ", CellQuery("dailydialog_zhao", "spearman", _SETTINGS)),
            ),
            (
                _row("BLEU-1", 0.0465, 0.0049, 0.2953, 0.2635, ours="bleu1"),
                _row("BLEU-4", 0.0796, 0.0646, 0.2319, 0.2737, ours="bleu4"),
                _row("ROUGE-L", 0.0490, 0.0285, 0.3362, 0.2945, ours="rougeL"),
                _row("METEOR", 0.0696, 0.0946, 0.2948, 0.2858, ours="meteor"),
                _row("Extrema", 0.1211, -0.0021, -0.3589, -0.3524, ours="embedding_extrema"),
                _row("Greedy", 0.1117, 0.0940, -0.1580, -0.1408, ours="embedding_greedy"),
                _row("Average", 0.1527, 0.1199, -0.1350, -0.1006, ours="embedding_average"),
                _row("BERTScore", 0.0824, -0.0076, 0.2591, 0.2251, ours="bertscore", note=_OTHER_ENCODER),
                _row("BLEURT", 0.1163, 0.0940, 0.2711, 0.2063),
                _row("RUBER", 0.0820, 0.1560, 0.1027, 0.1714),
                _row("MAUDE", -0.1623, -0.0145, 0.0551, 0.1782),
                _row("MDD-Eval", 0.1029, -0.0667, 0.5567, 0.6160),
                _row("CMN", 0.2446, 0.2211, 0.6325, 0.6234, ours="cmn", note=_OTHER_ENCODER),
                _row(
                    "CMN without NSP",
                    *(0.2292, 0.2025, 0.5453, 0.5555),
                    ours="cmn?scoring=without_nsp&name=cmn_without_nsp",
                    note=f"{_OTHER_ENCODER}; left out when scoring, as there",
                ),
                _row(
                    "CMN without MI",
                    *(0.0833, -0.0537, 0.6183, 0.5946),
                    ours="cmn?scoring=without_mi&name=cmn_without_mi",
                    note=f"{_OTHER_ENCODER}; left out when scoring, as there",
                ),
            ),
            "The paper's rows (82 standard and 468 diverse ones by its p-values) are not released. Ours are the 700 "
            "generated rows of Zhao's judgements: what can be compared is the order of the variants, not the numbers.",
        ),
    ),
    (
        "The PersonaChat halves of Tables 1 and 2, Tables 3 to 5 and the t-SNE plots: they are about the unreleased "
        "replies.",
    ),
)
