"""The benchmarks, one declarative file each.

A new one is a file here, its name below, and a reader if its raw format is new.
"""

from __future__ import annotations

#: Names of the modules of this package that declare a benchmark, in the order of listings.
NAMES: tuple[str, ...] = (
    "convai2_grade",
    "dailydialog_grade",
    "empathetic_grade",
    "dailydialog_zhao",
    "persona_zhao",
    "persona_usr",
    "fed_turn",
    "fed_dialogue",
    "dstc9_interactive",
    "dailydialogpp_dev",
    "dailydialogpp_test",
    "dailydialogpp_positives",
    "fbd_personam",
    "fbd_dailyh",
    "fbd_convai2",
    "fbd_empathetic",
    "fbd_dailyz",
    "fbd_personaz",
    "adversarial_khalid",
)
