"""What the corpora are that checkpoints were trained on, and the licences their sources state."""

from __future__ import annotations

CORPORA: dict[str, dict[str, str]] = {
    "dailydialog": {"title": "DailyDialog, everyday conversation", "licence": "CC BY-NC-SA 4.0"},
    "dailydialog_pp": {
        "title": "DailyDialog++ (development split, and contexts with positive replies only)",
        "licence": "none stated; its contexts are DailyDialog's (CC BY-NC-SA 4.0)",
    },
    "convai2": {
        "title": "ConvAI2 / PersonaChat, the part of its training split that is publicly mirrored",
        "licence": "not stated by the source; PersonaChat is reported as CC BY 4.0",
    },
    "empathetic_dialogues": {"title": "EmpatheticDialogues", "licence": "CC BY-NC 4.0"},
    "self_dialogue": {"title": "Self-dialogue corpus", "licence": "BSD-3-Clause"},
    "topical_chat": {"title": "Topical-Chat (validation conversations)", "licence": "CDLA-Sharing 1.0"},
    "mutual": {"title": "MuTual, listening-test dialogues", "licence": "none stated"},
    "mutual_responses": {"title": "MuTual with its written wrong replies", "licence": "none stated"},
    "persuasion_for_good": {"title": "Persuasion for Good", "licence": "Apache-2.0"},
    "casino": {"title": "CaSiNo, negotiation with small talk", "licence": "CC BY 4.0"},
    "ccpe": {"title": "CCPE-M, film-preference interviews", "licence": "CC BY 4.0"},
    "redial": {"title": "ReDial, film recommendation chat", "licence": "CC BY 4.0"},
    "commonsense_dialogues": {"title": "Commonsense-Dialogues", "licence": "CC BY-NC 4.0"},
    "dailydialog_grade": {"title": "GRADE's ratings of DailyDialog replies (270 of 300)", "licence": "none stated"},
}
