"""The benchmarks: one file per release of data, with its reader and the declarations of what it holds.

A new one is a file here whose BENCHMARKS names its definitions, and a line below.
"""

from __future__ import annotations

#: The module of this package that declares a benchmark, in the order of listings.
RELEASES: dict[str, str] = {
    "convai2_grade": "grade",
    "dailydialog_grade": "grade",
    "empathetic_grade": "grade",
    "dailydialog_zhao": "zhao",
    "persona_zhao": "zhao",
    "persona_usr": "usr",
    "fed_turn": "fed",
    "fed_dialogue": "fed",
    "dstc9_interactive": "dstc9",
    "dailydialogpp_dev": "dailydialogpp",
    "dailydialogpp_test": "dailydialogpp",
    "dailydialogpp_positives": "dailydialogpp",
    "fbd_personam": "fbd",
    "fbd_dailyh": "fbd",
    "fbd_convai2": "fbd",
    "fbd_empathetic": "fbd",
    "fbd_dailyz": "fbd",
    "fbd_personaz": "fbd",
    "adversarial_khalid": "attacks",
}
