"""Rows and groups (distinct contexts) of every benchmark and protocol, counted in the sources."""

from __future__ import annotations

#: By name and protocol.
ROWS = {
    ("convai2_grade", "standard"): (600, 258),
    ("dailydialog_grade", "standard"): (300, 149),
    ("empathetic_grade", "standard"): (300, 147),
    ("dailydialog_zhao", "standard"): (900, 100),
    ("persona_zhao", "standard"): (900, 149),
    ("persona_usr", "standard"): (300, 60),
    ("fed_turn", "standard"): (375, 124),
    ("fed_dialogue", "standard"): (125, 125),
    ("dstc9_interactive", "standard"): (2200, 2200),
    ("dailydialogpp_dev", "standard"): (15 * 1028, 1027),
    ("dailydialogpp_dev", "all_positives"): (15 * 1028, 1027),
    ("dailydialogpp_test", "standard"): (15 * 1142, 1142),
    ("dailydialogpp_test", "all_positives"): (15 * 1142, 1142),
    ("dailydialogpp_positives", "standard"): (5 * 7641, 7638),
    ("fbd_personam", "clean"): (180, 60),
    ("fbd_personam", "as_released"): (240, 60),
    ("fbd_dailyh", "clean"): (300, 149),
    ("fbd_dailyh", "as_released"): (1650, 149),
    ("fbd_convai2", "clean"): (600, 258),
    ("fbd_convai2", "as_released"): (600, 148),
    ("fbd_empathetic", "clean"): (300, 147),
    ("fbd_empathetic", "as_released"): (1650, 149),
    ("fbd_dailyz", "clean"): (700, 100),
    ("fbd_dailyz", "as_released"): (800, 100),
    ("fbd_personaz", "clean"): (600, 149),
    ("fbd_personaz", "as_released"): (750, 149),
    ("adversarial_khalid", "standard"): (4744, 4337),
}
